//! Cost of a change from proposal to tree, compared with a bare loop that reads, edits, diffs, writes a temporary file, syncs and
//! renames it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use sayso_gate::{DecisionResult, Engine as Gate, Rules, Submission, SubmitResult};
use sayso_journal::{Journal, Options};
use sayso_review::{Defaults, FileIntent, Intent, Layer, LayerTrust, Origin, Proposal};
use sayso_workspace::Workspace;

use crate::clock::{self, median, milliseconds, ratio};
use crate::engines::Engine;
use crate::source;
use crate::table::{Check, Section, Target, thousands};

/// A number of successive changes and of files per change.
#[derive(Clone, Copy, Debug)]
struct Shape {
    changes: usize,
    files: usize,
    directories: usize,
    bytes: usize,
}

/// So many that the journal has to tidy up in between, as it does every 32 MB.
const LARGE: Shape = Shape { changes: 16, files: 1, directories: 1, bytes: 1 << 20 };
const MANY: Shape = Shape { changes: 1, files: 1_000, directories: 50, bytes: 4 << 10 };
const SOME: Shape = Shape { files: 100, directories: 5, ..MANY };
const ONE: Shape = Shape { files: 1, directories: 1, ..MANY };

impl Shape {
    fn path(self, change: usize, file: usize) -> String {
        format!("source{:02}/file{change:02}_{file:04}.rs", file % self.directories)
    }
}

/// State of the edited files in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    New,
    EditedBefore,
}

/// Implementation that carries out changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// The gate, its journal on the same disk.
    Ours,
    /// A loop with this engine.
    Bare(Engine),
}

impl Who {
    /// Ours, the peer, and the peer with our engine.
    const ALL: [Self; 3] = [Self::Ours, Self::Bare(Engine::Bare), Self::Bare(Engine::Ours)];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare(Engine::Ours) => "bare-ours",
            Self::Bare(_) => "bare",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|who| who.name() == name)
    }
}

/// Environment variable with another working directory, to test another file system.
const DIRECTORY: &str = "SAYSO_BENCH_DIR";

/// Returns the working directory. By default it is below the build directory, on the file system of the repository.
pub fn work_directory() -> PathBuf {
    std::env::var_os(DIRECTORY)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench/changes"), PathBuf::from)
}

/// Returns the type of the file system of a directory.
pub fn file_system(path: &Path) -> String {
    let found = Command::new("findmnt").args(["-no", "FSTYPE", "--target"]).arg(path).output();
    let name = found.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let name = name.and_then(|name| name.lines().next().map(str::to_owned));
    name.unwrap_or_else(|| "an unknown file system".to_owned())
}

/// A directory with files, and the edits to make.
struct Scene {
    root: PathBuf,
    shape: Shape,
    /// Number of edits of each file so far.
    edits: usize,
    seed: u64,
}

impl Scene {
    fn new(name: &str, shape: Shape) -> Result<Self> {
        let root = work_directory().join(name);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root)?;
        // Lets ext4 spread the directories. Without a journal, ext4 does not reuse a deleted inode for minutes and scans all
        // deleted inodes of the group for every new file, which would dominate the measurement.
        let _ = Command::new("chattr").arg("+T").arg(&root).stderr(Stdio::null()).status();
        for directory in 0..shape.directories {
            fs::create_dir_all(root.join(format!("source{directory:02}")))?;
        }
        Ok(Self { root, shape, edits: 0, seed: 0 })
    }

    /// Writes new files.
    fn fill(&mut self) -> Result<()> {
        self.edits = 0;
        for change in 0..self.shape.changes {
            for file in 0..self.shape.files {
                self.seed += 1;
                fs::write(self.root.join(self.shape.path(change, file)), source::file(self.seed, self.shape.bytes))?;
            }
        }
        // Syncs the new files now, so that their disk writes do not count in a later fsync.
        nix::unistd::sync();
        Ok(())
    }

    /// Returns the text to replace in every file, and its replacement.
    fn edit(&self) -> (String, String) {
        (source::marker(self.edits), source::marker(self.edits + 1))
    }

    fn proposals(&self) -> Vec<Proposal> {
        let (old_string, new_string) = self.edit();
        let edit = |change, file| FileIntent::Edit {
            path: self.shape.path(change, file),
            old_string: old_string.clone(),
            new_string: new_string.clone(),
            replace_all: false,
        };
        let proposal = |change| Proposal { changes: (0..self.shape.files).map(|file| edit(change, file)).collect() };
        (0..self.shape.changes).map(proposal).collect()
    }

    /// Checks that every file has all edits and that no temporary file is left.
    fn verify(&self) -> Result<()> {
        for change in 0..self.shape.changes {
            for file in 0..self.shape.files {
                let path = self.root.join(self.shape.path(change, file));
                let text = fs::read_to_string(&path)?;
                ensure!(text.contains(&source::marker(self.edits)), "{} was not edited", path.display());
            }
        }
        let mut names = 0;
        for directory in fs::read_dir(&self.root)? {
            names += fs::read_dir(directory?.path())?.count();
        }
        ensure!(names == self.shape.changes * self.shape.files, "temporary files are left in {}", self.root.display());
        Ok(())
    }
}

