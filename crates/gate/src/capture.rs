//! What a file was before a tool call: snapshots that win the race (the user's seed on inline diffs).
//!
//! Three tiers, each for what the one before may miss. The model's answer names calls before the agent has received the end of
//! it, so that for paths named in the arguments, and agents that wait for that end, the capture is done before the write. The
//! agent's hook comes before the tool runs. The tool's start may come after the write, so that a capture then comes with a warning.
//!
//! A snapshot is kept by path until the tool starts, and by the call's id from then on. Two calls of one message that change one
//! file are two snapshots, the second taken after the first has run.

use std::collections::{HashMap, VecDeque};

use sayso_review::{
    ChangeId, Event, FileState, Fingerprint, Freed, Snapshot, SnapshotId, Tier, ToolPreview, Uncaptured, WsPath,
};
use sayso_workspace::Signature;
use serde_json::Value;

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::record::{Entry, call_key};

/// The counter of snapshots, and the key of events about them.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// A call of a tool, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The session.
    pub session: Option<String>,
    /// The call's id; some agents do not tell it to their hooks.
    pub call: Option<String>,
    /// The tool's name.
    pub tool: String,
}

/// What was kept for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// What was kept, file by file.
    pub files: Vec<(WsPath, Kept)>,
    /// What could not be kept, and why.
    pub uncaptured: Vec<Uncaptured>,
}

/// What was kept of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// What it is now.
    Now(SnapshotId),
    /// What it was when an earlier tier looked.
    Earlier(SnapshotId),
    /// What it is now, though the tool may have changed it already: no earlier tier looked.
    Late(SnapshotId),
    /// Nothing yet: another call of the same message changes it first.
    AfterTheOther,
}

/// What is known beside the journal, to spare reading files that did not change; and the calls that come after others.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    seen: HashMap<WsPath, LastSeen>,
    queued: HashMap<(Option<String>, WsPath), VecDeque<ToolCall>>,
}

/// What a file was when it was last kept.
#[derive(Debug)]
struct LastSeen {
    signature: Signature,
    location: WsPath,
    state: Fingerprint,
}

/// Files whose last state is remembered.
const MOST_SEEN: usize = 10_000;

