//! What a command changes: the tree is scanned before it runs and after it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use sayso_journal::{Batch, Journal};
use sayso_review::{
    ChangeId, ContentHash, Event, EventBody, FileState, Fingerprint, Outcome, RecordedStep, Uncaptured, WsPath,
};
use sayso_workspace::{Contents, Happened, Known, Scan, ScanLimits, TreeChanges, Trust, UncapturedChange};

use crate::action::Finished;
use crate::change::ChangeRecord;
use crate::engine::Engine;
use crate::error::GateError;

/// The counter of collections: what was kept before one may be gone after it.
pub(crate) const COLLECTIONS: &str = "collections";

/// The folder for what is known of the tree, beside the journal.
const FOLDER: &str = "scans";
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
    pub const USUAL: Self = Self { largest_file: 16 << 20, quota: 2 << 30 };
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
    /// Captures the tree before something may change it. Says what was not captured.
    pub fn capture_tree(&mut self) -> Result<Vec<Uncaptured>, GateError> {
        let scan = self.scan()?;
        Ok(uncaptured(&scan))
    }

    /// Captures the tree as it is before a command runs.
    pub(crate) fn begin_observing(&mut self, change: ChangeId) -> Result<(), GateError> {
        self.scan()?;
        let (last, own) = (self.scan_file(LAST), self.scan_file(&change.to_string()));
        // The last scan's file is replaced and never written to, so another name for it is a copy.
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        std::fs::hard_link(&last, &own).map_err(|error| GateError::state_file(&own, &error))
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
        let scan = self.scan()?;
        let changes = TreeChanges::between(&before, &scan.known);
        let mut elsewhere = self.elsewhere(record)?;
        for mut step in changes.steps {
            if let Some(print) = elsewhere.remove(&step.path) {
                step.before = print;
            }
            if step.before != step.after {
                finished.record.steps.push(step);
            }
        }
        // What others changed and is as it was before them, the command put back.
        for (path, before) in elsewhere {
            let after = scan.known.at(&path).or_else(|| self.is_absent(&path).then_some(Fingerprint::Absent));
            if let Some(after) = after.filter(|after| *after != before) {
                finished.record.steps.push(RecordedStep { path, before, after });
            }
        }
        finished.record.steps.sort_by(|one, other| one.path.cmp(&other.path));
        finished.record.directories = changes.made;
        finished.uncaptured = changes
            .uncaptured
            .iter()
            .map(|change| Uncaptured { path: change.path.to_string(), reason: changed(change).to_owned() })
            .collect();
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        // One that stays behind is removed with the next collection.
        let _ = std::fs::remove_file(&own);
        Ok(finished)
    }

    /// What other changes left at paths while a command ran: they are on record, and not the command's.
    fn elsewhere(&self, record: &ChangeRecord) -> Result<BTreeMap<WsPath, Fingerprint>, GateError> {
        let mut happened = Vec::new();
        let mut after = record.permitted;
        loop {
            let events = self.history().events(None, after, 1_000)?;
            let Some(last) = events.last() else { break };
            after = last.number;
            for event in events {
                match event.body {
                    EventBody::Known(Event::Applying { change, record } | Event::Observed { change, record, .. }) => {
                        happened.push((change, record));
                    }
                    // A plan that was on its way and never reached the tree.
                    EventBody::Known(
                        Event::Ended { change, outcome: Outcome::Stale { .. } | Outcome::Failed { .. }, .. }
                        | Event::Recovered { change, finished: false, .. },
                    ) => happened.retain(|(of, _)| *of != change),
                    _ => {}
                }
            }
        }
        let steps = happened.into_iter().flat_map(|(_, record)| record.steps);
        Ok(steps.map(|step| (step.path, step.after)).collect())
    }

    /// Whether there is nothing at a path; what git ignores is there, although no scan knows of it.
    fn is_absent(&self, path: &WsPath) -> bool {
        let sight = self.workspace.look([path.clone()], crate::FILE_LIMIT);
        sight.files.get(path).is_some_and(|seen| seen.found == Ok(FileState::Absent))
    }

    fn scan(&mut self) -> Result<Scan, GateError> {
        let last = self.scan_file(LAST);
        let collections = self.journal.reader().counter(COLLECTIONS)?;
        let (trust, known) = match read(&last) {
            Some((count, known)) if count == collections => (Trust::Kept, known),
            Some((_, known)) => (Trust::Ask, known),
            None => (Trust::Ask, Known::default()),
        };
        let SnapshotLimits { largest_file, quota } = self.limits;
        let limits = ScanLimits { largest_file, most_files: MOST_FILES, most_bytes: quota };
        let scan = self.workspace.scan(&known, trust, limits, &mut Keeping(&mut self.journal))?;
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

fn changed(change: &UncapturedChange) -> &'static str {
    match change.change {
        Happened::Came => "it came, and was not captured",
        Happened::Went => "it is gone, and was not captured before",
        Happened::Changed => "it changed, and was not captured before",
    }
}

fn uncaptured(scan: &Scan) -> Vec<Uncaptured> {
    let said =
        |one: &sayso_workspace::NotCaptured| Uncaptured { path: one.path.clone(), reason: one.reason.to_string() };
    scan.not_captured.iter().map(said).collect()
}

/// What was known after how many collections; `None` if that is not known.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn read(path: &std::path::Path) -> Option<(u64, Known)> {
    let bytes = std::fs::read(path).ok()?;
    let (count, known) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*count), Known::decode(known)))
}

/// Replaces a file as a whole; it is a cache, so that nothing is lost if it is gone after a crash.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn write(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let folder = path.parent().unwrap_or(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    drop(file);
    std::fs::rename(&new, path)
}
