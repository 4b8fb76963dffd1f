//! What git subcommands appear to do.

use sayso_shell::{SimpleCommand, Word};

use super::effect::Effect;
use super::judge::{Arguments, Judge, unknown};

/// Options before the subcommand that take a word.
const GLOBAL_VALUES: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// Subcommands that talk to other machines.
const NETWORK: &[&str] = &["clone", "fetch", "pull", "push", "ls-remote", "submodule", "archive", "send-email", "svn"];

/// The subcommand and the words behind it.
pub fn subcommand(words: &[Word]) -> Option<(&str, &[Word])> {
    let mut rest = words.get(1..)?;
    loop {
        let word = rest.first()?.as_literal()?;
        if !word.starts_with('-') {
            return Some((word, &rest[1..]));
        }
        rest = rest.get(if GLOBAL_VALUES.contains(&word) { 2 } else { 1 }..)?;
    }
}

pub(super) fn judge(judge: &mut Judge<'_>, command: &SimpleCommand) {
    let Some((name, words)) = subcommand(&command.words) else { return };
    let arguments = Arguments::of(words, &["-m", "-b", "-B", "-e", "-s", "--source"]);
    let operand = |index: usize| arguments.operands.get(index).map_or("", |word| word.text.as_str());
    if NETWORK.contains(&name) || (name == "remote" && operand(0) == "update") {
        judge.effect(Effect::Fetches { what: command.to_string() });
    }
    let has_separator = words.iter().any(|word| word.text == "--");
    let loses = match name {
        "reset" => arguments.has("", &["hard", "merge", "keep"]),
        "clean" => !arguments.has("n", &["dry-run"]),
        "checkout" => {
            has_separator
                || arguments.has("f", &["force", "ours", "theirs", "pathspec-from-file"])
                || arguments.operands.iter().any(|word| matches!(word.text.as_str(), "." | "./" | ":/"))
                || (arguments.operands.len() > 1 && !arguments.has("bB", &["orphan", "track"]))
        }
        "switch" => arguments.has("fC", &["force", "discard-changes", "force-create"]),
        "restore" => !arguments.has("S", &["staged"]) || arguments.has("W", &["worktree"]),
        "push" => {
            arguments.has("fd", &["force", "force-with-lease", "mirror", "delete", "prune"])
                || arguments.operands.iter().any(|word| word.text.starts_with(['+', ':']))
        }
        "branch" => {
            arguments.has("DM", &["force"]) || (arguments.has("d", &["delete"]) && arguments.has("f", &["force"]))
        }
        "tag" => arguments.has("df", &["delete", "force"]),
        "stash" => matches!(operand(0), "drop" | "clear" | "pop"),
        "commit" => arguments.has("", &["amend"]),
        "rebase" => !arguments.has("", &["abort", "continue", "show-current-patch"]),
        "reflog" => matches!(operand(0), "expire" | "delete"),
        "worktree" => operand(0) == "remove" && arguments.has("f", &["force"]),
        "update-ref" => arguments.has("d", &[]),
        "gc" => arguments.has("", &["prune"]),
        "filter-branch" | "filter-repo" | "replace" | "prune" => true,
        _ => false,
    };
    if loses {
        judge.effect(Effect::RewritesHistory { command: command.to_string() });
    }
    match name {
        "rm" if !arguments.has("n", &["dry-run", "cached"]) => {
            for word in &arguments.operands {
                judge.delete(command, word, arguments.has("r", &[]));
            }
        }
        "mv" => {
            for word in arguments.operands.iter().rev().skip(1) {
                judge.delete(command, word, false);
            }
            judge.writes_here(command);
        }
        // What is named is overwritten by what git has; where nothing is, it may be anything.
        "checkout" | "restore" if loses => {
            let behind = words.iter().position(|word| word.text == "--").map(|at| &words[at + 1..]);
            match behind {
                Some(paths) if !paths.is_empty() => {
                    for word in paths {
                        judge.write(command, word);
                    }
                }
                _ => {
                    for word in &arguments.operands {
                        judge.write(command, word);
                    }
                    // The words may name commits, and then all files are meant.
                    if name == "checkout" || arguments.operands.is_empty() {
                        judge.writes_here(command);
                    }
                }
            }
        }
        "reset" | "switch" if loses => judge.writes_here(command),
        "stash" if matches!(operand(0), "" | "push" | "save" | "pop" | "apply") => judge.writes_here(command),
        "clean" if loses => judge.delete(command, &unknown("untracked files"), arguments.has("d", &[])),
        "apply" if !arguments.has("", &["check", "stat", "numstat", "summary"]) => judge.writes_here(command),
        "am" | "merge" | "pull" | "cherry-pick" | "revert" | "clone" => judge.writes_here(command),
        _ => {}
    }
}
