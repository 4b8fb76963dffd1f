//! Programs that run the program named in their arguments, as data.

/// How to find the program within the arguments of another one.
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Options of one letter without a value.
    flags: &'static str,
    /// Options of one letter with a value, which may be the next word.
    values: &'static str,
    /// Options of one letter whose value can only stand in the same word.
    attached: &'static str,
    long_flags: &'static [&'static str],
    long_values: &'static [&'static str],
    /// How many words stand between the options and the program.
    pub(super) operands: usize,
    /// What else is special.
    pub(super) traits: &'static [Trait],
}

/// What is special about a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    /// `NAME=value` may stand before the program.
    Assignments,
    /// More arguments are added.
    AddsArguments,
    /// The words are joined and given to a shell.
    Joins,
    /// Without a program it runs a shell.
    IsShell,
}

/// What an option of a wrapper says about the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is looked at by itself.
    Free,
    /// It is the option's value.
    Value,
    /// Nobody knows.
    Unknown,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    flags: "",
    values: "",
    attached: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    traits: &[],
};

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo", "sudoedit"],
        flags: "ABbEeHiKklnNPSsVv",
        values: "CDghprRtTuU",
        long_flags: &[
            "askpass",
            "background",
            "bell",
            "edit",
            "help",
            "list",
            "login",
            "no-update",
            "non-interactive",
            "preserve-env",
            "preserve-groups",
            "remove-timestamp",
            "reset-timestamp",
            "set-home",
            "shell",
            "stdin",
            "validate",
            "version",
        ],
        long_values: &[
            "chdir",
            "chroot",
            "close-from",
            "command-timeout",
            "group",
            "host",
            "other-user",
            "prompt",
            "role",
            "type",
            "user",
        ],
        traits: &[Trait::Assignments, Trait::IsShell],
        ..PLAIN
    },
    Wrapper { names: &["doas"], flags: "Lns", values: "Cu", traits: &[Trait::IsShell], ..PLAIN },
    Wrapper {
        names: &["pkexec"],
        long_flags: &["disable-internal-agent", "keep-cwd"],
        long_values: &["user"],
        traits: &[Trait::IsShell],
        ..PLAIN
    },
    Wrapper {
        names: &["env"],
        flags: "i0v",
        values: "uCP",
        long_flags: &["ignore-environment", "null", "debug", "list-signal-handling"],
        long_values: &["unset", "chdir", "argv0"],
        traits: &[Trait::Assignments],
        ..PLAIN
    },
    Wrapper { names: &["nohup", "unbuffer", "builtin", "busybox", "toybox", "fakeroot"], ..PLAIN },
    Wrapper { names: &["nice"], flags: "0123456789", values: "n", long_values: &["adjustment"], ..PLAIN },
    Wrapper {
        names: &["ionice"],
        flags: "t",
        values: "cnpPu",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..PLAIN
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "fpv",
        values: "ks",
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["time", "gtime"],
        flags: "apqvV",
        values: "fo",
        long_flags: &["append", "portability", "quiet", "verbose"],
        long_values: &["format", "output"],
        ..PLAIN
    },
    Wrapper { names: &["command"], flags: "p", ..PLAIN },
    Wrapper { names: &["exec"], flags: "cl", values: "a", ..PLAIN },
    Wrapper {
        names: &["xargs", "gxargs"],
        flags: "0rtpxo",
        values: "adEILnPs",
        attached: "eil",
        long_flags: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "show-limits",
            "replace",
        ],
        long_values: &["arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"],
        traits: &[Trait::AddsArguments],
        ..PLAIN
    },
    Wrapper {
        names: &["parallel"],
        flags: "0kmXtuv",
        values: "aIjJnNSCPd",
        long_flags: &["null", "keep-order", "dry-run", "bar", "progress", "line-buffer", "pipe", "group", "ungroup"],
        long_values: &["jobs", "max-args", "max-procs", "colsep", "joblog", "delay", "timeout", "retries", "halt"],
        traits: &[Trait::AddsArguments, Trait::Joins],
        ..PLAIN
    },
    Wrapper { names: &["stdbuf"], values: "ioe", long_values: &["input", "output", "error"], ..PLAIN },
    Wrapper { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
    Wrapper {
        names: &["chroot"],
        long_flags: &["skip-chdir"],
        long_values: &["userspec", "groups"],
        operands: 1,
        traits: &[Trait::IsShell],
        ..PLAIN
    },
    Wrapper { names: &["strace", "ltrace"], flags: "cCdfFhiqrtTvVwxyzZknY", values: "abeEIoOpPsSuUX", ..PLAIN },
    Wrapper { names: &["taskset"], flags: "apc", long_flags: &["cpu-list", "all-tasks"], operands: 1, ..PLAIN },
    Wrapper { names: &["chrt"], flags: "abdfioprvR", values: "TPD", operands: 1, ..PLAIN },
    Wrapper {
        names: &["flock"],
        flags: "sxeunoFv",
        values: "wE",
        long_flags: &["shared", "exclusive", "unlock", "nonblock", "close", "no-fork", "verbose"],
        long_values: &["timeout", "wait", "conflict-exit-code"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["watch"],
        flags: "bcdegptwxC",
        values: "nq",
        long_flags: &["beep", "color", "differences", "errexit", "chgexit", "no-title", "precise", "exec", "no-wrap"],
        long_values: &["interval", "equexit"],
        traits: &[Trait::Joins],
        ..PLAIN
    },
];

/// Programs that read a script.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash"];

/// Programs that take a script behind `-c`, and without one run a shell.
pub(super) const WITH_SCRIPT_OPTION: &[&str] = &["su", "runuser", "script"];

impl Wrapper {
    pub(super) fn of(program: &str) -> Option<&'static Self> {
        WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&program))
    }

    pub(super) fn has(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }

    /// What an option, with its dash, says about the word behind it.
    pub(super) fn option(&self, option: &str) -> Next {
        if let Some(long) = option.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return match (self.long_values.contains(&name), value) {
                (true, None) => Next::Value,
                (true, Some(_)) => Next::Free,
                (false, _) if self.long_flags.contains(&name) => Next::Free,
                _ => Next::Unknown,
            };
        }
        let letters = option.trim_start_matches('-');
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return if at + letter.len_utf8() == letters.len() { Next::Value } else { Next::Free };
            }
            if self.attached.contains(letter) {
                return Next::Free;
            }
            if !self.flags.contains(letter) {
                return Next::Unknown;
            }
        }
        Next::Free
    }
}
