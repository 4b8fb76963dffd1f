//! Well-known programs and what they do with their words, as data.

/// What a program does with its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Writes each operand from this one on.
    WritesFrom(usize),
    /// Writes the last operand, or what `-t` names.
    WritesLast,
    /// Deletes each operand.
    Deletes,
    /// Deletes each operand but the last.
    DeletesAllButLast,
    /// Writes the operands from the second on, or all if the script is an option, when it has `-i`.
    EditsInPlace,
    /// Writes the file named by one of these options.
    WritesOption(&'static [&'static str]),
    /// Writes the operand with this beginning.
    WritesPrefixed(&'static str),
    /// Writes into its directory.
    WritesHere,
    /// Writes into its directory, or the one named by one of these options, when it has one of these flags.
    Unpacks { directory: &'static [&'static str] },
    /// Changes the permissions of each operand from the second on.
    ChangesPermissions,
    /// Talks to other machines, always or with one of these subcommands.
    Fetches(&'static [&'static str]),
    /// Talks to other machines when an operand names one: `host:path`.
    FetchesRemote,
    /// Takes another user's rights.
    Elevates,
    /// Runs code given by one of these options, or on its input.
    RunsCode(&'static [&'static str]),
    /// Ends processes.
    Kills,
    /// Changes the machine.
    System,
    /// Its first operand is no path but a pattern or a script.
    PatternFirst,
    /// Its words are text and no paths.
    Text,
}

/// A program, or several that are alike.
pub(super) struct Program {
    pub(super) names: &'static [&'static str],
    pub(super) acts: &'static [Act],
    /// Options whose value is the next word.
    pub(super) values: &'static [&'static str],
}

const fn program(names: &'static [&'static str], acts: &'static [Act], values: &'static [&'static str]) -> Program {
    Program { names, acts, values }
}

const INSTALL: &[&str] =
    &["install", "i", "add", "ci", "update", "upgrade", "exec", "dlx", "create", "publish", "login", "x", "audit"];
const PACKAGES: &[&str] = &[
    "install",
    "update",
    "upgrade",
    "dist-upgrade",
    "full-upgrade",
    "add",
    "download",
    "source",
    "-S",
    "-Sy",
    "-Syu",
    "-Syyu",
    "tap",
    "reinstall",
    "groupinstall",
];

