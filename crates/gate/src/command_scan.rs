//! Changes that a command makes, found by scans of the tree before and after it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sayso_journal::{Batch, Journal};
use sayso_review::{ChangeId, ContentHash, Event, EventBody, Fingerprint, RecordedStep, Subject, Uncaptured, WsPath};
use sayso_workspace::{
    ChangeKind, Contents, NamedPaths, Reason, Scan, ScanIndex, ScanLimits, TreeChanges, Trust, UncapturedChange,
};

use crate::FILE_LIMIT;
use crate::action::Completion;
use crate::engine::Engine;
use crate::error::GateError;
use sayso_review::{ChangeRecord, ChangeStatus};

/// Counter of collections. Scanned contents may be gone after a collection.
pub(crate) const COLLECTIONS: &str = "collections";

/// Folder of scans, beside the journal.
const SCAN_FOLDER: &str = "scans";
const IGNORE_FILE: &str = ".gitignore";
/// Name of the latest scan.
const LATEST_SCAN: &str = "last";

/// Limits for contents that are captured to undo commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Larger files are not captured.
    pub max_file_bytes: u64,
    /// Above this stored size, the oldest contents are deleted.
    pub quota_bytes: u64,
}

impl SnapshotLimits {
    /// Limits without configuration.
    pub const DEFAULT: Self = Self { max_file_bytes: sayso_review::MAX_FILE_BYTES, quota_bytes: 1_000_000_000 };

    /// Maximum total size of ignored files that a command names.
    pub(crate) fn max_ignored_bytes(self) -> u64 {
        self.scan_limits().max_ignored_bytes
    }

    fn scan_limits(self) -> ScanLimits {
        let Self { max_file_bytes, quota_bytes: quota } = self;
        // One command may use only a part of the quota.
        ScanLimits { max_file_bytes, max_files: MAX_SCANNED_FILES, max_new_bytes: quota, max_ignored_bytes: quota / 4 }
    }
}

/// A scan ends after this many files.
const MAX_SCANNED_FILES: usize = 1_000_000;

/// Stores scanned contents in the journal. No event refers to them until a change is found, so [`Engine::collect`] must
/// be told to keep them.
struct JournalContents<'j>(&'j mut Journal);