/// What an event about a snapshot can be found by.
pub(crate) fn keys(event: &Event) -> Vec<String> {
    match event {
        Event::Captured(snapshot) => {
            vec![snapshot_key(snapshot.snapshot), path_key(snapshot.session.as_deref(), &snapshot.path)]
        }
        Event::Correlated { snapshot, call, session } => {
            vec![snapshot_key(*snapshot), call_key(call), session_call_key(session.as_deref(), call)]
        }
        Event::Freed { snapshots, .. } => snapshots.iter().map(|snapshot| snapshot_key(*snapshot)).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn snapshot_key(snapshot: SnapshotId) -> String {
    format!("snapshot:{snapshot}")
}

/// By session too, or one agent's capture would free another's.
pub(crate) fn path_key(session: Option<&str>, path: &WsPath) -> String {
    let session = session.unwrap_or_default();
    format!("captured:{}:{session}:{path}", session.len())
}

/// By session too: many agents count their calls from one in every session.
pub(crate) fn session_call_key(session: Option<&str>, call: &str) -> String {
    let session = session.unwrap_or_default();
    format!("snapped:{}:{session}:{call}", session.len())
}

impl Engine {
    /// Keeps what the files are that a call is about, as its tier demands. A call that changes no file has none.
    pub fn capture_call(
        &mut self,
        tier: Tier,
        call: &ToolCall,
        arguments: &Value,
        now: i64,
    ) -> Result<Capture, GateError> {
        let mut capture = Capture::default();
        let Some(proposal) = ToolPreview::of(&call.tool, arguments, None).changes else { return Ok(capture) };
        let paths = match proposal.draft(|text| self.workspace.locate(text)) {
            Ok(draft) => draft.paths(),
            Err(error) => {
                capture.uncaptured.push(Uncaptured { path: call.tool.clone(), reason: error.to_string() });
                return Ok(capture);
            }
        };
        for path in paths {
            match self.capture_path(tier, call, &path, now)? {
                Ok(kept) => capture.files.push((path, kept)),
                Err(reason) => capture.uncaptured.push(Uncaptured { path: path.to_string(), reason }),
            }
        }
        Ok(capture)
    }

    /// Keeps what a file is before a call changes it, unless an earlier tier has.
    fn capture_path(
        &mut self,
        tier: Tier,
        call: &ToolCall,
        path: &WsPath,
        now: i64,
    ) -> Result<Result<Kept, String>, GateError> {
        let pending = self.pending_snapshot(call.session.as_deref(), path)?;
        let of_other = |pending: &Snapshot| matches!((&pending.call, &call.call), (Some(expected), Some(call)) if expected != call);
        let kept = match (tier, pending) {
            (Tier::Answer, Some(pending)) if of_other(&pending) => {
                let queue = self.captures.queued.entry((call.session.clone(), path.clone())).or_default();
                queue.push_back(call.clone());
                return Ok(Ok(Kept::AfterTheOther));
            }
            // Cleaned up before a new one is made, as the model sometimes names the same file again.
            (Tier::Answer, pending) => self.take_snapshot(tier, call, path, pending.as_ref(), now)?.map(Kept::Now),
            (_, Some(pending)) if !of_other(&pending) => Ok(Kept::Earlier(pending.snapshot)),
            (Tier::Hook, _) => self.take_snapshot(tier, call, path, None, now)?.map(Kept::Now),
            (Tier::Start, _) => {
                match call.call.as_deref().map(|id| self.snapshot_of(call.session.as_deref(), id, path)).transpose()? {
                    Some(Some(snapshot)) => Ok(Kept::Earlier(snapshot.snapshot)),
                    _ => self.take_snapshot(tier, call, path, None, now)?.map(Kept::Late),
                }
            }
        };
        // A hook or a start that knows its call has no need of the path any more.
        if let (Tier::Hook | Tier::Start, Some(name), Ok(Kept::Now(id) | Kept::Earlier(id) | Kept::Late(id))) =
            (tier, &call.call, &kept)
            && self.snapshot_of(call.session.as_deref(), name, path)?.is_none()
        {
            let event = Event::Correlated { snapshot: *id, call: name.clone(), session: call.session.clone() };
            self.write(Entry::of([event]), now)?;
        }
        Ok(kept)
    }

    /// Makes a file's pending snapshot that of a call. Does nothing if there is none.
    pub fn correlate(
        &mut self,
        session: Option<&str>,
        path: &WsPath,
        call: &str,
        now: i64,
    ) -> Result<Option<SnapshotId>, GateError> {
        let Some(pending) = self.pending_snapshot(session, path)? else { return Ok(None) };
        let session = session.map(str::to_owned);
        let event = Event::Correlated { snapshot: pending.snapshot, call: call.to_owned(), session };
        self.write(Entry::of([event]), now)?;
        Ok(Some(pending.snapshot))
    }

    /// A call has run, or will not: whoever waited for it to change the same file first is next.
    pub fn call_over(&mut self, session: Option<&str>, call: &str, now: i64) -> Result<(), GateError> {
        let mine = |(of, _): &(Option<String>, WsPath)| of.as_deref() == session;
        let paths: Vec<WsPath> = self.captures.queued.keys().filter(|key| mine(key)).map(|key| key.1.clone()).collect();
        for path in paths {
            let key = (session.map(str::to_owned), path.clone());
            let pending = self.pending_snapshot(session, &path)?;
            match &pending {
                Some(pending) if pending.call.as_deref() != Some(call) => continue,
                // It never started, and what was kept for it nobody will ask for.
                Some(pending) => {
                    let (snapshots, because) = (vec![pending.snapshot], Freed::CallEnded);
                    self.write(Entry::of([Event::Freed { snapshots, because }]), now)?;
                }
                None if self.snapshot_of(session, call, &path)?.is_none() => continue,
                None => {}
            }
            let Some(queue) = self.captures.queued.get_mut(&key) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.captures.queued.remove(&key);
            }
            if let Some(next) = next {
                // Taken for what the model's answer named, after the first of its calls has run.
                let _ = self.take_snapshot(Tier::Answer, &next, &path, None, now)?;
            }
        }
        Ok(())
    }

    /// The call of a change is over, if it is one of a call.
    pub(crate) fn call_of_change_over(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        if self.captures.queued.is_empty() {
            return Ok(());
        }
        let origin = self.history().change(change)?.origin;
        match origin.call {
            Some(call) => self.call_over(origin.session.as_deref(), &call, now),
            None => Ok(()),
        }
    }

    /// Keeps what a file is now. `Err` says why it cannot be kept.
    fn take_snapshot(
        &mut self,
        tier: Tier,
        call: &ToolCall,
        path: &WsPath,
        replaces: Option<&Snapshot>,
        now: i64,
    ) -> Result<Result<SnapshotId, String>, GateError> {
        let signature = self.workspace.signature(path);
        let known = self.captures.seen.get(path).filter(|seen| Some(&seen.signature) == signature.as_ref());
        let known = known.map(|seen| (seen.location.clone(), seen.state.clone()));
        let kept = match known {
            // Unchanged since it was last kept: no need to read it.
            Some((location, state)) if self.is_kept(&state)? => (location, state, None),
            _ => {
                let sight = self.workspace.look([path.clone()], FILE_LIMIT);
                let Some(seen) = sight.files.get(path) else { return Ok(Err("it was not looked at".to_owned())) };
                match &seen.found {
                    Ok(state) => (seen.location.clone(), state.fingerprint(), Some(state.clone())),
                    Err(obstacle) => return Ok(Err(obstacle.to_string())),
                }
            }
        };
        let (location, state, content) = kept;
        let snapshot = self.journal.reader().counter(SNAPSHOTS)? + 1;
        let mut entry = Entry::default();
        if let Some(old) = replaces {
            let (snapshots, because) = (vec![old.snapshot], Freed::Replaced);
            entry.push(Event::Freed { snapshots, because }, &[]);
        }
        let event = Event::Captured(Snapshot {
            snapshot,
            path: path.clone(),
            location: location.clone(),
            state: state.clone(),
            tool: call.tool.clone(),
            tier,
            call: call.call.clone(),
            session: call.session.clone(),
        });
        let content: Vec<_> = content.as_ref().and_then(FileState::content).into_iter().collect();
        let stored: Vec<_> = state.hash().filter(|_| content.is_empty()).into_iter().collect();
        let blobs: Vec<_> = content.iter().map(|content| (content.hash(), content.bytes())).collect();
        entry.push_blobs(event, &blobs, &stored);
        entry.count(SNAPSHOTS, snapshot);
        self.write(entry, now)?;
        if let Some(signature) = signature.filter(Signature::is_settled) {
            if self.captures.seen.len() >= MOST_SEEN {
                self.captures.seen.clear();
            }
            self.captures.seen.insert(path.clone(), LastSeen { signature, location, state });
        }
        Ok(Ok(snapshot))
    }

    fn is_kept(&self, print: &Fingerprint) -> Result<bool, GateError> {
        match print.hash() {
            Some(hash) => Ok(self.journal.reader().has_blob(hash)?),
            None => Ok(true),
        }
    }
}