/// An opened implementation.
enum Worker {
    Ours(Box<(Gate, Rules)>),
    Bare(Engine),
}

impl Worker {
    fn new(who: Who, scene: &Scene) -> Result<Self> {
        Ok(match who {
            Who::Bare(engine) => Self::Bare(engine),
            Who::Ours => {
                let state = scene.root.with_extension("journal");
                if state.exists() {
                    fs::remove_dir_all(&state)?;
                }
                let journal = Journal::open(&state, Options { wait: Duration::ZERO })?;
                let layer = Layer {
                    file: "config.toml".to_owned(),
                    trust: LayerTrust::Trusted,
                    defaults: Defaults::default(),
                    rules: Vec::new(),
                };
                let rules = Rules::new(vec![layer], Vec::new())?;
                Self::Ours(Box::new((Gate::open(Workspace::open(&scene.root)?, journal, 0)?.0, rules)))
            }
        })
    }

    /// Edits every file of a scene and returns the CPU time of the edits.
    fn work(&mut self, scene: &mut Scene) -> Result<Duration> {
        let proposals = scene.proposals();
        let (old, new) = scene.edit();
        let (result, time) = clock::time(|| match self {
            Self::Ours(ours) => proposals.iter().try_for_each(|proposal| gated(ours, proposal)),
            Self::Bare(engine) => {
                (0..scene.shape.changes).try_for_each(|change| bare(*engine, scene, change, (&old, &new)))
            }
        });
        result?;
        scene.edits += 1;
        scene.verify()?;
        Ok(time)
    }
}

fn gated((gate, rules): &mut (Gate, Rules), proposal: &Proposal) -> Result<()> {
    let submission = Submission::new(Intent::ChangeFiles(proposal.clone()), Origin::default());
    let SubmitResult::Pending(proposed) = gate.submit(submission, rules, 1)? else {
        bail!("the change is not pending")
    };
    match gate.decide(&proposed, &proposed.approval(), 2)? {
        DecisionResult::Applied { .. } => Ok(()),
        other => bail!("the change was not applied: {other:?}"),
    }
}

