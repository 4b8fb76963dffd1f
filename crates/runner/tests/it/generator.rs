//! Random scripts of the grammar, the same for the same seed.

/// Words that are hard in one way or another.
const WORDS: &[&str] = &[
    "a",
    "b.txt",
    "-n",
    "--",
    "-",
    "*.txt",
    "'a b'",
    "\"$x\"",
    "$x",
    "$y",
    "${y}z",
    "\"a $y\"",
    "$(p1 in)",
    "\"$(p2 'q r')\"",
    "{a,b}",
    "x{1..3}",
    "~",
    "''",
    "\"\"",
    "\\$x",
    "'$x'",
    "$'a\\tb'",
    "?.txt",
    "[ab].txt",
    "a\\ b",
    "\"*\"",
    "$z",
    "$?",
    "nomatch*",
    "a=b",
    "{}",
    "x\\;y",
    "'; p3 evil'",
    "\"$x\"$y",
    "$x$y",
    "src/*",
    "#no",
    "a#b",
    "\"`\"",
    "é",
    "'\n'",
    "!",
];
/// Values of variables, some of which look like code.
const VALUES: &[&str] = &[
    "1",
    "'a b'",
    "'*.txt'",
    "'$(p3 evil)'",
    "'; p3 evil'",
    "'-rf'",
    "''",
    "$x",
    "\"$y more\"",
    "$(p1 value)",
    "'\\*'",
    "*.txt",
    "'a\nb'",
    "'`p3`'",
    "'{a,b}'",
    "'  lead'",
    "\"a'b\"",
    "'[ab].txt'",
    "~",
];
const NAMES: &[&str] = &["x", "y", "z"];
const FILES: &[&str] = &["o1", "o2", "\"$x\"", "o$y", "/dev/null", "src/o3", "nope/o4", "'o 5'"];
const INPUTS: &[&str] = &["a.txt", "list", "nope", "/dev/null", "\"$x\""];

/// Seeds of the scripts to check: as many as `SAYSO_ORACLE_CASES` says, from `SAYSO_ORACLE_FIRST` on. Without these variables
/// few enough for a test run.
pub(crate) fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("SAYSO_ORACLE_FIRST").unwrap_or(0);
    first..first + number("SAYSO_ORACLE_CASES").unwrap_or(default)
}

pub(crate) struct Generator {
    state: u64,
    budget: usize,
    commands: &'static [&'static str],
}

impl Generator {
    /// Scripts of builtins and harmless programs of the system.
    pub(crate) fn new(seed: u64) -> Self {
        Self::with_commands(
            seed,
            &["echo", "printf '<%s>\\n'", "cat", "true", "false", "echo -n", "ls", "wc -c", "env printf '%s|'"],
        )
    }

    /// Scripts of the recording programs `p1` to `p4`.
    pub(crate) fn recording(seed: u64) -> Self {
        Self::with_commands(seed, &["p1", "p2", "p3 fixed", "p4", "echo", "true", "false", "$x", "\"$y\"", "p1 -x"])
    }

    fn with_commands(seed: u64, commands: &'static [&'static str]) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
        Self { state, budget: 24, commands }
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    fn pick(&mut self, from: &'static [&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    fn is_recording(&self) -> bool {
        self.commands[0] == "p1"
    }

    pub(crate) fn script(&mut self) -> String {
        let is_recording = self.is_recording();
        loop {
            self.budget = 24;
            // Within `!`, bash takes `set -e` in a way of its own.
            let options =
                self.pick(&["", "", "", "", "set -e\n", "set -u\n", "set -o pipefail\n", "set -euo pipefail\n"]);
            let script = format!("{options}{}", self.list(0));
            // The recording programs exist for their own scripts only.
            let script =
                if is_recording { script } else { script.replace("$(p1 ", "$(echo ").replace("$(p2 ", "$(echo ") };
            if sayso_shell::Program::parse(&script).is_ok() {
                return script;
            }
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let count = 1 + self.below(3);
        let items: Vec<String> = (0..count).map(|_| self.and_or(depth)).collect();
        items.join(if self.below(2) == 0 { "; " } else { "\n" })
    }

    fn and_or(&mut self, depth: usize) -> String {
        let mut text = self.pipeline(depth);
        while self.below(4) == 0 && self.budget > 0 {
            let connector = if self.below(2) == 0 { " && " } else { " || " };
            text = format!("{text}{connector}{}", self.pipeline(depth));
        }
        text
    }

    fn pipeline(&mut self, depth: usize) -> String {
        // `!` before a construct has quirks in bash, which `likeness` lists.
        if self.below(8) == 0 {
            return format!("! {}", self.simple());
        }
        let mut text = self.command(depth);
        // A left side that redirects its output closes the pipe early, and then both sides race for files.
        let keeps_the_pipe = |text: &str| !text.replace("2>&1", "").replace("2> ", "").contains('>');
        while self.below(5) == 0 && self.budget > 0 && keeps_the_pipe(&text) {
            // The right side reads to the end first: otherwise both sides race for files and for the broken pipe.
            let reader = if self.is_recording() { "p4" } else { "cat" };
            text = format!("{text} | {{ {reader}; {}; }}", self.command(depth));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        self.budget = self.budget.saturating_sub(1);
        if depth > 3 || self.budget == 0 {
            return self.simple();
        }
        match self.below(16) {
            0 => format!("( {} ){}", self.list(depth + 1), self.redirects()),
            1 => format!("{{ {}; }}{}", self.list(depth + 1), self.redirects()),
            2 => format!(
                "for {} in {} {}; do {}; done",
                self.pick(NAMES),
                self.pick(WORDS),
                self.pick(WORDS),
                self.list(depth + 1)
            ),
            3 => {
                format!("if {}; then {}; else {}; fi", self.list(depth + 1), self.list(depth + 1), self.list(depth + 1))
            }
            4 => format!(
                "case {} in {}) {};; *) {};; esac",
                self.pick(VALUES),
                self.pick(WORDS),
                self.list(depth + 1),
                self.list(depth + 1)
            ),
            5 => format!("{}={}", self.pick(NAMES), self.pick(VALUES)),
            6 => format!("[[ {} == {} ]]", self.pick(WORDS), self.pick(WORDS)),
            7 => format!("[ {} = {} ]", self.pick(WORDS), self.pick(WORDS)),
            8 => format!("while read -r {}; do {}; done < list", self.pick(NAMES), self.simple()),
            9 => self.pick(&["cd src", "cd src/..", "exit 3", "pwd", "export x", "unset y", "cd \"$x\""]).to_owned(),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> String {
        let mut text = String::new();
        if self.below(6) == 0 {
            text = format!("{}={} ", self.pick(NAMES), self.pick(VALUES));
        }
        text.push_str(self.pick(self.commands));
        for _ in 0..self.below(4) {
            text = format!("{text} {}", self.pick(WORDS));
        }
        format!("{text}{}", self.redirects())
    }

    fn redirects(&mut self) -> String {
        match self.below(14) {
            0 => format!(" > {}", self.pick(FILES)),
            1 => format!(" >> {}", self.pick(FILES)),
            2 => format!(" < {}", self.pick(INPUTS)),
            3 => format!(" 2> {}", self.pick(FILES)),
            4 => " 2>&1".to_owned(),
            5 => format!(" <<< {}", self.pick(VALUES)),
            6 => format!(" &> {}", self.pick(FILES)),
            7 => format!(" 3> {} >&3", self.pick(FILES)),
            _ => String::new(),
        }
    }
}
