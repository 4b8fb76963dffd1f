//! The judge sees exactly what runs.
//!
//! Scripts run with a `PATH` that holds recording programs only. Each of them appends its path and arguments to a file. The
//! record is compared with the log of the judge, with the forecast, and with the record of bash for the same script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sayso_runner::{PreparedCommand, RanCommand, Report, Target};
use sayso_shell::program::Variables;
use sayso_shell::{Certainty, Program, RedirectAccess, Script, SimpleCommand, Word};

use crate::generator::{Generator, seeds};
use crate::stage::{Recorder, Stage};

/// A folder of programs that record how they were started.
struct Stubs {
    folder: tempfile::TempDir,
}

/// Bodies of the programs; all record first.
const STUBS: [(&str, &str); 4] = [
    ("p1", "printf '%s ' \"$@\""),
    ("p2", "printf '%s\\n' 'w  v *.txt $(p3 evil) `p3`; p3 x' -o"),
    ("p3", "exit 1"),
    ("p4", "/bin/cat > /dev/null"),
];

impl Stubs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        fs::create_dir(folder.path().join("bin")).unwrap();
        for (name, body) in STUBS {
            let path = folder.path().join("bin").join(name);
            let text = format!("#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\" '\x01' >> {}\n{body}\n", record.display());
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Takes the record: one line for each program with its arguments, sorted.
    fn take(&self, stage: &Stage) -> Vec<String> {
        let record = self.folder.path().join("record");
        let bytes = fs::read(&record).unwrap_or_default();
        let _ = fs::remove_file(record);
        let mut lines: Vec<String> = String::from_utf8_lossy(&bytes)
            .split("\0\x01\0")
            .filter(|line| !line.is_empty())
            .map(|line| stage.normal(&line.replace('\0', "\u{1f}")))
            .collect();
        lines.sort();
        lines
    }
}

fn reported(report: &Report, bin: &Path, stage: &Stage) -> Vec<String> {
    let mut lines = Vec::new();
    for RanCommand { argv, .. } in &report.ran {
        let path = bin.join(&argv[0]);
        if !argv[0].is_empty() && path.exists() && path.starts_with(bin) && path != bin {
            let mut words = vec![path.to_string_lossy().into_owned()];
            words.extend(argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()));
            lines.push(stage.normal(&words.join("\u{1f}")));
        }
    }
    lines.sort();
    lines
}

fn judged(seen: &[PreparedCommand], bin: &Path, stage: &Stage) -> Vec<String> {
    let mut lines = Vec::new();
    for command in seen {
        let Target::Program(path) = &command.target else { continue };
        if path.starts_with(bin) {
            let mut words = vec![path.to_string_lossy().into_owned()];
            words.extend(command.argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()));
            lines.push(stage.normal(&words.join("\u{1f}")));
        }
    }
    lines.sort();
    lines
}

/// `true` if the forecast words cover the real ones.
fn covers(forecast: &[Word], real: &[&[u8]]) -> bool {
    match forecast.split_first() {
        None => real.is_empty(),
        Some((word, rest)) if word.certainty == Certainty::Literal => {
            real.first().is_some_and(|first| *first == word.text.as_bytes()) && covers(rest, &real[1..])
        }
        Some((_, rest)) => (0..=real.len()).any(|count| covers(rest, &real[count..])),
    }
}

fn is_forecast(command: &PreparedCommand, script: &Script) -> bool {
    // A construct before `|&` is judged for its redirections, of which it may have none.
    if command.argv.is_empty() && command.assignments.is_empty() && command.redirects.is_empty() {
        return true;
    }
    let real: Vec<&[u8]> = command.argv.iter().map(|word| word.as_bytes()).collect();
    let has_redirects = |known: &SimpleCommand| {
        command.redirects.iter().all(|real| {
            known.redirects.iter().any(|redirect| {
                redirect.access == real.access
                    && (redirect
                        .target
                        .as_literal()
                        .is_none_or(|text| real.path.as_os_str().as_bytes().ends_with(text.as_bytes())))
            })
        })
    };
    script.commands.iter().any(|known| covers(&known.words, &real) && has_redirects(known))
}

