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
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "TERM",
    "TZ",
];
const HARMLESS_PREFIXES: &[&str] = &["RUST_", "CARGO_TERM_", "LC_"];

/// Variables by which a program finds code, configuration, helpers or other machines.
const DANGEROUS: &[&str] = &[
    "ALL_PROXY",
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "CPATH",
    "CPPFLAGS",
    "CURL_HOME",
    "CXX",
    "CXXFLAGS",
    "DISPLAY",
    "EDITOR",
    "ENV",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FTP_PROXY",
    "GCONV_PATH",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GOBIN",
    "GOENV",
    "GOFLAGS",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GREP_OPTIONS",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_HOME",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECONFIG",
    "LDFLAGS",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MFLAGS",
    "MORE",
    "NLSPATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PKG_CONFIG_PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "OLDPWD",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUST_TARGET_PATH",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SYSTEMD_EDITOR",
    "TAR_OPTIONS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "VIMINIT",
    "EXINIT",
    "VISUAL",
    "VIRTUAL_ENV",
    "WGETRC",
    "XAUTHORITY",
    "ZDOTDIR",
    "_",
    "_JAVA_OPTIONS",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];
const DANGEROUS_PREFIXES: &[&str] = &[
    "AWS_",
    "BASH",
    "BUNDLE_",
    "CARGO_",
    "COMP_",
    "DOCKER_",
    "DYLD_",
    "FZF_",
    "GEM_",
    "GIT_",
    "GRADLE_",
    "LD_",
    "MALLOC_",
    "MAVEN_",
    "NIX_",
    "NPM_CONFIG_",
    "OPENSSL_",
    "PERL5",
    "PERLDB",
    "PERLLIB",
    "PIP_",
    "PNPM_",
    "PYTHON",
    "SAYSO_",
    "UV_",
    "XDG_",
    "YARN_",
    "npm_config_",
];
/// `PAGER`, `GIT_PAGER`, `MANPAGER` and the like.
const DANGEROUS_SUFFIXES: &[&str] = &["PAGER", "_EDITOR", "_ASKPASS", "_PRELOAD"];

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

/// Variables of a shell that are dropped from an inherited environment, apart from those that begin with `BASH`.
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