impl Contents for JournalContents<'_> {
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
    /// Captures the tree before a command runs.
    pub(crate) fn scan_before(&mut self, change: ChangeId, subject: &Subject) -> Result<(), GateError> {
        self.scan(&self.paths_named_by(subject))?;
        let (last, own) = (self.scan_file(LATEST_SCAN), self.scan_file(&change.to_string()));
        link_scan(&last, &own).map_err(|error| GateError::state_file(&own, &error))
    }

    /// Returns the changes since a command was permitted, without the steps of other recorded changes.
    pub(crate) fn scan_after(&mut self, record: &ChangeRecord) -> Result<Completion, GateError> {
        let own = self.scan_file(&record.change.to_string());
        let mut finished = Completion::empty();
        let Some(before) = read_scan(&own).map(|(_, known)| known) else {
            let reason = "its state before the command is not known any more".to_owned();
            finished.uncaptured.push(Uncaptured { path: ".".to_owned(), reason });
            return Ok(finished);
        };
        let scan = self.scan(&self.paths_named_by(&record.approved()))?;
        let changes = TreeChanges::between(&before, &scan.index);
        let mut steps: BTreeMap<WsPath, RecordedStep> =
            changes.steps.into_iter().map(|step| (step.path.clone(), step)).collect();
        for (path, others) in self.steps_of_other_changes(record)? {
            // A path that became ignored is not scanned any more, but not gone.
            let first = others.first().map_or(Fingerprint::Absent, |other| other.before.clone());
            let started = before.was(&path).unwrap_or(first);
            let Some(now) = scan.index.was(&path).or_else(|| self.current_fingerprint(&path)) else { continue };
            let Some((step, hidden)) = command_step(&path, started, &others, now) else {
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
            let reason = "its name is not UTF-8, so a change cannot be detected".to_owned();
            Uncaptured { path: one.path.clone(), reason }
        }));
        finished.uncaptured.extend(unreadable_directories(&before, &scan.index, &steps));
        finished.uncaptured.extend(TreeChanges::unseen_and_gone(&before, &scan.index).into_iter().map(|path| {
            let reason = "it is gone, and was not captured because git ignores it".to_owned();
            Uncaptured { path: path.to_string(), reason }
        }));
        finished.record.steps = steps.into_values().collect();
        finished.record.directories = changes.made;
        let uncaptured = changes.uncaptured.iter();
        finished.uncaptured.extend(
            uncaptured
                .map(|change| Uncaptured { path: change.path.to_string(), reason: change_reason(change).to_owned() }),
        );
        Ok(finished)
    }

    /// Returns the present state of a path, if it can be read.
    fn current_fingerprint(&self, path: &WsPath) -> Option<Fingerprint> {
        let sight = self.workspace.observe([path.clone()], FILE_LIMIT);
        sight.files.get(path)?.state().ok().map(|state| state.fingerprint())
    }

    /// Removes the scan from before a command.
    pub(crate) fn remove_scan(&self, change: ChangeId) {
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        // After an error, the next collection removes the file.
        let _ = std::fs::remove_file(self.scan_file(&change.to_string()));
    }

    /// Removes the scans from before commands that have ended.
    pub(crate) fn remove_finished_scans(&self) {
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        let files = std::fs::read_dir(self.scan_folder());
        for file in files.into_iter().flatten().flatten() {
            let Some(Ok(change)) = file.file_name().to_str().map(str::parse::<ChangeId>) else { continue };
            let status = self.history().change(change).map(|record| record.status);
            if !matches!(status, Ok(ChangeStatus::Permitted | ChangeStatus::Pending)) {
                self.remove_scan(change);
            }
        }
    }

    /// Returns the recorded steps of other changes during a command, in order.
    fn steps_of_other_changes(&self, record: &ChangeRecord) -> Result<BTreeMap<WsPath, Vec<RecordedStep>>, GateError> {
        let mut steps: BTreeMap<WsPath, Vec<RecordedStep>> = BTreeMap::new();
        let mut after = record.permitted_event;
        loop {
            let events = self.history().events(None, after, 1_000)?;
            let Some(last) = events.last() else { return Ok(steps) };
            after = last.number;
            for event in events {
                let EventBody::Known(Event::Applying { change, record, .. } | Event::Observed { change, record, .. }) =
                    event.body
                else {
                    continue;
                };
                // Plans that were not applied left the tree as it was.
                if matches!(self.history().change(change)?.status, ChangeStatus::Applied | ChangeStatus::Undone { .. })
                {
                    for step in record.steps {
                        steps.entry(step.path.clone()).or_default().push(step);
                    }
                }
            }
        }
    }

    fn scan(&mut self, named: &NamedPaths) -> Result<Scan, GateError> {
        let last = self.scan_file(LATEST_SCAN);
        let collections = self.journal.reader().counter(COLLECTIONS)?;
        let (trust, known) = match read_scan(&last) {
            Some((count, known)) if count == collections => (Trust::Kept, known),
            Some((_, known)) => (Trust::Ask, known),
            // Without an index the scan reads every file.
            None => (Trust::Ask, ScanIndex::default()),
        };
        let (limits, quota) = (self.limits.scan_limits(), self.limits.quota_bytes);
        let scan = self.workspace.scan_with(named, &known, trust, limits, &mut JournalContents(&mut self.journal))?;
        let mut bytes = collections.to_le_bytes().to_vec();
        bytes.extend(scan.index.encode());
        write_scan(&last, &bytes).map_err(|error| GateError::state_file(&last, &error))?;
        if self.journal.reader().sizes()?.stored_bytes > quota {
            self.release(quota)?;
        }
        Ok(scan)
    }

    /// Returns the hashes of contents that only scans refer to.
    pub(crate) fn scanned_contents(&self) -> Vec<ContentHash> {
        let mut hashes = Vec::new();
        #[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
        let files = std::fs::read_dir(self.scan_folder());
        for file in files.into_iter().flatten().flatten() {
            if let Some((_, known)) = read_scan(&file.path()) {
                hashes.extend(known.contents());
            }
        }
        hashes
    }

    fn scan_folder(&self) -> PathBuf {
        self.feed.folder().join(SCAN_FOLDER)
    }

    fn scan_file(&self, name: &str) -> PathBuf {
        self.scan_folder().join(name)
    }
}

/// Returns directories that were readable only before or only after a command, unless the command changed the ignore
/// patterns above them.
fn unreadable_directories(
    before: &ScanIndex,
    after: &ScanIndex,
    steps: &BTreeMap<WsPath, RecordedStep>,
) -> Vec<Uncaptured> {
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
    let reason = "its files may have changed, and were not captured because it was not readable";
    let paths = TreeChanges::hidden_once(before, after).into_iter().filter(|path| !patterns(path.as_str()));
    paths.map(|path| Uncaptured { path: path.to_string(), reason: reason.to_owned() }).collect()
}

fn change_reason(change: &UncapturedChange) -> &'static str {
    match change.change {
        ChangeKind::Created => "it is new, and was not captured",
        ChangeKind::Removed => "it is gone, and was not captured",
        ChangeKind::Modified => "it changed, and was not captured",
    }
}

/// Reads a scan, with the number of collections before it; `None` if it is missing or damaged.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn read_scan(path: &Path) -> Option<(u64, ScanIndex)> {
    let bytes = std::fs::read(path).ok()?;
    let (count, known) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*count), ScanIndex::decode(known)?))
}

/// Replaces a scan file. It is durable on return, since the state before a command is needed after a crash as well.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn write_scan(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
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

/// Gives a scan file a second name, which replaces an existing one. Scan files are never written in place.
#[allow(clippy::disallowed_methods, reason = "what is known of the tree is kept beside the journal")]
fn link_scan(from: &Path, to: &Path) -> std::io::Result<()> {
    let new = to.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::hard_link(from, &new)?;
    std::fs::rename(&new, to)?;
    // A rename between two names of the same file has no effect, so the new name may be left.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::open(to.parent().unwrap_or(to))?.sync_all()
}

/// Returns the step of a command on a file that other changes affected meanwhile; `None` if all effects are theirs. The
/// flag is `true` if the command also changed the file before one of them, which no step shows.
fn command_step(
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
