//! Changes that an editor applies for the engine: the order, and the comparison of the files afterwards.

use std::collections::BTreeMap;

use sayso_review::{
    ApplyRecord, ChangeId, ContentHash, Decision, Event, FileState, Fingerprint, Outcome, Performer, Plan, PlanStep,
    RecordedStep, WsPath,
};
use sayso_workspace::ApplyError;

use super::{EditorOrder, EditorReport, OrderedFile};
use crate::FILE_LIMIT;
use crate::action::ToolReport;
use crate::editor::EditorName;
use crate::engine::{Engine, PhaseBefore};
use crate::error::GateError;
use crate::gate::Gate;
use crate::pending_change::{DecisionResult, PendingChange};
use crate::record::{ENDED, JournalBatch, state_contents};

/// A decided change that an editor is to apply.
#[derive(Debug)]
pub(crate) struct OpenOrder {
    pub(crate) order: EditorOrder,
    proposed: PendingChange,
    decision: Decision,
    /// Saved files before the order.
    saved: BTreeMap<WsPath, FileState>,
}

/// Comparison of the saved files with an order.
struct SettledFiles {
    /// Steps that changed the saved file, with the states that an undo restores.
    steps: Vec<RecordedStep>,
    contents: BTreeMap<ContentHash, Vec<u8>>,
    /// Changed files whose content is not the approved one.
    differing: Vec<WsPath>,
    /// Files that are as before the order.
    unchanged: Vec<WsPath>,
}

impl Engine {
    /// Records a decision and prepares the order for an editor. [`Gate`] sends it once the engine's lock is released.
    pub(crate) fn order_editor(
        &mut self,
        proposed: &PendingChange,
        decision: Decision,
        decided: Event,
        (editor, files): (EditorName, Vec<OrderedFile>),
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        let steps = decision.plan.steps();
        let sight = self.workspace.observe(steps.iter().map(|step| step.path.clone()), FILE_LIMIT);
        let mut saved = BTreeMap::new();
        for step in steps {
            let state = sight.files.get(&step.path).and_then(|seen| seen.state().ok());
            // Unsaved text is checked by the editor, which gets its hash.
            let Some(state) = state.filter(|state| *state == step.before || self.is_based_on_buffer(step)) else {
                let error = ApplyError::Stale { path: step.path.clone() };
                return self.record_failed_apply(
                    proposed,
                    vec![decided],
                    &decision.plan,
                    error,
                    PhaseBefore::Pending,
                    now,
                );
            };
            saved.insert(step.path.clone(), state);
        }
        self.pending_index()?;
        let mut entry = JournalBatch::from_events([decided]);
        let kept = state_contents(steps.iter().map(|step| [&step.before, &step.after]));
        let (expected, name) = (decision.plan.recorded(), Some(editor.name.clone()));
        entry.push_event(Event::Permitted { change, expected, outside: Vec::new(), editor: name }, &kept);
        entry.set_counter(ENDED, self.journal.reader().counter(ENDED)? + 1);
        self.write(entry, now)?;
        self.unindex_pending(change, now)?;
        let agent_message = decision.agent_message.clone();
        let plan = decision.plan.clone();
        let order = EditorOrder { change, editor, files };
        self.open_order = Some(OpenOrder { order, proposed: proposed.clone(), decision, saved });
        Ok(DecisionResult::Permitted { agent_message, subject: proposed.subject.clone(), plan })
    }

