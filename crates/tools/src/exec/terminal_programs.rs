//! Programs that belong in a terminal of the user: they need a keyboard, or run for long.
//!
//! The list is data. It suggests a place for a command; it decides nothing about safety. Unknown programs run inside.

use sayso_shell::Script;

use crate::step::TerminalReason;

/// ProgramKind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramKind {
    /// Needs a keyboard or a screen.
    Interactive,
    /// Downloads, serves or watches.
    Heavy,
}

/// Arguments for which a row holds.
#[derive(Clone, Copy, Debug)]
enum ArgumentCondition {
    Always,
    /// The first arguments without options are these words.
    Words(&'static [&'static str]),
    /// One of these options is given.
    Options(&'static [&'static str]),
    /// The first argument without options is this word, and one of these options is given.
    WordWith(&'static str, &'static [&'static str]),
    /// The first argument without options is this word, and none of these options is given.
    WordWithout(&'static str, &'static [&'static str]),
    /// There are no arguments.
    Bare,
    /// There are at most this many arguments without options.
    UpTo(usize),
    /// None of these options is given, and standard input is a terminal.
    Without(&'static [&'static str]),
}

use ArgumentCondition::{Always, Bare, Options, UpTo, Without, WordWith, WordWithout, Words};
use ProgramKind::{Heavy, Interactive};

/// Options that give `git commit` and relatives their message.
const MESSAGE: &[&str] =
    &["-m", "-am", "-F", "-C", "-c", "--message", "--file", "--no-edit", "--fixup", "--reuse-message"];

/// Rows by program. The first row that holds decides.
const ROWS: &[(&[&str], ArgumentCondition, ProgramKind)] = &[
    // Editors.
    (&["vi", "vim", "nvim", "nano", "pico", "micro", "hx", "helix", "joe", "mcedit", "ed"], Always, Interactive),
    (&["emacs"], Without(&["--batch", "-batch", "--script"]), Interactive),
    // Pagers.
    (&["less", "more", "most", "man", "info"], Always, Interactive),
    // Monitors and file managers.
    (&["top"], Without(&["-b", "-bn1", "-n"]), Interactive),
    (
        &["htop", "btop", "atop", "iotop", "watch", "mc", "ranger", "nnn", "lf", "lazygit", "tig", "fzf"],
        Always,
        Interactive,
    ),
    (&["tmux", "screen", "zellij"], Bare, Interactive),
    // Interpreters without a script.
    (&["python", "python3", "node", "irb", "ghci", "lua", "R", "julia", "iex", "bc", "gdb", "lldb"], Bare, Interactive),
    (&["psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongosh"], UpTo(1), Interactive),
    // Other machines, and questions for credentials.
    (&["ssh"], UpTo(1), Interactive),
    (&["telnet", "ftp", "sftp"], Always, Interactive),
    (&["sudo"], Without(&["-n", "--non-interactive"]), Interactive),
    (&["su", "passwd", "visudo", "ssh-keygen"], Always, Interactive),
    (&["gh"], Words(&["auth", "login"]), Interactive),
    (
        &["npm", "pnpm", "yarn", "docker", "podman", "az", "vercel", "heroku", "netlify", "fly", "wrangler"],
        Words(&["login"]),
        Interactive,
    ),
    (&["cargo"], Words(&["login"]), Interactive),
    (&["gcloud"], Words(&["auth", "login"]), Interactive),
    (&["aws"], Words(&["configure"]), Interactive),
    // Git with an editor or questions.
    (&["git"], WordWith("rebase", &["-i", "--interactive"]), Interactive),
    (&["git"], WordWith("add", &["-p", "--patch", "-i", "--interactive", "-e", "--edit"]), Interactive),
    (&["git"], WordWith("checkout", &["-p", "--patch"]), Interactive),
    (&["git"], WordWith("stash", &["-p", "--patch"]), Interactive),
    (&["git"], WordWithout("commit", MESSAGE), Interactive),
    (&["git"], Words(&["mergetool"]), Interactive),
    (&["git"], Words(&["difftool"]), Interactive),
    // Questions about a new project.
    (&["npm", "pnpm", "yarn"], WordWithout("init", &["-y", "--yes"]), Interactive),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["create"]), Interactive),
    (&["docker", "podman"], WordWith("run", &["-it", "-ti", "-i", "-t", "--interactive", "--tty"]), Interactive),
    (&["docker", "podman"], WordWith("exec", &["-it", "-ti", "-i", "-t", "--interactive", "--tty"]), Interactive),
    // Downloads and installations.
    (&["npm"], Words(&["install"]), Heavy),
    (&["npm"], Words(&["i"]), Heavy),
    (&["npm"], Words(&["ci"]), Heavy),
    (&["npm"], Words(&["update"]), Heavy),
    (
        &["pnpm", "bun", "yarn", "poetry", "bundle", "composer", "gem", "brew", "conda", "mamba", "pod"],
        Words(&["install"]),
        Heavy,
    ),
    (&["pnpm", "bun", "yarn", "poetry"], Words(&["add"]), Heavy),
    (&["pnpm"], Words(&["i"]), Heavy),
    (&["yarn"], Bare, Heavy),
    (&["pip", "pip3", "pipx", "cargo", "go", "rustup", "dotnet"], Words(&["install"]), Heavy),
    (&["rustup"], Words(&["update"]), Heavy),
    (&["uv"], Words(&["sync"]), Heavy),
    (&["uv"], Words(&["pip", "install"]), Heavy),
    (&["apt", "apt-get", "dnf", "yum", "apk"], Words(&["install"]), Heavy),
    (&["apt", "apt-get", "dnf", "yum", "apk"], Words(&["upgrade"]), Heavy),
    (&["pacman"], Options(&["-S", "-Syu", "-Sy"]), Heavy),
    (&["docker", "podman"], Words(&["build"]), Heavy),
    (&["docker", "podman"], Words(&["pull"]), Heavy),
    (&["docker", "podman"], WordWithout("compose", &["-d", "--detach"]), Heavy),
    (&["playwright"], Words(&["install"]), Heavy),
    (&["npx"], Words(&["playwright", "install"]), Heavy),
    // Servers and watchers.
    (&["npm", "pnpm", "yarn", "bun"], Words(&["start"]), Heavy),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["dev"]), Heavy),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["run", "dev"]), Heavy),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["run", "start"]), Heavy),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["run", "watch"]), Heavy),
    (&["npm", "pnpm", "yarn", "bun"], Words(&["run", "serve"]), Heavy),
    (&["vite"], Bare, Heavy),
    (&["next", "nuxt", "astro"], Words(&["dev"]), Heavy),
    (&["nodemon", "uvicorn", "gunicorn"], Always, Heavy),
    (&["flask"], Words(&["run"]), Heavy),
    (&["rails"], Words(&["server"]), Heavy),
    (&["cargo"], Words(&["watch"]), Heavy),
    (&["tsc", "jest", "vitest", "webpack", "esbuild", "tailwindcss"], Options(&["-w", "--watch"]), Heavy),
    (&["tail", "journalctl"], Options(&["-f", "-F", "--follow"]), Heavy),
];

