//! A fresh folder in which one script runs, under the runner or under bash.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use sayso_runner::{Handle, Judge, Judgement, PreparedCommand, Report, RunOptions, run};
use sayso_shell::Program;

/// Exit code, output and files of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Paths with the contents of files and the targets of links; empty for folders.
    pub(crate) files: BTreeMap<String, String>,
}

impl Outcome {
    /// The same with the characters of every text sorted.
    pub(crate) fn without_order(mut self) -> Self {
        fn sort(text: &mut String) {
            let mut characters: Vec<char> = text.chars().collect();
            characters.sort_unstable();
            *text = characters.into_iter().collect();
        }
        sort(&mut self.stdout);
        sort(&mut self.stderr);
        self.files.values_mut().for_each(sort);
        self
    }
}

/// A judge that lets everything run and remembers it.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) seen: Mutex<Vec<PreparedCommand>>,
}

impl Judge for Recorder {
    fn judge(&self, command: &PreparedCommand) -> Judgement {
        self.seen.lock().unwrap().push(command.clone());
        Judgement::Proceed
    }
}

pub(crate) struct Stage {
    folder: tempfile::TempDir,
    /// Holds standard output and standard error, out of sight of the script.
    output: tempfile::TempDir,
    path: OsString,
}

impl Stage {
    /// A folder with a few files, and the system's programs.
    pub(crate) fn new() -> Self {
        Self::with_path(OsStr::new("/usr/bin:/bin"))
    }

    pub(crate) fn with_path(path: &OsStr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("w");
        for name in ["src/deep", "docs", "empty", "dir with space"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, text) in [
            ("a.txt", "alpha\nbeta\n"),
            ("b.txt", "one\ntwo\nthree"),
            ("c d.txt", "blank name\n"),
            (".hidden", "h\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/lib.rs", "pub fn lib() {}\n"),
            ("src/deep/x.rs", "x\n"),
            ("docs/README.md", "# Read\n  indented\ttab\n"),
            ("empty.txt", ""),
            ("-n", "dash\n"),
            ("list", "a.txt\nb.txt\n  spaced  \nlast"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        for (name, text) in [("run.sh", "#!/bin/sh\necho ran \"$@\"\nexit 3\n"), ("noexec", "#!/bin/sh\n")] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a.txt", root.join("link")).unwrap();
        symlink("missing", root.join("broken")).unwrap();
        symlink("src", root.join("srclink")).unwrap();
        Self { folder, output: tempfile::tempdir().unwrap(), path: path.to_owned() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    /// Text with the folder of this stage replaced by a fixed one.
    pub(crate) fn normal(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "/tmp/stage")
    }

    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let home = self.folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let pairs =
            [("PATH", self.path.clone()), ("HOME", home.into()), ("LC_ALL", "C.UTF-8".into()), ("USER", "me".into())];
        pairs.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    pub(crate) fn bash(&self, script: &str) -> Outcome {
        let output = Command::new("/usr/bin/bash")
            .arg0("bash")
            .args(["--norc", "--noprofile", "-p", "-c", "--", script])
            .env_clear()
            .envs(self.environment())
            .env("PWD", self.root())
            .current_dir(self.root())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        self.outcome(output.status.code().unwrap_or(-1), &output.stdout, &output.stderr)
    }

    pub(crate) fn run(&self, program: &Program, judge: &dyn Judge) -> (Outcome, Report) {
        self.run_with(program, judge, Handle::new())
    }

    pub(crate) fn run_with(&self, program: &Program, judge: &dyn Judge, handle: Handle) -> (Outcome, Report) {
        let options = RunOptions { handle, ..self.options_with(&[]) };
        let report = run(program, options, judge);
        let exit = i32::from(report.exit_code);
        let read = |name: &str| fs::read(self.output.path().join(name)).unwrap();
        (self.outcome(exit, &read("out"), &read("err")), report)
    }

    /// Options with more variables in the environment.
    pub(crate) fn options_with(&self, variables: &[(&str, &str)]) -> RunOptions {
        let mut environment = self.environment();
        environment.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        // Appending, since bash's output goes into pipes.
        let open = |name: &str| {
            let path = self.output.path().join(name);
            fs::OpenOptions::new().append(true).create(true).open(path).unwrap().into()
        };
        RunOptions {
            environment,
            directory: self.root(),
            stdin: None,
            stdout: open("out"),
            stderr: open("err"),
            handle: Handle::new(),
        }
    }

    fn outcome(&self, exit: i32, stdout: &[u8], stderr: &[u8]) -> Outcome {
        let text = |bytes: &[u8]| self.normal(&String::from_utf8_lossy(bytes));
        Outcome {
            exit,
            stdout: without_lines(&text(stdout)),
            stderr: without_lines(&text(stderr)),
            files: self.files(),
        }
    }

    /// Paths with the contents of files and the targets of links; empty for folders.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.root(), "", &mut files);
        files.into_iter().map(|(path, text)| (path, without_lines(&self.normal(&text)))).collect()
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.insert(format!("{name}/"), String::new());
            collect(&entry.path(), &format!("{name}/"), files);
        } else if kind.is_symlink() {
            files.insert(name, format!("-> {}", fs::read_link(entry.path()).unwrap().display()));
        } else {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Removes bash's line numbers, which are off by one within substitutions.
fn without_lines(text: &str) -> String {
    let mut pieces = text.split("bash: line ");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        shown.push_str("bash:");
        shown.push_str(piece.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    shown
}
