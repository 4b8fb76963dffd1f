//! What waits for a verdict: deadlines, previews that files outrun, and changes that count on others.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{
    Answer, ChangeId, Decider, Event, FileState, Intent, Operation, Outcome, Preview, Refresh, Subject, Verdict,
    WsPath, told_without,
};
use sayso_workspace::Signature;

use crate::FILE_LIMIT;
use crate::engine::{Engine, Was};
use crate::error::GateError;
use crate::history::History;
use crate::proposed::Decided;
use crate::record::{Entry, file_records, shown};
use sayso_review::{ChangeRecord, ChangeStatus};

/// The rule that denies what nobody decided in time.
pub const DEADLINE: &str = "deadline";

/// What waits for a verdict. Previews stay in the journal: ten thousand of them may wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    changes: BTreeMap<ChangeId, Held>,
    by_path: BTreeMap<WsPath, BTreeSet<ChangeId>>,
}

#[derive(Debug)]
struct Held {
    deadline: Option<i64>,
    /// The files it is about, as they were when it was previewed.
    files: Vec<(WsPath, Looked)>,
}

/// What is known of a file.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    /// Nothing: it was looked at before a restart.
    NotSince,
    /// What `stat` said; nothing, if there was no file.
    At(Option<Signature>),
}

impl Waiting {
    fn insert(&mut self, change: ChangeId, held: Held) {
        self.remove(change);
        for (path, _) in &held.files {
            self.by_path.entry(path.clone()).or_default().insert(change);
        }
        self.changes.insert(change, held);
    }

    fn remove(&mut self, change: ChangeId) -> Option<Held> {
        let held = self.changes.remove(&change)?;
        for (path, _) in &held.files {
            if let Some(changes) = self.by_path.get_mut(path) {
                changes.remove(&change);
                if changes.is_empty() {
                    self.by_path.remove(path);
                }
            }
        }
        Some(held)
    }

    /// The changes that are about any of these files.
    fn about<'p>(&self, paths: impl IntoIterator<Item = &'p WsPath>) -> BTreeSet<ChangeId> {
        paths.into_iter().filter_map(|path| self.by_path.get(path)).flatten().copied().collect()
    }
}

impl Engine {
    /// The changes that wait for a verdict, in the order in which they came.
    pub fn waiting(&mut self) -> Result<Vec<ChangeId>, GateError> {
        Ok(self.held()?.changes.keys().copied().collect())
    }

    /// How many they are, without listing them.
    pub(crate) fn waiting_count(&mut self) -> Result<usize, GateError> {
        Ok(self.held()?.changes.len())
    }

    pub(crate) fn held(&mut self) -> Result<&mut Waiting, GateError> {
        if self.waiting.is_none() {
            let mut waiting = Waiting::default();
            let mut left = self.history().status()?.pending;
            for record in self.history().changes(None) {
                if left == 0 {
                    break;
                }
                let record = record?;
                if History::is_pending(&record) {
                    left -= 1;
                    // Not known to be as it was then, so that it is looked at once.
                    let files = record.files.iter().map(|file| (file.location.clone(), Looked::NotSince)).collect();
                    waiting.insert(record.change, Held { deadline: record.deadline, files });
                }
            }
            self.waiting = Some(waiting);
        }
        Ok(self.waiting.get_or_insert_default())
    }

    pub(crate) fn now_waits(&mut self, change: ChangeId, preview: &Preview, deadline: Option<i64>) {
        let Some(waiting) = &mut self.waiting else { return };
        let sign = |path: &WsPath| (path.clone(), Looked::At(self.workspace.signature(path)));
        let files = preview.files().iter().map(|file| sign(&file.location)).collect();
        waiting.insert(change, Held { deadline, files });
    }

    /// The changes that wait and are about the same files as a preview.
    pub(crate) fn waiting_for(&mut self, preview: &Preview) -> Result<Vec<ChangeId>, GateError> {
        let waiting = self.held()?;
        Ok(waiting.about(preview.files().iter().map(|file| &file.location)).into_iter().collect())
    }

    /// A change ended: those that waited for the same files after it are looked at again, and say what it means for them.
    pub(crate) fn no_longer_waits(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        let ended: Vec<WsPath> = match &mut self.waiting {
            Some(waiting) => match waiting.remove(change) {
                Some(held) => held.files.into_iter().map(|(path, _)| path).collect(),
                None => return Ok(()),
            },
            // The first thing that ends after a start: others may have waited for it since before.
            None => self.history().change(change)?.files.into_iter().map(|file| file.location).collect(),
        };
        let later = self.held()?.about(&ended).split_off(&change);
        if later.is_empty() {
            return Ok(());
        }
        let happened = matches!(self.history().change(change)?.status, ChangeStatus::Applied | ChangeStatus::Permitted);
        for dependent in later {
            let before = change;
            let why = if happened { Refresh::Applied { before } } else { Refresh::Without { before } };
            self.refresh(dependent, why, now)?;
        }
        Ok(())
    }