pub(super) const PROGRAMS: &[Program] = &[
    program(&["rm", "unlink", "rmdir", "shred", "srm", "trash", "trash-put"], &[Act::Deletes], &["-n", "-s"]),
    program(&["cp", "gcp", "ln", "gln"], &[Act::WritesLast], &["-t", "--target-directory", "-S", "--suffix"]),
    program(
        &["install", "ginstall"],
        &[Act::WritesLast],
        &["-t", "-m", "-o", "-g", "-S", "--mode", "--owner", "--group"],
    ),
    program(
        &["mv", "gmv"],
        &[Act::WritesLast, Act::DeletesAllButLast],
        &["-t", "-S", "--target-directory", "--suffix"],
    ),
    program(&["rename", "prename"], &[Act::WritesFrom(1), Act::PatternFirst], &[]),
    program(
        &["tee", "touch", "mkdir", "mkfifo", "truncate", "fallocate", "mktemp"],
        &[Act::WritesFrom(0)],
        &["-m", "--mode", "-s", "--size", "-r", "--reference", "-d", "--date", "-t", "-l", "-o"],
    ),
    program(&["mknod"], &[Act::WritesFrom(0), Act::System], &["-m"]),
    program(&["dd"], &[Act::WritesPrefixed("of=")], &[]),
    program(&["split", "csplit"], &[Act::WritesHere], &["-l", "-b", "-n", "-a", "-C", "-f"]),
    program(&["sed", "gsed"], &[Act::EditsInPlace, Act::PatternFirst], &["-e", "-f", "-l", "--expression", "--file"]),
    program(
        &["perl"],
        &[Act::EditsInPlace, Act::RunsCode(&["-e", "-E"]), Act::PatternFirst],
        &["-e", "-E", "-I", "-M"],
    ),
    program(&["ruby"], &[Act::EditsInPlace, Act::RunsCode(&["-e"])], &["-e", "-I", "-r"]),
    program(&["awk", "gawk", "mawk", "nawk"], &[Act::PatternFirst], &["-f", "-F", "-v"]),
    program(&["patch"], &[Act::WritesHere], &["-p", "-i", "-d", "-o", "-r", "-F", "-B", "-z"]),
    program(
        &["tar", "bsdtar", "gtar"],
        &[Act::Unpacks { directory: &["-C", "--directory"] }],
        &["-C", "-f", "-X", "-T"],
    ),
    program(
        &["unzip", "7z", "7za", "unrar", "cpio", "jar"],
        &[Act::Unpacks { directory: &["-d", "-o"] }],
        &["-d", "-x"],
    ),
    program(&["zip"], &[Act::WritesLast], &["-x", "-i"]),
    program(
        &["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "dos2unix", "unix2dos"],
        &[Act::WritesFrom(0)],
        &["-S", "--suffix"],
    ),
    program(
        &["rsync"],
        &[Act::WritesLast, Act::FetchesRemote],
        &["-e", "--rsh", "--exclude", "--include", "-f", "--filter"],
    ),
    program(&["scp", "sftp"], &[Act::WritesLast, Act::Fetches(&[])], &["-P", "-i", "-o", "-F", "-c", "-S", "-J", "-l"]),
    program(
        &["ssh", "autossh", "mosh", "ftp", "lftp", "nc", "ncat", "netcat", "telnet", "socat"],
        &[Act::Fetches(&[]), Act::Text],
        &[],
    ),
    program(
        &["curl"],
        &[Act::Fetches(&[]), Act::WritesOption(&["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"])],
        &[
            "-o",
            "--output",
            "-H",
            "--header",
            "-d",
            "--data",
            "-X",
            "--request",
            "-u",
            "--user",
            "-A",
            "-e",
            "-b",
            "-F",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "-T",
            "-x",
            "-m",
            "-w",
            "--data-raw",
            "--data-binary",
        ],
    ),
    program(
        &["wget"],
        &[Act::Fetches(&[]), Act::WritesOption(&["-O", "--output-document", "-o", "-P"])],
        &["-O", "-o", "-P", "-U", "-t", "-T", "--output-document", "--header"],
    ),
    program(&["http", "https", "xh", "aria2c", "axel", "fetch"], &[Act::Fetches(&[])], &["-o", "-d"]),
    program(&["sort", "gsort"], &[Act::WritesOption(&["-o", "--output"])], &["-o", "-k", "-t", "-S", "-T"]),
    program(
        &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc", "pandoc", "ffmpeg", "dot"],
        &[Act::WritesOption(&["-o", "--output"])],
        &["-o", "-I", "-L", "-D", "-x"],
    ),
    program(
        &["chmod", "chown", "chgrp", "setfacl", "chattr", "chcon"],
        &[Act::ChangesPermissions],
        &["--reference", "-m", "-x"],
    ),
    program(&["npm", "pnpm", "yarn", "bun"], &[Act::Fetches(INSTALL)], &["--prefix", "-C", "-w", "--cwd"]),
    program(
        &["npx", "bunx", "uvx", "pipx", "gh", "glab", "aws", "gcloud", "az", "kubectl", "helm", "terraform"],
        &[Act::Fetches(&[]), Act::Text],
        &[],
    ),
    program(
        &["pip", "pip3", "poetry", "pdm", "conda", "mamba", "gem", "bundle", "composer", "cpan", "cpanm", "luarocks"],
        &[Act::Fetches(&["install", "download", "add", "update", "require", "create", "lock", "wheel"])],
        &["-r", "-c", "-t", "--target"],
    ),
    program(
        &["uv"],
        &[Act::Fetches(&["pip", "add", "sync", "lock", "tool", "run", "python", "publish"])],
        &["--directory"],
    ),
    program(
        &["cargo"],
        &[Act::Fetches(&["install", "fetch", "add", "update", "publish", "search", "login", "owner", "yank"])],
        &["--manifest-path", "-C"],
    ),
    program(&["go"], &[Act::Fetches(&["get", "install", "mod", "work"])], &["-C", "-o"]),
    program(
        &["apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "apk", "pacman", "brew", "snap", "flatpak", "port"],
        &[Act::Fetches(PACKAGES), Act::System, Act::Text],
        &[],
    ),
    program(
        &["docker", "podman", "nerdctl"],
        &[Act::Fetches(&["pull", "push", "run", "build", "login", "compose"]), Act::Text],
        &[],
    ),
    program(&["sudo", "doas", "pkexec", "su", "runuser", "sudoedit"], &[Act::Elevates, Act::Text], &[]),
    program(&["python", "python2", "python3", "pypy", "pypy3"], &[Act::RunsCode(&["-c"])], &["-c", "-m", "-W", "-X"]),
    program(
        &["node", "nodejs", "bunx", "deno"],
        &[Act::RunsCode(&["-e", "--eval", "-p", "--print", "eval"])],
        &["-e", "-p", "-r"],
    ),
    program(&["php"], &[Act::RunsCode(&["-r", "-R", "-B", "-E"])], &["-r", "-d", "-c"]),
    program(
        &["lua", "luajit", "osascript", "Rscript", "R", "julia", "ghci", "tclsh", "guile", "elixir"],
        &[Act::RunsCode(&["-e", "--eval", "-E"])],
        &["-e", "-l"],
    ),
    program(
        &["vim", "vi", "nvim", "ex", "ed", "emacs", "sqlite3", "gdb"],
        &[Act::RunsCode(&["-c", "--cmd", "--eval", "-eval", "-ex", "-cmd"]), Act::WritesFrom(0)],
        &["-c", "--cmd", "--eval", "-ex"],
    ),
    program(&["kill", "pkill", "killall", "killall5", "skill", "xkill"], &[Act::Kills, Act::Text], &[]),
    program(
        &[
            "shutdown",
            "reboot",
            "halt",
            "poweroff",
            "init",
            "telinit",
            "systemctl",
            "service",
            "launchctl",
            "mkswap",
            "swapon",
            "swapoff",
            "fdisk",
            "sfdisk",
            "gdisk",
            "parted",
            "wipefs",
            "mount",
            "umount",
            "losetup",
            "crontab",
            "at",
            "batch",
            "useradd",
            "userdel",
            "usermod",
            "groupadd",
            "passwd",
            "chpasswd",
            "visudo",
            "iptables",
            "nft",
            "ufw",
            "sysctl",
            "insmod",
            "rmmod",
            "modprobe",
            "hostnamectl",
            "update-grub",
            "blkdiscard",
            "cryptsetup",
            "chsh",
            "mkfs",
            "mke2fs",
            "mkfs.ext4",
            "mkfs.xfs",
            "mkfs.btrfs",
            "mkfs.vfat",
            "newfs",
            "diskutil",
            "loginctl",
        ],
        &[Act::System, Act::Text],
        &[],
    ),
    program(
        &[
            "echo", "printf", "true", "false", ":", "test", "[", "[[", "export", "alias", "expr", "let", "set",
            "unset", "declare", "local", "readonly", "trap", "eval", "type", "which", "basename", "dirname", "sleep",
            "seq",
        ],
        &[Act::Text],
        &[],
    ),
    program(
        &["grep", "egrep", "fgrep", "rg", "ag", "ack", "jq", "yq"],
        &[Act::PatternFirst],
        &["-e", "-f", "-A", "-B", "-C", "-m", "--include", "--exclude", "-g"],
    ),
];

/// Programs whose output is another machine's.
pub(super) const DOWNLOADERS: &[&str] =
    &["curl", "wget", "http", "https", "xh", "aria2c", "fetch", "lynx", "nc", "ncat"];

/// Programs that run what they read.
pub(super) const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "python", "python2", "python3", "perl", "ruby", "node", "php",
    "eval", "source", ".", "deno", "lua",
];

/// Devices that keep nothing.
pub(super) const HARMLESS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
];

impl Program {
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        PROGRAMS.iter().find(|program| program.names.contains(&name))
    }
}
