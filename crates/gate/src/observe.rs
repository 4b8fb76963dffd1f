//! What a command changes: the tree is scanned before it runs and after it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sayso_journal::{Batch, Journal};
use sayso_review::{ChangeId, ContentHash, Event, EventBody, Fingerprint, RecordedStep, Subject, Uncaptured, WsPath};
use sayso_workspace::{
    Contents, Happened, Known, Named, Reason, Scan, ScanLimits, TreeChanges, Trust, UncapturedChange,
};

use crate::FILE_LIMIT;
use crate::action::Finished;
use crate::engine::Engine;
use crate::error::GateError;
use sayso_review::{ChangeRecord, ChangeStatus};

/// The counter of collections: what was kept before one may be gone after it.
pub(crate) const COLLECTIONS: &str = "collections";

/// The folder for what is known of the tree, beside the journal.
const FOLDER: &str = "scans";
/// The file that names what is ignored.
const IGNORE_FILE: &str = ".gitignore";
/// What the last scan found.
const LAST: &str = "last";

/// How much is kept for the sake of undoing what commands do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Larger files are not captured.
    pub largest_file: u64,
    /// If contents take more bytes than this, the oldest are released.
    pub quota: u64,
}

impl SnapshotLimits {
    /// What a person gets who has not said anything.
    pub const USUAL: Self = Self { largest_file: sayso_review::MOST_BYTES, quota: 1_000_000_000 };

    /// How many bytes of ignored files that a command names are captured.
    pub(crate) fn for_ignored(self) -> u64 {
        self.scan_limits().most_ignored_bytes
    }

    fn scan_limits(self) -> ScanLimits {
        let Self { largest_file, quota } = self;
        // One command must not use up what is kept for all others.
        ScanLimits { largest_file, most_files: MOST_FILES, most_bytes: quota, most_ignored_bytes: quota / 4 }
    }
}

/// More files than a scan looks at.
const MOST_FILES: usize = 1_000_000;

/// Contents go to the journal. Nothing refers to them until something changed, so [`Engine::collect`] is told to keep them.
struct Keeping<'j>(&'j mut Journal);

impl Contents for Keeping<'_> {
    type Error = GateError;

    fn has(&mut self, hash: ContentHash) -> Result<bool, GateError> {
        Ok(self.0.reader().has_blob(hash)?)
    }

    fn keep(&mut self, contents: &[(ContentHash, &[u8])]) -> Result<(), GateError> {
        self.0.append(&Batch { blobs: contents.to_vec(), events: Vec::new(), counters: Vec::new() })?;
        Ok(())
    }
}

impl Engine {
    /// Captures the tree as it is before a command runs.
    pub(crate) fn begin_observing(&mut self, change: ChangeId, subject: &Subject) -> Result<(), GateError> {
        self.scan(&self.named_by(subject))?;
        let (last, own) = (self.scan_file(LAST), self.scan_file(&change.to_string()));
        copy(&last, &own).map_err(|error| GateError::state_file(&own, &error))
    }