    /// Makes the preview of a change that waits anew. Tells whether it is another one now.
    pub(crate) fn refresh(&mut self, change: ChangeId, why: Refresh, now: i64) -> Result<bool, GateError> {
        let record = self.history().change(change)?;
        let Some(preview) = self.preview_again(&record)? else { return Ok(false) };
        let hash = record.subject.bind(preview.hash());
        if hash == record.preview && !matches!(why, Refresh::Without { .. }) {
            return Ok(false);
        }
        let mut entry = Entry::default();
        let event = Event::Refreshed { change, files: file_records(&preview), preview: hash, why };
        entry.push(event, &shown(&preview));
        self.write(entry, now)?;
        self.now_waits(change, &preview, record.deadline);
        Ok(true)
    }

    /// What a change that waits would do now; `None` if that is not known, since it did not come as an intent.
    fn preview_again(&self, record: &ChangeRecord) -> Result<Option<Preview>, GateError> {
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
        let sight = self.workspace.look(draft.paths(), FILE_LIMIT);
        Ok(Some(draft.preview_since(&sight, &self.seen_by_author(record)?)))
    }

    /// The files of a change as its author saw them: as they were when it was proposed, and with what became of the author's earlier
    /// changes that were still waiting then.
    fn seen_by_author(&self, record: &ChangeRecord) -> Result<BTreeMap<WsPath, FileState>, GateError> {
        let mut prints = BTreeMap::new();
        for file in self.history().first_files(record.change)? {
            let path = if let Operation::Rename { from } = file.operation { from } else { file.location };
            prints.insert(path, file.before);
        }
        for earlier in &record.after {
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

    /// Does what is due: denies what nobody decided in time, and refreshes previews whose files changed underneath.
    pub fn tick(&mut self, now: i64) -> Result<Ticked, GateError> {
        let waiting = self.held()?;
        let due = waiting.changes.iter().filter(|(_, held)| held.deadline.is_some_and(|deadline| deadline <= now));
        let due: Vec<ChangeId> = due.map(|(change, _)| *change).collect();
        let mut ticked = Ticked::default();
        let mut failed = None;
        for change in due {
            // One that cannot be ended must not keep others from theirs.
            match self.expire(change, now) {
                Ok(_) => ticked.expired.push(change),
                Err(GateError::WrongStatus { .. } | GateError::NoSuchChange(_)) => {
                    self.held()?.remove(change);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let changes: Vec<ChangeId> = self.held()?.changes.keys().copied().collect();
        for change in changes {
            if self.keep_current(change, now)? {
                ticked.refreshed.push(change);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(ticked),
        }
    }

    /// Makes the preview of a change that waits anew if a file of it is not the one that was looked at. Tells whether it is another
    /// one now.
    pub(crate) fn keep_current(&mut self, change: ChangeId, now: i64) -> Result<bool, GateError> {
        self.held()?;
        let held = self.waiting.as_ref().and_then(|waiting| waiting.changes.get(&change));
        let outrun = |(path, looked): &(WsPath, Looked)| *looked != Looked::At(self.workspace.signature(path));
        if !held.is_some_and(|held| held.files.iter().any(outrun)) {
            return Ok(false);
        }
        let refreshed = self.refresh(change, Refresh::FilesChanged, now)?;
        if !refreshed {
            self.sign_again(change);
        }
        Ok(refreshed)
    }

    /// Takes the files of a change as they are now to be those that its preview shows, since they were found to be.
    fn sign_again(&mut self, change: ChangeId) {
        let Some(held) = self.waiting.as_mut().and_then(|waiting| waiting.changes.get_mut(&change)) else { return };
        for (path, looked) in &mut held.files {
            *looked = Looked::At(self.workspace.signature(path));
        }
    }

    /// When the next deadline is.
    pub fn next_deadline(&mut self) -> Result<Option<i64>, GateError> {
        Ok(self.held()?.changes.values().filter_map(|held| held.deadline).min())
    }

    /// Denies what nobody decided in time.
    pub(crate) fn expire(&mut self, change: ChangeId, now: i64) -> Result<Decided, GateError> {
        let proposed = self.proposed(change)?;
        let reason = Some("nobody decided in time".to_owned());
        let verdict =
            Verdict { by: Decider::Policy { rule: DEADLINE.to_owned() }, ..proposed.verdict(Answer::Deny { reason }) };
        self.decide(&proposed, &verdict, now)
    }

    /// Ends a change that cannot be made as proposed, and that waits for no other which could make it possible.
    pub(crate) fn fail_if_impossible(&mut self, change: ChangeId, now: i64) -> Result<Option<String>, GateError> {
        let record = self.pending(change)?;
        let waits_for_others = match &self.waiting {
            Some(waiting) => record.after.iter().any(|before| waiting.changes.contains_key(before)),
            None => false,
        };
        if waits_for_others {
            return Ok(None);
        }
        let Some(mut told) = self.history().preview(&record)?.told_problems() else { return Ok(None) };
        for before in &record.without {
            told.push_str(&format!("\n{}", told_without(*before)));
        }
        let outcome = Outcome::Failed { reason: "it cannot be made as proposed".to_owned() };
        let mut events = vec![Event::Ended { change, outcome, told: Some(told.clone()) }];
        events.extend(self.message(&record.origin, record.performer, change, &told)?);
        self.end(events, Was::Pending, now)?;
        Ok(Some(told))
    }
}

/// What was due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Changes that were denied, since nobody decided in time.
    pub expired: Vec<ChangeId>,
    /// Changes whose files changed underneath, and that show what they would do now.
    pub refreshed: Vec<ChangeId>,
}
