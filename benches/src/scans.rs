//! Cost of a scan of a whole tree, first and repeated, compared with git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sayso_journal::{AppendError, Batch, Journal, Options, ReadJournalError};
use sayso_review::ContentHash;
use sayso_workspace::{Contents, Scan, ScanIndex, ScanLimits, Trust, Workspace};

use crate::changes::{file_system, work_directory};
use crate::clock::{self, Limit, median, milliseconds, ratio};
use crate::source;
use crate::table::{Check, Section, Target, thousands};

const FILES: usize = 10_000;
const DIRECTORIES: usize = 500;
const LIMITS: ScanLimits =
    ScanLimits { max_file_bytes: 16 << 20, max_files: 100_000, max_new_bytes: 1 << 30, max_ignored_bytes: 1 << 28 };
/// As in most repositories; both sides have to match every path with it.
const IGNORED: &str = "/target/\nnode_modules/\n*.o\n*.so\n*.pyc\n__pycache__/\n.DS_Store\n/dist\nbuild/\n*.log\n\
                       .idea/\n.vscode/*\n!.vscode/settings.json\ncoverage/\n*.swp\n.env\n.env.*\n**/generated/*.rs\n";

/// The journal, as the engine uses it.
struct Stored(Journal);

#[derive(Debug)]
enum StoreError {
    Append(AppendError),
    Read(ReadJournalError),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Append(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

impl Contents for Stored {
    type Error = StoreError;

    fn has(&mut self, hash: ContentHash) -> Result<bool, StoreError> {
        self.0.reader().has_blob(hash).map_err(StoreError::Read)
    }

    fn keep(&mut self, contents: &[(ContentHash, &[u8])]) -> Result<(), StoreError> {
        let batch = Batch { blobs: contents.to_vec(), ..Batch::default() };
        self.0.append(&batch).map(drop).map_err(StoreError::Append)
    }
}

/// A tree, and the places where both sides keep it.
struct Scene {
    root: PathBuf,
    journal: PathBuf,
    git: PathBuf,
}

impl Scene {
    fn new() -> Result<Self> {
        let base = work_directory().join("scan");
        if base.exists() {
            fs::remove_dir_all(&base)?;
        }
        let scene = Self { root: base.join("tree"), journal: base.join("journal"), git: base.join("git") };
        for directory in 0..DIRECTORIES {
            fs::create_dir_all(scene.root.join(directory_of(directory)))?;
        }
        for file in 0..FILES {
            // From 1 kB to 7 kB, as source files are: 40 MB in all.
            let bytes = 1024 + (file * 7919) % 6144;
            let path = scene.root.join(directory_of(file % DIRECTORIES)).join(format!("file{file:05}.rs"));
            fs::write(path, source::file(file as u64, bytes))?;
        }
        fs::write(scene.root.join(".gitignore"), IGNORED)?;
        nix::unistd::sync();
        Ok(scene)
    }

    /// Neither side has scanned the tree before.
    fn forget(&self) -> Result<()> {
        for folder in [&self.journal, &self.git] {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
        }
        self.git(&["init", "-q"])?;
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Result<Duration> {
        Ok(self.run_git(arguments)?.cpu)
    }

    fn run_git(&self, arguments: &[&str]) -> Result<clock::Run> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(&self.root).env("GIT_DIR", &self.git).env("GIT_WORK_TREE", &self.root);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        clock::run(&mut command, Limit::Batch)?.context("git took too long")
    }

    /// Opens the workspace and journal, loads the stored index, and scans.
    fn ours(&self, known: &[u8], trust: Trust) -> Result<(Scan, Vec<u8>, Duration)> {
        let work = || -> Result<(Scan, Vec<u8>)> {
            let workspace = Workspace::open(&self.root)?;
            let mut store = Stored(Journal::open(&self.journal, Options { wait: Duration::ZERO })?);
            let scan = workspace.scan(&ScanIndex::decode(known).unwrap_or_default(), trust, LIMITS, &mut store)?;
            let bytes = scan.index.encode();
            Ok((scan, bytes))
        };
        let (result, time) = clock::time(work);
        let (scan, bytes) = result?;
        ensure!(scan.not_captured.is_empty(), "something was not captured: {:?}", scan.not_captured.first());
        ensure!(scan.cost.found == FILES + 1, "{} files were found", scan.cost.found);
        Ok((scan, bytes, time))
    }
}

fn directory_of(number: usize) -> PathBuf {
    Path::new(&format!("crate{:02}", number % 20)).join(format!("module{number:03}"))
}

#[derive(Default)]
struct Times {
    first: Vec<Duration>,
    again: Vec<Duration>,
    asking: Vec<Duration>,
    git_add: Vec<Duration>,
    git_again: Vec<Duration>,
    git_status: Vec<Duration>,
}

/// A tree of many files, captured.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    fs::create_dir_all(work_directory())?;
    let scene = Scene::new()?;
    let mut times = Times::default();
    let mut known_bytes = 0;
    for _ in 0..rounds {
        scene.forget()?;
        times.git_add.push(scene.git(&["add", "-A"])?);
        let listed = scene.run_git(&["ls-files", "-z"])?.output;
        ensure!(listed.split(|byte| *byte == 0).count() == FILES + 2, "git has not added every file");
        let (first, known, time) = scene.ours(&[], Trust::Kept)?;
        ensure!(first.cost.read == FILES + 1 && first.cost.kept > FILES / 2, "the first scan reads everything");
        times.first.push(time);
        known_bytes = known.len();
        for _ in 0..3 {
            times.git_again.push(scene.git(&["add", "-A"])?);
            times.git_status.push(scene.git(&["status", "--porcelain"])?);
            for (trust, times) in [(Trust::Kept, &mut times.again), (Trust::Ask, &mut times.asking)] {
                let (scan, _, time) = scene.ours(&known, trust)?;
                ensure!(scan.cost.read == 0, "{} unchanged files were read again", scan.cost.read);
                times.push(time);
            }
        }
    }
    let [first, again, asking] = [&mut times.first, &mut times.again, &mut times.asking].map(|times| median(times));
    let [git_add, git_again, git_status] =
        [&mut times.git_add, &mut times.git_again, &mut times.git_status].map(|times| median(times));
    let title = format!("Snapshots of {} files", thousands(FILES));
    let mut beside = Section::new(title, &["ours, CPU ms", "git, CPU ms"], "ours/git").note(format!(
        "in {DIRECTORIES} directories; ours opens workspace and journal, reads what is known ({} kB), scans, writes what is known. \
         On {}, median of {rounds}",
        known_bytes / 1000,
        file_system(&work_directory())
    ));
    let mut row = |name: &str, ours: Duration, git: Duration, target| {
        let check = Check { measured: ratio(ours, git), target };
        beside.row(name, [ours, git].map(milliseconds).to_vec(), Some(check));
    };
    row("first; `git add -A` into a fresh index", first, git_add, Some(Target::AtMost(1.0)));
    row("again, unchanged; `git add -A` again", again, git_again, None);
    row("again, unchanged; `git status`", again, git_status, None);
    row("again, asking for every content; `git status`", asking, git_status, None);
    let mut gain =
        Section::new("Snapshots: again beside the first", &["first, CPU ms", "again, CPU ms"], "first/again");
    for (name, again, target) in
        [("unchanged", again, Some(Target::AtLeast(10.0))), ("unchanged, asking for every content", asking, None)]
    {
        let check = Check { measured: ratio(first, again), target };
        gain.row(name, [first, again].map(milliseconds).to_vec(), Some(check));
    }
    Ok(vec![beside, gain])
}
