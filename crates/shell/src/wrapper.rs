//! Table of programs that run another program named in their arguments.

/// Options of a program that runs another one, up to the name of that program.
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
    /// Number of words between the options and the program.
    pub(super) operands: usize,
    pub(super) traits: &'static [WrapperTrait],
}

/// Special behavior of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrapperTrait {
    /// `NAME=value` may stand before the program.
    Assignments,
    /// The wrapper adds arguments.
    AddsArguments,
    /// The wrapper joins the words and gives them to a shell.
    Joins,
    /// Without a program the wrapper runs a shell.
    IsShell,
}

/// Role of the word behind an option of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextWord {
    /// An option, an operand or the program.
    Independent,
    Value,
    /// Not known, because the table lacks the option.
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
        traits: &[WrapperTrait::Assignments, WrapperTrait::IsShell],
        ..PLAIN
    },
    Wrapper { names: &["doas"], flags: "Lns", values: "Cu", traits: &[WrapperTrait::IsShell], ..PLAIN },
    Wrapper {
        names: &["pkexec"],
        long_flags: &["disable-internal-agent", "keep-cwd"],
        long_values: &["user"],
        traits: &[WrapperTrait::IsShell],
        ..PLAIN
    },
    Wrapper {
        names: &["env"],
        flags: "i0v",
        values: "uCP",
        long_flags: &["ignore-environment", "null", "debug", "list-signal-handling"],
        long_values: &["unset", "chdir", "argv0"],
        traits: &[WrapperTrait::Assignments],
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
        traits: &[WrapperTrait::AddsArguments],
        ..PLAIN
    },
    Wrapper {
        names: &["parallel"],
        flags: "0kmXtuv",
        values: "aIjJnNSCPd",
        long_flags: &["null", "keep-order", "dry-run", "bar", "progress", "line-buffer", "pipe", "group", "ungroup"],
        long_values: &["jobs", "max-args", "max-procs", "colsep", "joblog", "delay", "timeout", "retries", "halt"],
        traits: &[WrapperTrait::AddsArguments, WrapperTrait::Joins],
        ..PLAIN
    },
    Wrapper { names: &["stdbuf"], values: "ioe", long_values: &["input", "output", "error"], ..PLAIN },
    Wrapper { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
    Wrapper {
        names: &["chroot"],
        long_flags: &["skip-chdir"],
        long_values: &["userspec", "groups"],
        operands: 1,
        traits: &[WrapperTrait::IsShell],
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
        traits: &[WrapperTrait::Joins],
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

    pub(super) fn has(&self, what: WrapperTrait) -> bool {
        self.traits.contains(&what)
    }

    /// Returns the role of the word behind an option, which is given with its dashes.
    pub(super) fn option(&self, option: &str) -> NextWord {
        if let Some(long) = option.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return match (self.long_values.contains(&name), value) {
                (true, None) => NextWord::Value,
                (true, Some(_)) => NextWord::Independent,
                (false, _) if self.long_flags.contains(&name) => NextWord::Independent,
                _ => NextWord::Unknown,
            };
        }
        let letters = option.trim_start_matches('-');
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return if at + letter.len_utf8() == letters.len() { NextWord::Value } else { NextWord::Independent };
            }
            if self.attached.contains(letter) {
                return NextWord::Independent;
            }
            if !self.flags.contains(letter) {
                return NextWord::Unknown;
            }
        }
        NextWord::Independent
    }
}