/// `false` if a mutation made a redirection out of the folder of the script, such as `> /o1`.
fn stays_inside(script: &Script) -> bool {
    let mut targets = script.commands.iter().flat_map(|command| &command.redirects).map(|redirect| &redirect.target);
    targets.all(|target| match target.as_literal() {
        Some(text) => !text.starts_with('/') || text == "/dev/null",
        None => !target.text.contains('/'),
    })
}

/// Files that are new or changed, below the folder of the script.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeSet<String> {
    after.iter().filter(|(path, text)| before.get(*path) != Some(*text)).map(|(path, _)| path.clone()).collect()
}

/// `true` for the differences that the documentation of `sayso_runner` lists.
fn differs_on_purpose(script: &str, ran: &[String], bash: &[String]) -> bool {
    let expands_more = script.contains(['<', '>'])
        && (script.contains("set -u") || (script.contains("$(") && bash.iter().all(|line| ran.contains(line))));
    let negates_an_error = script.contains("set -u") && script.contains("( !");
    let vanishes_in_a_pipeline = script.contains('|') && script.contains('<') && script.contains('$');
    expands_more || negates_an_error || vanishes_in_a_pipeline
}

/// Figures over many scripts.
#[derive(Default)]
struct Figures {
    scripts: usize,
    rejected: usize,
    /// Scripts that could write outside their folder; they are not run.
    outside: usize,
    commands: usize,
    programs: usize,
    differs_from_bash: Vec<String>,
}

impl Figures {
    /// Runs one script both ways and checks it, if it parses.
    fn check(&mut self, script: &str, stubs: &Stubs) {
        let Ok(program) = Program::parse(script) else {
            self.rejected += 1;
            return;
        };
        let forecast = program.forecast(&Variables::default());
        if !stays_inside(&forecast) {
            self.outside += 1;
            return;
        }
        self.scripts += 1;
        let stage = Stage::with_path(stubs.bin().as_os_str());
        let before = stage.files();
        let recorder = Recorder::default();
        let (after, report) = stage.run(&program, &recorder);
        let (seen, ran) = (recorder.seen.into_inner().unwrap(), stubs.take(&stage));
        if report.omitted == 0 {
            assert_eq!(reported(&report, &stubs.bin(), &stage), ran, "the report has what ran: {script}");
        }
        // A command whose redirection fails is judged and does not run.
        let mut judged = judged(&seen, &stubs.bin(), &stage);
        for program in &ran {
            let at = judged.iter().position(|judged| judged == program);
            judged.remove(at.unwrap_or_else(|| panic!("the judge saw {program}: {script}")));
        }
        assert!(judged.is_empty() || script.contains(['<', '>']), "what was judged ran: {judged:?}: {script}");
        let written: BTreeSet<PathBuf> = seen
            .iter()
            .flat_map(|command| &command.redirects)
            .filter(|redirect| redirect.access != RedirectAccess::Read)
            .filter_map(|redirect| fs::canonicalize(&redirect.path).ok())
            .collect();
        for path in changed(&before, &after.files) {
            let path = fs::canonicalize(stage.root().join(&path)).unwrap();
            assert!(written.contains(&path), "the judge saw the file {}: {script}", path.display());
        }
        for command in &seen {
            assert!(is_forecast(command, &forecast), "forecast: {script}\n{command:?}\n{forecast:?}");
        }
        self.commands += seen.len();
        self.programs += ran.len();
        let theirs = Stage::with_path(stubs.bin().as_os_str());
        theirs.bash(script);
        let bash = stubs.take(&theirs);
        // A stage that writes to a pipe without a reader may end before its next program, here and there.
        let distinct = |programs: &[String]| programs.iter().cloned().collect::<BTreeSet<String>>();
        // A refusal ends the script early; bash knows none.
        let is_same = report.refused.is_some()
            || differs_on_purpose(script, &ran, &bash)
            || bash == ran
            || (script.contains('|') && distinct(&bash) == distinct(&ran));
        if !is_same {
            self.differs_from_bash.push(format!("{script}\n  ours: {ran:?}\n  bash: {bash:?}"));
        }
    }