    /// What changed since a command was let run, less what is known to come from elsewhere.
    pub(crate) fn end_observing(&mut self, record: &ChangeRecord) -> Result<Finished, GateError> {
        let own = self.scan_file(&record.change.to_string());
        let mut finished = Finished::nothing();
        let Some(before) = read(&own).map(|(_, known)| known) else {
            let reason = "what was there before is not known any more".to_owned();
            finished.uncaptured.push(Uncaptured { path: ".".to_owned(), reason });
            return Ok(finished);
        };
        let scan = self.scan(&self.named_by(&record.approved()))?;
        let changes = TreeChanges::between(&before, &scan.known);
        let mut steps: BTreeMap<WsPath, RecordedStep> =
            changes.steps.into_iter().map(|step| (step.path.clone(), step)).collect();
        for (path, others) in self.elsewhere(record)? {
            // What a scan does not look at, since git ignores it, is not gone for that.
            let first = others.first().map_or(Fingerprint::Absent, |other| other.before.clone());
            let started = before.was(&path).unwrap_or(first);
            let Some(now) = scan.known.was(&path).or_else(|| self.print(&path)) else { continue };
            let Some((step, hidden)) = between(&path, started, &others, now) else {
                steps.remove(&path);
                continue;
            };
            if hidden {
                let reason = "the command changed it, then another change did, and then the command again".to_owned();
                finished.uncaptured.push(Uncaptured { path: path.to_string(), reason });
            }
            steps.insert(path, step);
        }
        let unnamed = scan.not_captured.iter().filter(|one| one.reason == Reason::Name);
        finished.uncaptured.extend(unnamed.map(|one| {
            let reason = "whether it changed is not known, since its name is not UTF-8".to_owned();
            Uncaptured { path: one.path.clone(), reason }
        }));
        finished.uncaptured.extend(hidden(&before, &scan.known, &steps));
        finished.uncaptured.extend(TreeChanges::unseen_and_gone(&before, &scan.known).into_iter().map(|path| {
            let reason = "it is gone, and was not captured before, since git ignores it".to_owned();
            Uncaptured { path: path.to_string(), reason }
        }));
        finished.record.steps = steps.into_values().collect();
        finished.record.directories = changes.made;
        let uncaptured = changes.uncaptured.iter();
        finished.uncaptured.extend(
            uncaptured.map(|change| Uncaptured { path: change.path.to_string(), reason: changed(change).to_owned() }),
        );
        Ok(finished)
    }

    /// What is at a path, if that can be known.
    fn print(&self, path: &WsPath) -> Option<Fingerprint> {
        let sight = self.workspace.look([path.clone()], FILE_LIMIT);
        sight.files.get(path)?.state().ok().map(|state| state.fingerprint())
    }

    /// Removes what was known before a command.
    pub(crate) fn forget_scan(&self, change: ChangeId) {
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        // One that stays behind is removed with the next collection.
        let _ = std::fs::remove_file(self.scan_file(&change.to_string()));
    }

    /// Removes what was known before commands that are over.
    pub(crate) fn forget_old_scans(&self) {
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        let files = std::fs::read_dir(self.scan_folder());
        for file in files.into_iter().flatten().flatten() {
            let Some(Ok(change)) = file.file_name().to_str().map(str::parse::<ChangeId>) else { continue };
            let status = self.history().change(change).map(|record| record.status);
            if !matches!(status, Ok(ChangeStatus::Permitted | ChangeStatus::Pending)) {
                self.forget_scan(change);
            }
        }
    }

    /// What other changes did to files while a command ran, in order: they are on record, and not the command's.
    fn elsewhere(&self, record: &ChangeRecord) -> Result<BTreeMap<WsPath, Vec<RecordedStep>>, GateError> {
        let mut steps: BTreeMap<WsPath, Vec<RecordedStep>> = BTreeMap::new();
        let mut after = record.permitted;
        loop {
            let events = self.history().events(None, after, 1_000)?;
            let Some(last) = events.last() else { return Ok(steps) };
            after = last.number;
            for event in events {
                let EventBody::Known(Event::Applying { change, record } | Event::Observed { change, record, .. }) =
                    event.body
                else {
                    continue;
                };
                // What was planned and did not happen was never there.
                if matches!(self.history().change(change)?.status, ChangeStatus::Applied | ChangeStatus::Undone { .. })
                {
                    for step in record.steps {
                        steps.entry(step.path.clone()).or_default().push(step);
                    }
                }
            }
        }
    }

