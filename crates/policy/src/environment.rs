//! Variables in front of a command: those that change its output only, and those that change what runs.

/// Names that change how much a program prints, in which language and colour, and the like.
const HARMLESS: &[&str] = &[
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_TERM_QUIET",
    "CARGO_TERM_VERBOSE",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "DEBUG",
    "FORCE_COLOR",
    "GOMAXPROCS",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOG_LEVEL",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    "NO_COLOR",
    "NPM_CONFIG_LOGLEVEL",
    "PROPTEST_CASES",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RAYON_NUM_THREADS",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_LOG_STYLE",
    "RUST_MIN_STACK",
    "RUST_TEST_NOCAPTURE",
    "RUST_TEST_SHUFFLE",
    "RUST_TEST_THREADS",
    "RUST_TEST_TIME_UNIT",
    "TERM",
    "TZ",
    "VERBOSE",
];

/// Names that decide which programs run, which code they load or where they look for it.
const DANGEROUS: &[&str] = &[
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CXX",
    "DISPLAY",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LD",
    "LINKER",
    "LOCPATH",
    "MAKEFILES",
    "MAKESHELL",
    "NLSPATH",
    "OLDPWD",
    "PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RUSTC",
    "RUSTDOC",
    "RUSTFMT",
    "SHELL",
    "SHELLOPTS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMPDIR",
    "TZDIR",
    "USER",
    "VISUAL",
];

const DANGEROUS_PREFIXES: &[&str] = &[
    "BASH",
    "CARGO_",
    "COMPOSER_",
    "CURL_",
    "DENO_",
    "DOCKER_",
    "DYLD_",
    "GCC_",
    "GEM_",
    "GIT_",
    "GO",
    "GRADLE_",
    "HG",
    "JAVA_",
    "JDK_",
    "KUBE",
    "LD_",
    "LESS",
    "LUA_",
    "MAKE",
    "MALLOC_",
    "MAN",
    "MAVEN_",
    "MVN_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PIP_",
    "POETRY_",
    "PYTEST_",
    "PYTHON",
    "RSYNC_",
    "RUBY",
    "RUSTC_",
    "RUSTDOC",
    "RUSTUP_",
    "SSH_",
    "SSL_",
    "SUDO_",
    "SYSTEMD_",
    "UV_",
    "WGET",
    "XDG_",
    "YARN_",
    "ZDOT",
    "npm_config_",
];

const DANGEROUS_SUFFIXES: &[&str] = &[
    "PAGER", "EDITOR", "FLAGS", "_OPTIONS", "_OPTS", "_COMMAND", "_CMD", "_WRAPPER", "_PROXY", "_proxy", "_PATH",
    "_SHELL", "_RUNNER", "_LINKER", "_CONFIG", "_PRELOAD", "_BIN", "_EXEC",
];

/// `true` for a variable that does not hinder a rule from covering the command behind it.
pub(crate) fn is_harmless(name: &str) -> bool {
    HARMLESS.binary_search(&name).is_ok() || (name.starts_with("LC_") && name.len() > 3)
}

/// `true` for a variable that no script sets without a question.
pub(crate) fn is_dangerous(name: &str) -> bool {
    if is_harmless(name) {
        return false;
    }
    DANGEROUS.contains(&name)
        || DANGEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || DANGEROUS_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// The name that an assignment sets, if it is a plain one: no array, no `+=`.
pub(crate) fn assigned_name(assignment: &str) -> Option<&str> {
    let (name, _) = assignment.split_once('=')?;
    is_name(name).then_some(name)
}

/// `true` for a variable's name without a subscript, in which a shell would evaluate code.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_names_are_sorted_and_never_dangerous() {
        assert!(HARMLESS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(HARMLESS.iter().all(|name| !is_dangerous(name)));
    }

    #[test]
    fn names_that_load_code_are_dangerous() {
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
