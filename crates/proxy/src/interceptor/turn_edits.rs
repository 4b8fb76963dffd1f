//! Edits that stay for the rest of a turn.
//!
//! An agent repeats its history in every request of a turn. A person's edit is therefore applied again to each following request of the
//! conversation, until a new turn begins.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sayso_review::{RequestId, SkippedEdit, TurnEditReport, redact};
use sayso_wire::{ModelRequest, TurnEdits};
use serde::{Deserialize, Serialize};

use super::edits::RequestEdits;
use super::{Attribution, BodySignature, Interceptor, State, lock, pause};
use crate::bodies::contains_credential;
use crate::recorder::Flush;

/// Conversations with turn edits. The one whose edits are oldest is evicted.
const MAX_CONVERSATIONS: usize = 64;

/// Session and subagent.
type ThreadKey = (String, Option<String>);

/// The edits of the running turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    running: BTreeMap<ThreadKey, RunningTurn>,
}

/// The edits of one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunningTurn {
    session: String,
    subagent: Option<String>,
    /// The edited request.
    from: RequestId,
    edits: TurnEdits,
}

impl Turns {
    fn new(turns: Vec<RunningTurn>) -> Self {
        let running = turns.into_iter().map(|turn| ((turn.session.clone(), turn.subagent.clone()), turn));
        Self { running: running.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Removes the edits of a session. Returns `false` if there were none.
    pub(super) fn remove_session(&mut self, session: &str) -> bool {
        let before = self.running.len();
        self.running.retain(|(own, _), _| own != session);
        self.running.len() != before
    }

    fn set(&mut self, key: ThreadKey, turn: Option<RunningTurn>) {
        self.running.remove(&key);
        let Some(turn) = turn.filter(|turn| !turn.edits.is_empty()) else { return };
        if self.running.len() >= MAX_CONVERSATIONS
            && let Some(oldest) = self.running.iter().min_by_key(|(_, turn)| turn.from).map(|(key, _)| key.clone())
        {
            self.running.remove(&oldest);
        }
        self.running.insert(key, turn);
    }

    /// The turns that may be stored. Edits with a credential are lost when the engine stops.
    fn storable(&self) -> Vec<RunningTurn> {
        self.running.values().filter(|turn| !turn.contains_credential()).cloned().collect()
    }
}

fn thread_key(attribution: &Attribution) -> ThreadKey {
    let (session, subagent) = attribution.thread_key();
    (session.to_owned(), subagent.map(str::to_owned))
}

/// Effect of a request on the edits of its turn.
#[derive(Debug)]
pub(super) enum TurnChange {
    Unchanged,
    /// Some edits no longer fit; these are left.
    Reduced(Box<RunningTurn>),
    /// A new turn has begun, or the upstream would reject the request with the edits.
    Ended,
}

impl RunningTurn {
    fn contains_credential(&self) -> bool {
        let bytes = serde_json::to_vec(&self.edits).unwrap_or_default();
        self.edits.sections().iter().any(contains_credential) || !redact::find(&bytes).is_empty()
    }

    /// Applies the edits on top of the overrides of a request.
    pub(super) fn apply(mut self, request: &ModelRequest, edits: &mut RequestEdits) -> TurnChange {
        if self.edits.is_expired_for(request) {
            return TurnChange::Ended;
        }
        let mut edited = edits.edited.as_deref().unwrap_or(request).clone();
        let outcome = self.edits.apply(&mut edited);
        let mut report = TurnEditReport {
            from: self.from,
            applied: outcome.applied,
            dropped: outcome.dropped.into_iter().map(|(path, reason)| SkippedEdit::failed(path, reason)).collect(),
        };
        // If the overrides alone are rejected, the turn edits are not the cause.
        let problem = edited.blocking_problems().into_iter().next().filter(|_| edits.override_rejection.is_none());
        if let Some(problem) = problem {
            report.reject(&problem.message);
            edits.overrides.turn = Some(report);
            return TurnChange::Ended;
        }
        if edited.is_dirty() {
            edits.edited = Some(Arc::new(edited));
        }
        let is_reduced = !report.dropped.is_empty();
        edits.overrides.turn = Some(report);
        if is_reduced { TurnChange::Reduced(Box::new(self)) } else { TurnChange::Unchanged }
    }
}

impl Interceptor {
    /// The edited turn that a request continues. Titles and token counts belong to a turn, but do not continue it.
    pub(super) fn running_turn(
        &self,
        attribution: &Attribution,
        request: &ModelRequest,
        signed: BodySignature,
    ) -> Option<RunningTurn> {
        let continues = signed == BodySignature::Unsigned && pause::is_answered(request) && request.has_tools();
        lock(&self.state).turns.running.get(&thread_key(attribution)).filter(|_| continues).cloned()
    }

    /// Stores the effect of a request on its turn.
    pub(super) fn turn_changed(&self, state: &mut State, attribution: &Attribution, change: TurnChange) {
        match change {
            TurnChange::Unchanged => return,
            TurnChange::Ended => state.turns.set(thread_key(attribution), None),
            TurnChange::Reduced(rest) => state.turns.set(thread_key(attribution), Some(*rest)),
        }
        self.store_turns(state);
    }

    /// The edits of a request that stay for the rest of its turn.
    pub(super) fn turn_edits(&self, edits: &RequestEdits, session: &str) -> Option<TurnEdits> {
        let edited = edits.dirty().filter(|edited| pause::is_answered(edited) && edited.has_tools())?;
        // Overrides are applied to every request anyway.
        let saved = self.overrides.all(session, None).map(|overrides| overrides.edits).unwrap_or_default();
        TurnEdits::capture(edited, edits.with_overrides.as_deref(), &saved)
    }

    /// Replaces the edits of a turn when one of its requests is resumed.
    pub(super) fn set_turn_edits(
        &self,
        state: &mut State,
        attribution: &Attribution,
        from: RequestId,
        edits: Option<TurnEdits>,
    ) {
        let key = thread_key(attribution);
        if edits.is_none() && !state.turns.running.contains_key(&key) {
            return;
        }
        let (session, subagent) = key.clone();
        state.turns.set(key, edits.map(|edits| RunningTurn { session, subagent, from, edits }));
        self.store_turns(state);
    }

    /// Writes the edits of the running turns for the next engine, on the recorder thread.
    pub(super) fn store_turns(&self, state: &State) {
        let (path, turns) = (self.turns_path.clone(), state.turns.storable());
        let last = turns.iter().map(|turn| turn.from).max().unwrap_or_default();
        self.recorder.build_later(last, Flush::Immediate, None, move || {
            if let Err(error) = super::override_store::write(&path, &turns) {
                tracing::error!(%error, "cannot store the edits of running turns for the next engine");
            }
            Vec::new()
        });
    }
}

/// The edits of running turns that the last engine stored.
pub(super) fn read_turns(path: &Path) -> Turns {
    let turns = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Turns::new(turns.unwrap_or_default())
}
