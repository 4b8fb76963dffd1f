//! Snapshots of files before a tool call changes them.
//!
//! Three tiers run one after another, because each can miss the change:
//!
//! - `Answer`: the model's response names the call before the agent has its end. This is early enough for agents that
//!   wait for the end, and covers paths in the arguments.
//! - `Hook`: the agent's hook runs before the tool.
//! - `Start`: the tool started, and may have written already. Such a capture has a warning.
//!
//! A snapshot is pending, and found by its path, until the tool starts. Then it belongs to the call. Two calls of one
//! message that change the same file get two snapshots, the second after the first call has run.

use std::collections::{HashMap, VecDeque};

use sayso_review::{
    ChangeId, Event, FileState, Fingerprint, FreeReason, Snapshot, SnapshotId, Tier, ToolPreview, Uncaptured, WsPath,
};
use sayso_workspace::Signature;
use serde_json::Value;

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::record::{JournalBatch, call_key};

/// Counter of snapshots, and key of events about them.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Counter with the number of the last snapshot from a model's answer.
pub(crate) const ANSWER_SNAPSHOTS: &str = "answer snapshots";

/// A tool call, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub session: Option<String>,
    /// Id of the call. Some agents do not report it to their hooks.
    pub call: Option<String>,
    pub tool: String,
}

/// Result of [`Engine::capture`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    pub files: Vec<(WsPath, CaptureTiming)>,
    /// Files that could not be captured, with reasons.
    pub uncaptured: Vec<Uncaptured>,
}

/// Time of a file's snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureTiming {
    /// Taken now.
    Now(SnapshotId),
    /// Taken by an earlier tier.
    Earlier(SnapshotId),
    /// Taken now, without an earlier one. The tool may have changed the file already.
    Late(SnapshotId),
    /// Not taken yet, because another call of the same message changes the file first.
    Deferred,
}

/// In-memory state: signatures of captured files, to skip unchanged files, and deferred calls.
#[derive(Debug, Default)]
pub(crate) struct CaptureCache {
    last_captures: HashMap<WsPath, LastCapture>,
    deferred_calls: HashMap<(Option<String>, WsPath), VecDeque<ToolCall>>,
}

/// File state at its last capture.
#[derive(Debug)]
struct LastCapture {
    signature: Signature,
    location: WsPath,
    state: Fingerprint,
}

/// Maximum number of files in the cache.
const MAX_CACHED_FILES: usize = 10_000;

