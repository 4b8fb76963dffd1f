//! Index of pending changes: deadlines, stale previews, and dependencies between changes.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{
    Answer, ChangeId, ContentHash, Decider, Event, FileState, Intent, Operation, Outcome, Performer, Preview,
    RefreshReason, Subject, Verdict, WsPath, dependency_denied,
};
use sayso_workspace::Signature;

use crate::editor::PreviewBase;
use crate::engine::{Engine, PhaseBefore};
use crate::error::GateError;
use crate::history::History;
use crate::pending_change::DecisionResult;
use crate::record::{JournalBatch, file_records, preview_contents};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Name of the rule that denies changes after their deadline.
pub const DEADLINE_RULE: &str = "deadline";

/// Pending changes by number and by path. Previews stay in the journal, so that thousands of changes can be pending.
#[derive(Debug, Default)]
pub(crate) struct PendingIndex {
    changes: BTreeMap<ChangeId, PendingEntry>,
    by_path: BTreeMap<WsPath, BTreeSet<ChangeId>>,
}

#[derive(Debug)]
struct PendingEntry {
    deadline: Option<i64>,
    /// The files of the change, with their signatures at the time of the preview.
    files: Vec<(WsPath, LastStat)>,
}

/// Signature of a file when it was last compared with the preview.
#[derive(Debug, PartialEq, Eq)]
enum LastStat {
    /// The comparison was before a restart.
    Unknown,
    /// `None` if the file did not exist. The hash is of unsaved text in an editor.
    Known(Option<Signature>, Option<ContentHash>),
}

impl PendingIndex {
    fn insert(&mut self, change: ChangeId, entry: PendingEntry) {
        self.remove(change);
        for (path, _) in &entry.files {
            self.by_path.entry(path.clone()).or_default().insert(change);
        }
        self.changes.insert(change, entry);
    }

    fn remove(&mut self, change: ChangeId) -> Option<PendingEntry> {
        let entry = self.changes.remove(&change)?;
        for (path, _) in &entry.files {
            if let Some(changes) = self.by_path.get_mut(path) {
                changes.remove(&change);
                if changes.is_empty() {
                    self.by_path.remove(path);
                }
            }
        }
        Some(entry)
    }

    /// Returns the changes of any of these files.
    fn about<'p>(&self, paths: impl IntoIterator<Item = &'p WsPath>) -> BTreeSet<ChangeId> {
        paths.into_iter().filter_map(|path| self.by_path.get(path)).flatten().copied().collect()
    }
}

impl Engine {
    /// Returns the pending changes, oldest first.
    pub fn pending_changes(&mut self) -> Result<Vec<ChangeId>, GateError> {
        Ok(self.pending_index()?.changes.keys().copied().collect())
    }

    pub(crate) fn pending_count(&mut self) -> Result<usize, GateError> {
        Ok(self.pending_index()?.changes.len())
    }

    pub(crate) fn pending_index(&mut self) -> Result<&mut PendingIndex, GateError> {
        if self.pending_index.is_none() {
            let mut index = PendingIndex::default();
            let mut left = self.history().status()?.pending;
            for record in self.history().changes(None) {
                if left == 0 {
                    break;
                }
                let record = record?;
                if History::is_pending(&record) {
                    left -= 1;
                    // The unknown signature makes the next tick compare the files.
                    let files = record.files.iter().map(|file| (file.location.clone(), LastStat::Unknown)).collect();
                    index.insert(record.change, PendingEntry { deadline: record.deadline, files });
                }
            }
            self.pending_index = Some(index);
        }
        Ok(self.pending_index.get_or_insert_default())
    }

    pub(crate) fn index_pending(&mut self, change: ChangeId, preview: &Preview, deadline: Option<i64>) {
        let files = preview.files().iter().map(|file| (file.location.clone(), self.stat(&file.location))).collect();
        let Some(index) = &mut self.pending_index else { return };
        index.insert(change, PendingEntry { deadline, files });
    }

    /// Returns the pending changes of the files of a preview.
    pub(crate) fn pending_with_same_files(&mut self, preview: &Preview) -> Result<Vec<ChangeId>, GateError> {
        let index = self.pending_index()?;
        Ok(index.about(preview.files().iter().map(|file| &file.location)).into_iter().collect())
    }