    fn scan(&mut self, named: &Named) -> Result<Scan, GateError> {
        let last = self.scan_file(LAST);
        let collections = self.journal.reader().counter(COLLECTIONS)?;
        let (trust, known) = match read(&last) {
            Some((count, known)) if count == collections => (Trust::Kept, known),
            Some((_, known)) => (Trust::Ask, known),
            // Without it, more is read.
            None => (Trust::Ask, Known::default()),
        };
        let (limits, quota) = (self.limits.scan_limits(), self.limits.quota);
        let scan = self.workspace.scan_with(named, &known, trust, limits, &mut Keeping(&mut self.journal))?;
        let mut bytes = collections.to_le_bytes().to_vec();
        bytes.extend(scan.known.encode());
        write(&last, &bytes).map_err(|error| GateError::state_file(&last, &error))?;
        if self.journal.reader().sizes()?.stored_bytes > quota {
            self.release(quota)?;
        }
        Ok(scan)
    }

    /// The contents that only scans know of.
    pub(crate) fn scanned(&self) -> Vec<ContentHash> {
        let mut hashes = Vec::new();
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        let files = std::fs::read_dir(self.scan_folder());
        for file in files.into_iter().flatten().flatten() {
            if let Some((_, known)) = read(&file.path()) {
                hashes.extend(known.contents());
            }
        }
        hashes
    }

    fn scan_folder(&self) -> PathBuf {
        self.feed.folder().join(FOLDER)
    }

    fn scan_file(&self, name: &str) -> PathBuf {
        self.scan_folder().join(name)
    }
}

/// Directories that could be looked into before a command or after it, and not both times. Where the patterns changed by which files
/// are ignored, that is why.
fn hidden(before: &Known, after: &Known, steps: &BTreeMap<WsPath, RecordedStep>) -> Vec<Uncaptured> {
    let patterns = |directory: &str| {
        let mut above = directory;
        loop {
            above = above.rsplit_once('/').map_or("", |(above, _)| above);
            let file = if above.is_empty() { IGNORE_FILE.to_owned() } else { format!("{above}/{IGNORE_FILE}") };
            if steps.keys().any(|path| path.as_str() == file) {
                return true;
            }
            if above.is_empty() {
                return false;
            }
        }
    };
    let reason = "what is in it may have changed, and was not captured, since it could not be read at the time";
    let paths = TreeChanges::hidden_once(before, after).into_iter().filter(|path| !patterns(path.as_str()));
    paths.map(|path| Uncaptured { path: path.to_string(), reason: reason.to_owned() }).collect()
}

fn changed(change: &UncapturedChange) -> &'static str {
    match change.change {
        Happened::Came => "it came, and was not captured",
        Happened::Went => "it is gone, and was not captured before",
        Happened::Changed => "it changed, and was not captured before",
    }
}

/// What was known after how many collections; `None` if that is not known.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn read(path: &Path) -> Option<(u64, Known)> {
    let bytes = std::fs::read(path).ok()?;
    let (count, known) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*count), Known::decode(known)?))
}

/// Replaces a file as a whole. It is on disk when this returns: what was there before a command has to be known after a crash, too.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    drop(file);
    std::fs::rename(&new, path)?;
    std::fs::File::open(folder)?.sync_all()
}

/// Gives a file that is never written to another name, in place of whatever has it.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let new = to.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::hard_link(from, &new)?;
    std::fs::rename(&new, to)?;
    // Two names of one file are left as they are by a rename.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::open(to.parent().unwrap_or(to))?.sync_all()
}

/// What a command did to a file that other changes were about meanwhile, and whether it did something before them that is in no
/// step. `None` if all that happened is theirs.
fn between(
    path: &WsPath,
    started: Fingerprint,
    others: &[RecordedStep],
    now: Fingerprint,
) -> Option<(RecordedStep, bool)> {
    let mut pieces = Vec::new();
    let mut at = started;
    for other in others {
        pieces.push((std::mem::replace(&mut at, other.after.clone()), other.before.clone()));
    }
    pieces.push((at, now));
    pieces.retain(|(before, after)| before != after);
    let hidden = pieces.len() > 1;
    let (before, after) = pieces.pop()?;
    Some((RecordedStep { path: path.clone(), before, after }, hidden))
}
