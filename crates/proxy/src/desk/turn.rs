//! Edits that stay for the rest of a turn: laid over each following request of the conversation they were made in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sayso_review::{RequestId, TurnEditsOutcome, redact};
use sayso_wire::{ModelRequest, TurnEdits};
use serde::{Deserialize, Serialize};

use super::redacted::holds_credential;
use super::{Desk, Signed, State, Whose, Work, lock, pause};
use crate::log::Haste;

/// Conversations with such edits that are remembered.
const MAX_CONVERSATIONS: usize = 64;

/// A session and a part of it.
pub(super) type Strand = (String, Option<String>);

/// The edits of the running turns.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    running: BTreeMap<Strand, RunningTurn>,
}

/// The edits of one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunningTurn {
    session: String,
    subagent: Option<String>,
    /// The request that was edited.
    from: RequestId,
    edits: TurnEdits,
}

impl Turns {
    pub(super) fn new(turns: Vec<RunningTurn>) -> Self {
        let running = turns.into_iter().map(|turn| ((turn.session.clone(), turn.subagent.clone()), turn));
        Self { running: running.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Forgets a session that is over. `true` if it had such edits.
    pub(super) fn forget(&mut self, session: &str) -> bool {
        let before = self.running.len();
        self.running.retain(|(own, _), _| own != session);
        self.running.len() != before
    }

    fn set(&mut self, strand: Strand, turn: Option<RunningTurn>) {
        self.running.remove(&strand);
        let Some(turn) = turn.filter(|turn| !turn.edits.is_empty()) else { return };
        if self.running.len() >= MAX_CONVERSATIONS
            && let Some(oldest) =
                self.running.iter().min_by_key(|(_, turn)| turn.from).map(|(strand, _)| strand.clone())
        {
            self.running.remove(&oldest);
        }
        self.running.insert(strand, turn);
    }

    /// Those that may be written to a file. Edits that say a credential end with the engine.
    fn storable(&self) -> Vec<RunningTurn> {
        self.running.values().filter(|turn| !turn.holds_credential()).cloned().collect()
    }
}

fn strand(whose: &Whose) -> Strand {
    let (session, subagent) = whose.strand();
    (session.to_owned(), subagent.map(str::to_owned))
}

/// What a request makes of the edits of its turn.
#[derive(Debug)]
pub(super) enum TurnChange {
    /// They count for the next request as they did.
    Untouched,
    /// Some were dropped.
    Fewer(Box<RunningTurn>),
    /// The turn is over, or the request would be refused with them.
    Over,
}

impl RunningTurn {
    fn holds_credential(&self) -> bool {
        let written = serde_json::to_vec(&self.edits).unwrap_or_default();
        self.edits.sections().iter().any(holds_credential) || !redact::find(&written).is_empty()
    }

    /// Makes the edits again in a request, over what saved edits made of it.
    pub(super) fn lay_over(mut self, request: &ModelRequest, work: &mut Work) -> TurnChange {
        if self.edits.is_over_at(request) {
            return TurnChange::Over;
        }
        let mut edited = work.edited.as_deref().unwrap_or(request).clone();
        let made = self.edits.apply(&mut edited);
        let mut outcome = TurnEditsOutcome {
            from: self.from,
            applied: made.applied,
            dropped: made.dropped.into_iter().map(|(path, why)| format!("{path}: {why}")).collect(),
        };
        let problem = edited.blocking().into_iter().next().filter(|_| work.refused.is_none());
        if let Some(problem) = problem {
            outcome.refuse(&problem.message);
            work.saved.turn = Some(outcome);
            return TurnChange::Over;
        }
        if edited.is_dirty() {
            work.edited = Some(Arc::new(edited));
        }
        let dropped = !outcome.dropped.is_empty();
        work.saved.turn = Some(outcome);
        if dropped { TurnChange::Fewer(Box::new(self)) } else { TurnChange::Untouched }
    }
}

impl Desk {
    /// The turn with edits that a request is a step of. Titles and token counts are about a turn, and none of its steps.
    pub(super) fn running_turn(&self, whose: &Whose, request: &ModelRequest, signed: Signed) -> Option<RunningTurn> {
        let is_step = signed == Signed::No && pause::is_answered(request) && request.has_tools();
        lock(&self.state).turns.running.get(&strand(whose)).filter(|_| is_step).cloned()
    }

    /// Takes note of what a request made of its turn.
    pub(super) fn turn_changed(&self, state: &mut State, whose: &Whose, change: TurnChange) {
        match change {
            TurnChange::Untouched => return,
            TurnChange::Over => state.turns.set(strand(whose), None),
            TurnChange::Fewer(rest) => state.turns.set(strand(whose), Some(*rest)),
        }
        self.keep_turns(state);
    }

    /// The edits of a request that stay for the rest of its turn.
    pub(super) fn turn_edits(&self, work: &Work, session: &str) -> Option<TurnEdits> {
        let edited = work.dirty().filter(|edited| pause::is_answered(edited) && edited.has_tools())?;
        // Edits that are saved are laid over every request anyway.
        let saved = self.saved.all(session, None).map(|saved| saved.edits).unwrap_or_default();
        TurnEdits::capture(edited, work.laid.as_deref(), &saved)
    }

    /// A request goes on: its edits are those of its turn from now on.
    pub(super) fn set_turn(&self, state: &mut State, whose: &Whose, from: RequestId, edits: Option<TurnEdits>) {
        let strand = strand(whose);
        if edits.is_none() && !state.turns.running.contains_key(&strand) {
            return;
        }
        let (session, subagent) = strand.clone();
        state.turns.set(strand, edits.map(|edits| RunningTurn { session, subagent, from, edits }));
        self.keep_turns(state);
    }

    /// Writes the edits of the running turns for the next engine.
    pub(super) fn keep_turns(&self, state: &State) {
        let (path, turns) = (self.turns_path.clone(), state.turns.storable());
        self.log.later(Haste::Now, None, move || {
            if let Err(error) = super::saved::write(&path, &turns) {
                tracing::error!(%error, "the edits of running turns cannot be written for the next engine");
            }
            Vec::new()
        });
    }
}

/// The edits of running turns that the last engine left.
pub(super) fn read_turns(path: &Path) -> Turns {
    let read = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Turns::new(read.unwrap_or_default())
}