    /// Removes a change that ended, and refreshes the later pending changes of its files.
    pub(crate) fn unindex_pending(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        let ended: Vec<WsPath> = match &mut self.pending_index {
            Some(index) => match index.remove(change) {
                Some(entry) => entry.files.into_iter().map(|(path, _)| path).collect(),
                None => return Ok(()),
            },
            // First end after a start: the index has not been built, and changes may depend on this one.
            None => self.history().change(change)?.files.into_iter().map(|file| file.location).collect(),
        };
        let later = self.pending_index()?.about(&ended).split_off(&change);
        if later.is_empty() {
            return Ok(());
        }
        let happened = matches!(self.history().change(change)?.status, ChangeStatus::Applied | ChangeStatus::Permitted);
        for dependent in later {
            let before = change;
            let why = if happened {
                RefreshReason::PredecessorApplied { predecessor: before }
            } else {
                RefreshReason::PredecessorDropped { predecessor: before }
            };
            self.refresh(dependent, why, now)?;
        }
        Ok(())
    }

    /// Previews a pending change again. Returns `true` if its preview changed.
    pub(crate) fn refresh(&mut self, change: ChangeId, why: RefreshReason, now: i64) -> Result<bool, GateError> {
        let record = self.history().change(change)?;
        let Some(preview) = self.recompute_preview(&record)? else { return Ok(false) };
        let hash = record.subject.bind(preview.hash());
        if hash == record.preview && !matches!(why, RefreshReason::PredecessorDropped { .. }) {
            return Ok(false);
        }
        let mut entry = JournalBatch::default();
        let event = Event::Refreshed { change, files: file_records(&preview), preview: hash, reason: why };
        entry.push_event(event, &preview_contents(&preview));
        self.write(entry, now)?;
        self.index_pending(change, &preview, record.deadline);
        Ok(true)
    }

