//! Names of variables by the harm that setting them can do.

/// Effect that setting a variable can have on programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableClass {
    /// Changes messages, colors or logs only: `CI`, `NO_COLOR`, `RUST_LOG`.
    Harmless,
    /// Unknown to the tables; a program may read it for any purpose.
    Other,
    /// Decides which code or which configuration a program loads: `PATH`, `LD_PRELOAD`, `GIT_SSH`.
    Dangerous,
}

const HARMLESS: &[&str] = &[
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
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
const HARMLESS_PREFIXES: &[&str] = &["LC_"];

/// Variables by which a program finds code, configuration, helpers or other machines.
const DANGEROUS: &[&str] = &[
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CPATH",
    "CXX",
    "DISPLAY",
    "ENV",
    "EXECIGNORE",
    "EXINIT",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "GLOBIGNORE",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LD",
    "LINKER",
    "LOCPATH",
    "MORE",
    "NLSPATH",
    "OLDPWD",
    "PATH",
    "POSIXLY_CORRECT",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RUSTC",
    "RUSTFMT",
    "SHELL",
    "SHELLOPTS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMPDIR",
    "TZDIR",
    "USER",
    "VIMINIT",
    "VIRTUAL_ENV",
    "VISUAL",
    "XAUTHORITY",
    "_",
];
const DANGEROUS_PREFIXES: &[&str] = &[
    "AWS_",
    "BASH",
    "BUNDLE_",
    "CARGO_",
    "COMPOSER_",
    "COMP_",
    "CURL_",
    "DENO_",
    "DOCKER_",
    "DYLD_",
    "FZF_",
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
    "NIX_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PIP_",
    "PNPM_",
    "POETRY_",
    "PYTEST_",
    "PYTHON",
    "RSYNC_",
    "RUBY",
    "RUSTC_",
    "RUSTDOC",
    "RUSTUP_",
    "SAYSO_",
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
    "EDITOR", "FLAGS", "PAGER", "_ASKPASS", "_BIN", "_CMD", "_COMMAND", "_CONFIG", "_EXEC", "_LINKER", "_OPTIONS",
    "_OPTS", "_PATH", "_PRELOAD", "_PROXY", "_RUNNER", "_SHELL", "_WRAPPER", "_proxy",
];

/// Variables whose value only a shell makes.
const SHELL_MADE: &[&str] = &[
    "COPROC",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "HOSTNAME",
    "HOSTTYPE",
    "LINENO",
    "MACHTYPE",
    "MAPFILE",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "READLINE_LINE",
    "REPLY",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "UID",
    "_",
];

/// Shell variables that the runner drops from an inherited environment. It also drops every `BASH*`.
const DROPPED: &[&str] = &[
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "FIGNORE",
    "GLOBIGNORE",
    "IFS",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "SHELLOPTS",
    "TIMEFORMAT",
    "_",
];

/// Class of a variable by its name.
pub fn variable_class(name: &str) -> VariableClass {
    if HARMLESS.contains(&name) {
        return VariableClass::Harmless;
    }
    if DANGEROUS.contains(&name)
        || is_shell_made(name)
        || DANGEROUS_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
    {
        return VariableClass::Dangerous;
    }
    if HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return VariableClass::Harmless;
    }
    if DANGEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return VariableClass::Dangerous;
    }
    VariableClass::Other
}

/// `false` for variables that change how a shell reads a script; the runner drops them.
pub fn is_inherited(name: &str) -> bool {
    !name.starts_with("BASH") && !DROPPED.contains(&name)
}

/// `true` for variables that a shell sets by itself.
pub(super) fn is_shell_made(name: &str) -> bool {
    SHELL_MADE.contains(&name) || name.starts_with("BASH") || name == "IFS" || name == "OPTIND"
}

/// `true` if a text can be the name of a variable.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