/// Returns the reason to run a script in a terminal of the user, or `None` to run it inside. Interactive programs come before
/// heavy ones.
pub fn terminal_reason(script: &str) -> Option<TerminalReason> {
    let script = Script::parse(script);
    let mut heavy = None;
    for (index, command) in script.commands.iter().enumerate() {
        let words: Option<Vec<&str>> = command.words.iter().map(|word| word.as_literal()).collect();
        // A program is known by its literal words. With others, only the literal ones before them count.
        let words = words.unwrap_or_else(|| command.words.iter().map_while(|word| word.as_literal()).collect());
        let Some((program, arguments)) = words.split_first() else { continue };
        let program = program.rsplit('/').next().unwrap_or(program);
        let is_fed = command.fed_by.is_some_and(|feeder| feeder < index) || !command.redirects.is_empty();
        match row(program, arguments, is_fed) {
            Some((program, Interactive)) => return Some(TerminalReason::Interactive { program }),
            Some((program, Heavy)) => heavy = heavy.or(Some(TerminalReason::Heavy { program })),
            None => {}
        }
    }
    heavy
}

/// Finds the first row that holds. Returns the program with the words that identify the row.
fn row(program: &str, arguments: &[&str], is_fed: bool) -> Option<(String, ProgramKind)> {
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let has = |options: &[&str]| {
        let is_option = |word: &&str| {
            let name = word.split('=').next().unwrap_or(word);
            // `-mtext` is `-m text`.
            options.iter().any(|option| *option == name || (option.len() == 2 && is_short_with_value(word, option)))
        };
        arguments.iter().any(is_option)
    };
    for (_, when, kind) in ROWS.iter().filter(|(programs, ..)| programs.contains(&program)) {
        let words: &[&str] = match when {
            Always => &[],
            Words(words) if plain.starts_with(words) => words,
            Options(options) if has(options) => &[],
            WordWith(word, options) if plain.first() == Some(word) && has(options) => std::slice::from_ref(word),
            WordWithout(word, options) if plain.first() == Some(word) && !has(options) => std::slice::from_ref(word),
            Bare if arguments.is_empty() && !is_fed => &[],
            UpTo(count) if plain.len() <= *count && !is_fed && !has(&["-c", "-e", "-f"]) => &[],
            Without(options) if !has(options) => &[],
            _ => continue,
        };
        let name = std::iter::once(&program).chain(words).copied().collect::<Vec<_>>().join(" ");
        return Some((name, *kind));
    }
    None
}