    fn finish(self, name: &str) {
        let Self { scripts, rejected, outside, commands, programs, differs_from_bash } = self;
        println!(
            "safety, {name}: {scripts} scripts ran, {rejected} were rejected, {outside} left out; {commands} commands judged, {programs} programs \
             executed, {} records differ from bash",
            differs_from_bash.len()
        );
        assert!(differs_from_bash.is_empty(), "{}", differs_from_bash.join("\n"));
    }
}

#[test]
fn generated_scripts_run_as_judged() {
    let stubs = Stubs::new();
    let mut figures = Figures::default();
    for seed in seeds(200) {
        figures.check(&Generator::recording(seed).script(), &stubs);
    }
    figures.finish("generated");
}

/// Scripts that are cut open at every position.
const OPENED: &[&str] = &[
    "p1 a && p2 b || p3 c",
    "x='a b'; p1 \"$x\" ${x} $x",
    "p1 $(p2 in) > o1 2>&1",
    "for f in a b; do p1 \"$f\"; done",
    "if p3; then p1; else p2 y; fi; p4 end",
    "p1 'q r' \"s $(p2) t\" u\\ v",
    "cat=1 p1 <<EOF; p4\n$x $(p2)\nEOF\np1 z",
    "p1 2> o1; p4 <<< \"$(p1 t)\"",
    "{ p1 a; p2; } | p4",
    "case a in a|b) p1;; *) p3;; esac",
];

#[test]
fn opened_scripts_run_as_judged() {
    let stubs = Stubs::new();
    let mut figures = Figures::default();
    for script in OPENED {
        assert!(Program::parse(script).is_ok(), "{script}");
        for at in 0..=script.len() {
            figures.check(&format!("{}\\\n{}", &script[..at], &script[at..]), &stubs);
        }
    }
    figures.finish("line continuations at every position");
}

/// Pieces that change how the text around them is read.
const INSERTED: &[&str] = &[
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    ";",
    "\n",
    "#",
    " ",
    "&",
    "|",
    "<",
    ">",
    "<<E\n",
    "\r",
    "\0",
    "\t",
    "!",
    "=",
    "*",
    "~",
    "$'",
    "\\\n",
    "\u{7f}",
    "\u{a0}",
    "é",
    "; p3 evil",
    "$x",
    "${x}",
    "-",
    "\n\nE\n",
    "&&",
    "2>&1 ",
    "[",
    "]",
    "''",
];

#[test]
fn mutated_scripts_run_as_judged() {
    let stubs = Stubs::new();
    let mut figures = Figures::default();
    for seed in seeds(400) {
        let mut generator = Generator::recording(seed.wrapping_add(1 << 40));
        let mut script = generator.script();
        for _ in 0..=generator.below(2) {
            let mut at = generator.below(script.len() + 1);
            while !script.is_char_boundary(at) {
                at -= 1;
            }
            let piece = INSERTED[generator.below(INSERTED.len())];
            script.insert_str(at, piece);
        }
        figures.check(&script, &stubs);
    }
    figures.finish("mutated");
}

#[test]
fn random_tokens_run_as_judged() {
    let stubs = Stubs::new();
    let mut figures = Figures::default();
    for seed in seeds(1500) {
        let mut generator = Generator::recording(seed.wrapping_add(1 << 50));
        let count = 2 + generator.below(8);
        let tokens = ["p1", "p2", " ", " ", " ", "a", "$x", "x=p3", ";", "\n", "'", "\"", "(", ")"];
        let text: String = (0..count)
            .map(|_| {
                let pick = generator.below(tokens.len() + INSERTED.len());
                tokens.get(pick).copied().unwrap_or_else(|| INSERTED[pick - tokens.len()])
            })
            .collect();
        figures.check(&text, &stubs);
    }
    figures.finish("random tokens");
}