/// Makes the same change with the same durability, without record, checks, notes and undo.
fn bare(engine: Engine, scene: &Scene, change: usize, (old, new): (&str, &str)) -> Result<()> {
    let mut directories = BTreeSet::new();
    for file in 0..scene.shape.files {
        let path = scene.root.join(scene.shape.path(change, file));
        let before = fs::read_to_string(&path)?;
        let after = before.replacen(old, new, 1);
        black_box(engine.unified(before.as_bytes(), after.as_bytes())?);
        let temporary = path.with_extension("new");
        let mut written = File::create(&temporary)?;
        written.write_all(after.as_bytes())?;
        written.sync_all()?;
        fs::rename(&temporary, &path)?;
        directories.extend(path.parent().map(Path::to_owned));
    }
    for directory in directories {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// The hidden subcommand: one warm-up, then the changes of a shape, in a process of its own.
pub fn once(who: &str, files: &str, rounds: &str) -> Result<()> {
    let who = Who::named(who).context("nobody of this name")?;
    let shape = match files {
        "large" => LARGE,
        files => [MANY, SOME, ONE]
            .into_iter()
            .find(|shape| shape.files.to_string() == files)
            .context("no shape of so many files")?,
    };
    let mut scene = Scene::new("once", shape)?;
    let mut worker = Worker::new(who, &scene)?;
    for _ in 0..rounds.parse()? {
        scene.fill()?;
        worker.work(&mut scene)?;
    }
    Ok(())
}

/// CPU time of one change, by each of [`Who::ALL`].
fn measure(shape: Shape, files: Files, rounds: usize) -> Result<[Duration; 3]> {
    let mut scenes = Vec::new();
    for who in Who::ALL {
        let mut scene = Scene::new(who.name(), shape)?;
        let mut worker = Worker::new(who, &scene)?;
        scene.fill()?;
        worker.work(&mut scene)?;
        scenes.push((scene, worker, Vec::new()));
    }
    for _ in 0..rounds {
        for (scene, worker, times) in &mut scenes {
            if files == Files::New {
                scene.fill()?;
            }
            times.push(worker.work(scene)? / shape.changes as u32);
        }
    }
    let times: Vec<Duration> = scenes.iter_mut().map(|(_, _, times)| median(times)).collect();
    let times = <[Duration; 3]>::try_from(times).ok().context("three peers")?;
    Ok(times)
}

/// Counts the disk syncs of one change of a number of files.
fn syncs(who: Who, shape: Shape) -> Result<Option<usize>> {
    fs::create_dir_all(work_directory())?;
    let log = work_directory().join("syncs.strace");
    let run = |rounds: &str| -> Result<Option<usize>> {
        let status = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs", "-o"])
            .arg(&log)
            .arg(std::env::current_exe()?)
            .args(["change", who.name(), &shape.files.to_string(), rounds])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let Ok(status) = status else { return Ok(None) };
        ensure!(status.success(), "strace failed on a change of {} files", shape.files);
        let calls = ["fsync(", "fdatasync(", "sync_file_range(", "syncfs("];
        Ok(Some(fs::read_to_string(&log)?.lines().filter(|line| calls.iter().any(|call| line.contains(call))).count()))
    };
    // Only the second change counts: the first initializes the engine.
    let (Some(one), Some(two)) = (run("1")?, run("2")?) else { return Ok(None) };
    Ok(Some(two - one))
}

/// Changes beside what they cost bare.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    fs::create_dir_all(work_directory())?;
    let columns = ["ours, CPU ms", "bare, CPU ms"];
    let mut times = Section::new("Changes, from proposal to tree", &columns, "ours/bare").note(format!(
        "one change: preview, approval, record, apply; bare reads, edits, compares, writes, fsyncs, renames. On {}, median of {rounds}",
        file_system(&work_directory())
    ));
    let rows = [
        ("one edit in 1 MB, file new to the journal", LARGE, Files::New, 3.0),
        ("one edit in 1 MB, file edited before", LARGE, Files::EditedBefore, 3.0),
        ("1,000 files of 4 kB in 50 directories", MANY, Files::New, 2.0),
        ("100 files of 4 kB in 5 directories", SOME, Files::New, 2.0),
    ];
    for (name, shape, files, most) in rows {
        let [ours, bare, own_diff] = measure(shape, files, rounds)?;
        // The second row only informs: beside our own comparison, what is recorded outweighs everything else.
        for (name, bare, target) in
            [(name, bare, Some(Target::AtMost(most))), ("  the same, bare with our own Diff", own_diff, None)]
        {
            times.row(
                name,
                [ours, bare].map(milliseconds).to_vec(),
                Some(Check { measured: ratio(ours, bare), target }),
            );
        }
    }
    let columns = ["1 file", "100 files", "1,000 files"];
    let mut waits = Section::new("Waits for the disk of one change", &columns, "per file")
        .note("fsync, fdatasync, sync_file_range and syncfs by strace; per file beyond those of a change of one file");
    for (name, who, target) in [("ours", Who::Ours, Some(Target::AtMost(2.0))), ("bare", Who::Bare(Engine::Bare), None)]
    {
        let counts = [syncs(who, ONE)?, syncs(who, SOME)?, syncs(who, MANY)?];
        let [Some(one), Some(some), Some(many)] = counts else {
            waits = waits.note("not measured: strace is not installed");
            break;
        };
        let per_file = many.saturating_sub(one) as f64 / (MANY.files - ONE.files) as f64;
        let cells = [one, some, many].map(thousands).to_vec();
        waits.row(name, cells, Some(Check { measured: per_file, target }));
    }
    Ok(vec![times, waits])
}