/// `true` if a word is a short option with its value attached.
fn is_short_with_value(word: &str, option: &str) -> bool {
    word.len() > 2 && word.starts_with(option) && !word.starts_with("--") && option == "-m"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(script: &str) -> String {
        match terminal_reason(script) {
            None => String::new(),
            Some(TerminalReason::Requested) => "requested".to_owned(),
            Some(TerminalReason::Interactive { program }) => format!("interactive {program}"),
            Some(TerminalReason::Heavy { program }) => format!("heavy {program}"),
        }
    }

    #[test]
    fn interactive_programs_are_found() {
        for (script, expected) in [
            ("vim a", "interactive vim"),
            ("/usr/bin/less a", "interactive less"),
            ("cargo build | less", "interactive less"),
            ("python3", "interactive python3"),
            ("git rebase -i HEAD~3", "interactive git rebase"),
            ("git add -p", "interactive git add"),
            ("git commit", "interactive git commit"),
            ("npm init", "interactive npm init"),
            ("gh auth login --web", "interactive gh auth login"),
            ("ssh host", "interactive ssh"),
            ("docker run -it alpine", "interactive docker run"),
            ("cd web && sudo make install", "interactive sudo"),
            ("npm install && vim a", "interactive vim"),
        ] {
            assert_eq!(reason(script), expected, "{script}");
        }
    }

    #[test]
    fn heavy_programs_are_found() {
        for (script, expected) in [
            ("npm install", "heavy npm install"),
            ("cd web && npm ci --silent", "heavy npm ci"),
            ("yarn", "heavy yarn"),
            ("npm run dev", "heavy npm run dev"),
            ("pip install -r requirements.txt", "heavy pip install"),
            ("tail -f log", "heavy tail"),
            ("docker compose up", "heavy docker compose"),
        ] {
            assert_eq!(reason(script), expected, "{script}");
        }
    }

    #[test]
    fn quiet_commands_run_inside() {
        for script in [
            "cargo test",
            "git commit -m 'x'",
            "git commit -mtext",
            "git commit --message=x",
            "git log --oneline",
            "npm test",
            "npm run build",
            "npm init -y",
            "python3 -c 'print(1)'",
            "echo 1 | python3",
            "python3 < script.py",
            "sqlite3 db 'select 1'",
            "top -b -n 1",
            "docker compose up -d",
            "tail -n 3 log",
            "ssh host uptime",
            "sudo -n true",
            "echo vim",
            "$EDITOR a",
            "",
        ] {
            assert_eq!(reason(script), "", "{script}");
        }
    }
}
