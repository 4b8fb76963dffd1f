//! Commands that only the agent's own shell can run, because they use an alias or a function of the user.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sayso_review::Script;

/// Builtin commands of bash.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// `true` if the command names a program that is neither a builtin, nor defined by the command, nor a file on the PATH.
pub(super) fn is_needed(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let script = Script::parse(command);
    let is_defined_here = |name: &str| {
        script
            .uncertainties
            .iter()
            .any(|doubt| matches!(doubt, sayso_review::Uncertainty::Redefined { name: defined } if defined == name))
    };
    let names = script.commands.iter().filter_map(|command| command.words.first()?.as_literal());
    let mut bare = names.filter(|name| !name.contains('/') && !BUILTINS.contains(name));
    bare.any(|name| !is_defined_here(name) && !folders.iter().any(|folder| is_program(&folder.join(name))))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