    /// Computes the present effect of a pending change; `None` if its intent was not recorded.
    fn recompute_preview(&self, record: &ChangeRecord) -> Result<Option<Preview>, GateError> {
        let Some(bytes) = record.intent.map(|hash| self.history().content(hash)).transpose()?.flatten() else {
            return Ok(None);
        };
        let proposal = match serde_json::from_slice(&bytes) {
            Ok(Intent::ChangeFiles(proposal)) => proposal,
            Ok(Intent::CallTool { .. }) => match &record.subject {
                Subject::Tool { preview, .. } => match &preview.changes {
                    Some(proposal) => proposal.clone(),
                    None => return Ok(None),
                },
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let draft = proposal.draft(|text| self.workspace.locate(text))?;
        let performer = if record.subject.is_files() { record.performer } else { Performer::Agent };
        let sight = self.observe(draft.paths(), PreviewBase::of(performer));
        Ok(Some(draft.preview_since(&sight, &self.author_base(record)?)))
    }

    /// Returns the files of a change as its author saw them: their states when it was proposed, with the effects of
    /// earlier pending changes.
    fn author_base(&self, record: &ChangeRecord) -> Result<BTreeMap<WsPath, FileState>, GateError> {
        let mut prints = BTreeMap::new();
        for file in self.history().first_files(record.change)? {
            let path = if let Operation::Rename { from } = file.operation { from } else { file.location };
            prints.insert(path, file.before);
        }
        for earlier in &record.predecessors {
            for step in self.history().change(*earlier)?.applied.into_iter().flat_map(|applied| applied.steps) {
                prints.entry(step.path).and_modify(|print| *print = step.after);
            }
        }
        let mut bases = BTreeMap::new();
        for (path, print) in prints {
            bases.extend(self.history().state(&print)?.map(|state| (path, state)));
        }
        Ok(bases)
    }

    /// Denies changes whose deadline passed, and refreshes previews whose files changed.
    pub fn tick(&mut self, now: i64) -> Result<TickReport, GateError> {
        let index = self.pending_index()?;
        let due = index.changes.iter().filter(|(_, entry)| entry.deadline.is_some_and(|deadline| deadline <= now));
        let due: Vec<ChangeId> = due.map(|(change, _)| *change).collect();
        let mut ticked = TickReport::default();
        let mut failed = None;
        for change in due {
            // An error with one change must not delay the others.
            match self.expire(change, now) {
                Ok(_) => ticked.expired.push(change),
                Err(GateError::WrongStatus { .. } | GateError::NoSuchChange(_)) => {
                    self.pending_index()?.remove(change);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let changes: Vec<ChangeId> = self.pending_index()?.changes.keys().copied().collect();
        for change in changes {
            if self.refresh_if_stale(change, now)? {
                ticked.refreshed.push(change);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(ticked),
        }
    }

    /// Previews a pending change again if the signature of one of its files changed. Returns `true` if its preview
    /// changed.
    pub(crate) fn refresh_if_stale(&mut self, change: ChangeId, now: i64) -> Result<bool, GateError> {
        self.pending_index()?;
        let entry = self.pending_index.as_ref().and_then(|index| index.changes.get(&change));
        let is_stale = |(path, last): &(WsPath, LastStat)| *last != self.stat(path);
        if !entry.is_some_and(|entry| entry.files.iter().any(is_stale)) {
            return Ok(false);
        }
        let refreshed = self.refresh(change, RefreshReason::FilesChanged, now)?;
        if !refreshed {
            self.restat(change);
        }
        Ok(refreshed)
    }

    /// Updates the signatures of a change's files, after a comparison found their contents unchanged.
    fn restat(&mut self, change: ChangeId) {
        let entry = self.pending_index.as_ref().and_then(|index| index.changes.get(&change));
        let paths = entry.into_iter().flat_map(|entry| &entry.files).map(|(path, _)| path);
        let files: Vec<(WsPath, LastStat)> = paths.map(|path| (path.clone(), self.stat(path))).collect();
        if let Some(entry) = self.pending_index.as_mut().and_then(|index| index.changes.get_mut(&change)) {
            entry.files = files;
        }
    }

    fn stat(&self, path: &WsPath) -> LastStat {
        LastStat::Known(self.workspace.signature(path), self.buffers.stamp(path))
    }

    /// Returns the files of all pending changes.
    pub(crate) fn pending_paths(&mut self) -> Result<BTreeSet<WsPath>, GateError> {
        Ok(self.pending_index()?.by_path.keys().cloned().collect())
    }

    /// Returns the files of a pending change; none if it is not pending.
    pub(crate) fn paths_of_pending(&mut self, change: ChangeId) -> Result<BTreeSet<WsPath>, GateError> {
        let files = self.pending_index()?.changes.get(&change).map(|entry| entry.files.iter());
        Ok(files.into_iter().flatten().map(|(path, _)| path.clone()).collect())
    }

    /// Returns the earliest deadline.
    pub fn next_deadline(&mut self) -> Result<Option<i64>, GateError> {
        Ok(self.pending_index()?.changes.values().filter_map(|entry| entry.deadline).min())
    }

    /// Denies a change whose deadline passed.
    pub(crate) fn expire(&mut self, change: ChangeId, now: i64) -> Result<DecisionResult, GateError> {
        let proposed = self.pending_change(change)?;
        let reason = Some("nobody decided in time".to_owned());
        let verdict = Verdict {
            by: Decider::Policy { rule: DEADLINE_RULE.to_owned() },
            ..proposed.verdict(Answer::Deny { reason })
        };
        self.decide(&proposed, &verdict, now)
    }

    /// Ends a change whose preview has problems, unless an earlier pending change may solve them. Returns the message
    /// for the agent.
    pub(crate) fn fail_if_impossible(&mut self, change: ChangeId, now: i64) -> Result<Option<String>, GateError> {
        let record = self.pending_record(change)?;
        let waits_for_others = match &self.pending_index {
            Some(index) => record.predecessors.iter().any(|before| index.changes.contains_key(before)),
            None => false,
        };
        if waits_for_others {
            return Ok(None);
        }
        let Some(mut agent_message) = self.history().preview(&record)?.problems_message() else { return Ok(None) };
        for before in &record.dropped_predecessors {
            agent_message.push_str(&format!("\n{}", dependency_denied(*before)));
        }
        let outcome = Outcome::Failed { reason: "it cannot be made as proposed".to_owned() };
        let mut events = vec![Event::Ended { change, outcome, agent_message: Some(agent_message.clone()) }];
        events.extend(self.queued_message(&record.origin, record.performer, change, &agent_message)?);
        self.finish_change(events, PhaseBefore::Pending, now)?;
        Ok(Some(agent_message))
    }
}

/// Result of [`Engine::tick`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Changes that were denied at their deadline.
    pub expired: Vec<ChangeId>,
    /// Changes with a new preview, because their files changed.
    pub refreshed: Vec<ChangeId>,
}