    /// Ends an order: records what the editor saved, or writes the files if it saved nothing.
    pub(crate) fn settle_order(
        &mut self,
        open: OpenOrder,
        report: &EditorReport,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let OpenOrder { order, proposed, decision, saved } = open;
        let change = proposed.change;
        let name = &order.editor.name;
        let settled = self.compare_saved(&decision.plan, &saved);
        if settled.steps.is_empty() {
            let reason = match report {
                EditorReport::Applied => "it reported success and saved nothing",
                EditorReport::NotApplied { reason } => reason,
            };
            let note = format!("written by sayso, because `{name}` did not apply it: {reason}");
            return self.apply_plan(&proposed, decision, Vec::new(), Some(note), PhaseBefore::Permitted, now);
        }
        let SettledFiles { steps, contents, mut differing, unchanged } = settled;
        let is_exact = differing.is_empty() && unchanged.is_empty();
        differing.extend(unchanged);
        differing.sort();
        let mut agent_message = decision.agent_message.clone();
        if !is_exact {
            let paths: Vec<&str> = differing.iter().map(WsPath::as_str).collect();
            agent_message.push_str(&format!(
                "\nThe editor `{name}` saved other content than was approved: {}. Read these files again.",
                paths.join(", ")
            ));
        }
        let record = ApplyRecord { token: String::new(), steps, directories: Vec::new(), emptied: Vec::new() };
        let blobs: Vec<(ContentHash, &[u8])> = contents.iter().map(|(hash, bytes)| (*hash, &bytes[..])).collect();
        let mut entry = JournalBatch::default();
        let observed = Event::Observed { change, record, differing_files: differing, uncaptured: Vec::new() };
        entry.push_event_with_blobs(observed, &blobs, &[]);
        let told = (!is_exact).then(|| agent_message.clone());
        entry.push_event(Event::Ended { change, outcome: Outcome::Applied, agent_message: told }, &[]);
        self.write(entry, now)?;
        self.finish_call_of_change(change, now)?;
        Ok(DecisionResult::Applied { agent_message, decision, lost: Vec::new() })
    }

    /// Compares the saved files with a plan and with their states before.
    fn compare_saved(&self, plan: &Plan, saved: &BTreeMap<WsPath, FileState>) -> SettledFiles {
        let sight = self.workspace.observe(plan.steps().iter().map(|step| step.path.clone()), FILE_LIMIT);
        let mut settled =
            SettledFiles { steps: Vec::new(), contents: BTreeMap::new(), differing: Vec::new(), unchanged: Vec::new() };
        for step in plan.steps() {
            let Some(Ok(state)) = sight.files.get(&step.path).map(|seen| seen.state()) else {
                settled.differing.push(step.path.clone());
                continue;
            };
            if state != step.after && saved.get(&step.path) == Some(&state) {
                settled.unchanged.push(step.path.clone());
                continue;
            }
            if state != step.after {
                settled.differing.push(step.path.clone());
            }
            settled.record(step, &state);
        }
        settled
    }

    /// Ends the orders of an earlier engine, whose editors are gone.
    pub(crate) fn settle_lost_orders(&mut self, now: i64) -> Result<(), GateError> {
        for change in self.permitted_changes()? {
            let record = self.history().change(change)?;
            if record.subject.is_files() && record.performer == Performer::Gate {
                self.finish_reported(change, ToolReport::Missing, now)?;
            }
        }
        Ok(())
    }

    /// Returns the order that the last decision left for an editor.
    pub(crate) fn take_order(&mut self, change: ChangeId) -> Option<OpenOrder> {
        self.open_order.take_if(|open| open.order.change == change)
    }
}

impl SettledFiles {
    fn record(&mut self, step: &PlanStep, state: &FileState) {
        for kept in [&step.before, state] {
            self.contents.extend(kept.content().map(|content| (content.hash(), content.bytes().to_vec())));
        }
        let (before, after): (Fingerprint, Fingerprint) = (step.before.fingerprint(), state.fingerprint());
        if before != after {
            self.steps.push(RecordedStep { path: step.path.clone(), before, after });
        }
    }
}

impl Gate {
    /// Has the editor apply a change that was decided just now. The engine's lock is free meanwhile.
    pub(crate) fn carry_out(&self, open: OpenOrder, now: i64) -> Result<DecisionResult, GateError> {
        let report = self.editors().apply(&open.order);
        let mut state = self.state();
        let result = state.engine.settle_order(open, &report, now)?;
        let pending = match &result {
            DecisionResult::Stale { next, .. } => Some(next.change),
            _ => None,
        };
        self.notify_pending(state, pending)?;
        Ok(result)
    }
}