/// Returns the keys of an event about snapshots.
pub(crate) fn keys(event: &Event) -> Vec<String> {
    match event {
        Event::SnapshotCaptured(snapshot) => {
            vec![snapshot_key(snapshot.snapshot), path_key(snapshot.session.as_deref(), &snapshot.path)]
        }
        Event::SnapshotCorrelated { snapshot, call, session } => {
            vec![snapshot_key(*snapshot), call_key(call), session_call_key(session.as_deref(), call)]
        }
        Event::SnapshotsFreed { snapshots, .. } => snapshots.iter().map(|snapshot| snapshot_key(*snapshot)).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn snapshot_key(snapshot: SnapshotId) -> String {
    format!("snapshot:{snapshot}")
}

/// Includes the session, so that one agent's capture does not free another's.
pub(crate) fn path_key(session: Option<&str>, path: &WsPath) -> String {
    let session = session.unwrap_or_default();
    format!("captured:{}:{session}:{path}", session.len())
}

/// Includes the session, because many agents number their calls per session.
pub(crate) fn session_call_key(session: Option<&str>, call: &str) -> String {
    let session = session.unwrap_or_default();
    format!("snapped:{}:{session}:{call}", session.len())
}

impl Engine {
    /// Captures the files that a call changes, according to the tier. A call without changes has none.
    pub fn capture(&mut self, tier: Tier, call: &ToolCall, arguments: &Value, now: i64) -> Result<Capture, GateError> {
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

    /// Captures a file before a call changes it, unless an earlier tier did.
    fn capture_path(
        &mut self,
        tier: Tier,
        call: &ToolCall,
        path: &WsPath,
        now: i64,
    ) -> Result<Result<CaptureTiming, String>, GateError> {
        let pending = self.pending_snapshot(call.session.as_deref(), path)?;
        let of_other = |pending: &Snapshot| matches!((&pending.call, &call.call), (Some(expected), Some(call)) if expected != call);
        let kept = match (tier, pending) {
            (Tier::Answer, Some(pending)) if of_other(&pending) => {
                let queue = self.capture_cache.deferred_calls.entry((call.session.clone(), path.clone())).or_default();
                queue.push_back(call.clone());
                return Ok(Ok(CaptureTiming::Deferred));
            }
            // Replaces a pending snapshot, as models sometimes name the same file again.
            (Tier::Answer, pending) => {
                self.take_snapshot(tier, call, path, pending.as_ref(), now)?.map(CaptureTiming::Now)
            }
            (_, Some(pending)) if !of_other(&pending) => Ok(CaptureTiming::Earlier(pending.snapshot)),
            (Tier::Hook, _) => self.take_snapshot(tier, call, path, None, now)?.map(CaptureTiming::Now),
            (Tier::Start, _) => {
                match call
                    .call
                    .as_deref()
                    .map(|id| self.snapshot_for_call(call.session.as_deref(), id, path))
                    .transpose()?
                {
                    Some(Some(snapshot)) => Ok(CaptureTiming::Earlier(snapshot.snapshot)),
                    _ => self.take_snapshot(tier, call, path, None, now)?.map(CaptureTiming::Late),
                }
            }
        };
        // A hook or a start with a call id assigns the snapshot to the call.
        if let (
            Tier::Hook | Tier::Start,
            Some(name),
            Ok(CaptureTiming::Now(id) | CaptureTiming::Earlier(id) | CaptureTiming::Late(id)),
        ) = (tier, &call.call, &kept)
            && self.snapshot_for_call(call.session.as_deref(), name, path)?.is_none()
        {
            let event = Event::SnapshotCorrelated { snapshot: *id, call: name.clone(), session: call.session.clone() };
            self.write(JournalBatch::from_events([event]), now)?;
        }
        Ok(kept)
    }

    /// Ends a call, and captures its files for the next deferred call.
    pub fn finish_call(&mut self, session: Option<&str>, call: &str, now: i64) -> Result<(), GateError> {
        let mine = |(of, _): &(Option<String>, WsPath)| of.as_deref() == session;
        let paths: Vec<WsPath> =
            self.capture_cache.deferred_calls.keys().filter(|key| mine(key)).map(|key| key.1.clone()).collect();
        for path in paths {
            let key = (session.map(str::to_owned), path.clone());
            let pending = self.pending_snapshot(session, &path)?;
            match &pending {
                Some(pending) if pending.call.as_deref() != Some(call) => continue,
                // The call never started, so its snapshot is useless.
                Some(pending) => {
                    let (snapshots, because) = (vec![pending.snapshot], FreeReason::CallEnded);
                    self.write(JournalBatch::from_events([Event::SnapshotsFreed { snapshots, reason: because }]), now)?;
                }
                None if self.snapshot_for_call(session, call, &path)?.is_none() => continue,
                None => {}
            }
            let Some(queue) = self.capture_cache.deferred_calls.get_mut(&key) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.capture_cache.deferred_calls.remove(&key);
            }
            if let Some(next) = next {
                // The deferred capture of the answer tier, now that the first call has run.
                let _ = self.take_snapshot(Tier::Answer, &next, &path, None, now)?;
            }
        }
        Ok(())
    }

    /// Ends the tool call of a change, if it has one.
    pub(crate) fn finish_call_of_change(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        if self.capture_cache.deferred_calls.is_empty() {
            return Ok(());
        }
        let origin = self.history().change(change)?.origin;
        match origin.call {
            Some(call) => self.finish_call(origin.session.as_deref(), &call, now),
            None => Ok(()),
        }
    }

    /// Captures a file now. `Err` is the reason if it cannot be captured.
    fn take_snapshot(
        &mut self,
        tier: Tier,
        call: &ToolCall,
        path: &WsPath,
        replaces: Option<&Snapshot>,
        now: i64,
    ) -> Result<Result<SnapshotId, String>, GateError> {
        let signature = self.workspace.signature(path);
        let known =
            self.capture_cache.last_captures.get(path).filter(|seen| Some(&seen.signature) == signature.as_ref());
        let known = known.map(|seen| (seen.location.clone(), seen.state.clone()));
        let kept = match known {
            // Unchanged since its last capture.
            Some((location, state)) if self.is_stored(&state)? => (location, state, None),
            _ => {
                let sight = self.workspace.observe([path.clone()], FILE_LIMIT);
                let Some(seen) = sight.files.get(path) else { return Ok(Err("it was not read".to_owned())) };
                match &seen.found {
                    Ok(state) => (seen.location.clone(), state.fingerprint(), Some(state.clone())),
                    Err(obstacle) => return Ok(Err(obstacle.to_string())),
                }
            }
        };
        let (location, state, content) = kept;
        let snapshot = self.journal.reader().counter(SNAPSHOTS)? + 1;
        let mut entry = JournalBatch::default();
        if let Some(old) = replaces {
            let (snapshots, because) = (vec![old.snapshot], FreeReason::Replaced);
            entry.push_event(Event::SnapshotsFreed { snapshots, reason: because }, &[]);
        }
        let event = Event::SnapshotCaptured(Snapshot {
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
        entry.push_event_with_blobs(event, &blobs, &stored);
        entry.set_counter(SNAPSHOTS, snapshot);
        if tier == Tier::Answer {
            entry.set_counter(ANSWER_SNAPSHOTS, snapshot);
        }
        self.write(entry, now)?;
        if let Some(signature) = signature.filter(Signature::is_settled) {
            if self.capture_cache.last_captures.len() >= MAX_CACHED_FILES {
                self.capture_cache.last_captures.clear();
            }
            self.capture_cache.last_captures.insert(path.clone(), LastCapture { signature, location, state });
        }
        Ok(Ok(snapshot))
    }

    fn is_stored(&self, print: &Fingerprint) -> Result<bool, GateError> {
        match print.hash() {
            Some(hash) => Ok(self.journal.reader().has_blob(hash)?),
            None => Ok(true),
        }
    }
}
