//! Assignments of environment variables, by their [`VariableClass`].

use sayso_shell::program::{VariableClass, is_name, variable_class};

/// `true` for a variable that an allow rule tolerates before a command.
pub(crate) fn is_harmless(name: &str) -> bool {
    variable_class(name) == VariableClass::Harmless
}

/// `true` for a variable whose assignment is always asked about.
pub(crate) fn is_dangerous(name: &str) -> bool {
    variable_class(name) == VariableClass::Dangerous
}

/// Returns the name in a plain `NAME=value`; `None` for an array element or `+=`.
pub(crate) fn assigned_name(assignment: &str) -> Option<&str> {
    let (name, _) = assignment.split_once('=')?;
    is_name(name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_code_are_dangerous() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "IFS",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "GIT_PAGER",
            "PAGER",
            "MANPAGER",
            "EDITOR",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "NODE_PATH",
            "RUSTC_WRAPPER",
            "RUSTFLAGS",
            "RUSTC",
            "RUSTDOCFLAGS",
            "CARGO_BUILD_RUSTC",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "GOFLAGS",
            "MAKEFLAGS",
            "PERL5OPT",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "PYTHONSTARTUP",
            "LESSOPEN",
            "DYLD_INSERT_LIBRARIES",
            "CC",
            "PROMPT_COMMAND",
            "HTTP_PROXY",
            "npm_config_script_shell",
        ] {
            assert!(is_dangerous(name) && !is_harmless(name), "{name}");
        }
        for name in
            ["RUST_LOG", "RUST_BACKTRACE", "CI", "NO_COLOR", "NODE_ENV", "LC_ALL", "TZ", "PYTHONDONTWRITEBYTECODE"]
        {
            assert!(is_harmless(name), "{name}");
        }
    }
}
