//! Undo and redo: selection and order of recorded changes, and their effect on the present tree.

use std::collections::BTreeSet;

use sayso_review::{
    Cause, ChangeId, Event, EventBody, IfChanged, Origin, Outcome, Preview, Target, Transition, Uncaptured, WsPath,
    reverse,
};

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, decode_event};
use crate::pending_change::{DecisionResult, NewChange};
use crate::record::{call_key, session_key};
use sayso_review::{ChangeRecord, ChangeStatus};

const PAGE_SIZE: usize = 64;

/// Plan of an undo, a redo or a restoration. Not carried out yet.
#[derive(Clone, Debug)]
pub struct UndoPlan {
    /// Changes to undo or redo, or the snapshot to restore.
    pub cause: Cause,
    pub preview: Preview,
    /// Possible effects of the undone changes that cannot be undone.
    pub uncaptured: Vec<Uncaptured>,
    emptied: Vec<WsPath>,
}

/// Recorded change and the direction to replay it.
struct ReplayStep {
    record: ChangeRecord,
    direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Backward,
    Forward,
}

impl UndoPlan {
    /// Returns the changes to undo or redo.
    pub fn changes(&self) -> &[ChangeId] {
        match &self.cause {
            Cause::Undo { changes: of, .. } | Cause::Redo { changes: of, .. } | Cause::Review { changes: of, .. } => of,
            Cause::Proposal | Cause::Rebase { .. } | Cause::Restore { .. } => &[],
        }
    }

    pub(crate) fn new(cause: Cause, preview: Preview) -> Self {
        Self { cause, preview, uncaptured: Vec::new(), emptied: Vec::new() }
    }
}

impl Engine {
    /// Plans an undo.
    pub fn plan_undo(&self, target: &Target, if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let (cause, played) = match target {
            Target::Last => match last_applied(history)? {
                Some(record) => undo_one(history, record)?,
                None => return Err(GateError::NothingTo("undo")),
            },
            Target::Change { change } => undo_one(history, history.change(*change)?)?,
            Target::Files { change, paths } => undo_files(history.change(*change)?, paths)?,
            Target::Call { call } => undo_all(require_changes(call, history.changes_with_key(&call_key(call))?)?)?,
            Target::Session { session } => {
                undo_all(require_changes(session, history.changes_with_key(&session_key(session))?)?)?
            }
            Target::Turn { change } => undo_all(changes_of_turn(history, *change, last_applied(history)?)?)?,
        };
        self.plan(cause, &played, if_changed)
    }

    /// Plans a redo.
    pub fn plan_redo(&self, target: &Target, if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let (cause, played) = match target {
            Target::Last => match last_undo(history)? {
                Some(undo) => undo_one(history, undo)?,
                None => return Err(GateError::NothingTo("redo")),
            },
            Target::Change { change } => redo_all(vec![history.change(*change)?], Some("redone"))?,
            Target::Files { change, paths } => redo_files(history.change(*change)?, paths)?,
            Target::Call { call } => {
                redo_all(require_changes(call, history.changes_with_key(&call_key(call))?)?, None)?
            }
            Target::Session { session } => {
                redo_all(require_changes(session, history.changes_with_key(&session_key(session))?)?, None)?
            }
            Target::Turn { change } => {
                let last = history.changes(None).find(|record| record.as_ref().map_or(true, is_undone)).transpose()?;
                redo_all(changes_of_turn(history, *change, last)?, None)?
            }
        };
        self.plan(cause, &played, if_changed)
    }

    fn plan(&self, cause: Cause, played: &[ReplayStep], if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let mut transitions = Vec::new();
        let mut emptied = BTreeSet::new();
        let mut uncaptured = Vec::new();
        for ReplayStep { record, direction: way } in played {
            let Some(applied) = &record.applied else { continue };
            if *way == Direction::Backward && cause.paths().is_empty() {
                uncaptured.extend(record.uncaptured.iter().cloned());
            }
            if *way == Direction::Backward {
                emptied.extend(applied.directories.iter().cloned());
            }
            let named = cause.paths();
            // A file that was undone separately stays as it is, unless the target names it.
            let wanted = |path: &WsPath| {
                if named.is_empty() { !record.undone_files.contains_key(path) } else { named.contains(path) }
            };
            for step in applied.steps.iter().filter(|step| wanted(&step.path)) {
                let (before, after) = (history.state(&step.before)?, history.state(&step.after)?);
                let (from, to) = match way {
                    Direction::Backward => (after, before),
                    Direction::Forward => (before, after),
                };
                transitions.push(Transition { change: record.change, path: step.path.clone(), from, to });
            }
        }
        let paths: BTreeSet<WsPath> = transitions.iter().map(|transition| transition.path.clone()).collect();
        let sight = self.workspace().observe(paths, FILE_LIMIT);
        let preview = reverse(&transitions, &sight.files, if_changed);
        Ok(UndoPlan { cause, preview, uncaptured, emptied: emptied.into_iter().collect() })
    }

    /// Carries out a plan as a change of its own.
    pub fn perform(&mut self, plan: UndoPlan, origin: Origin, now: i64) -> Result<DecisionResult, GateError> {
        Ok(self.perform_as_change(plan, origin, now)?.1)
    }

    /// Carries out a plan. Returns the number of its change.
    pub(crate) fn perform_as_change(
        &mut self,
        plan: UndoPlan,
        origin: Origin,
        now: i64,
    ) -> Result<(ChangeId, DecisionResult), GateError> {
        // A plan with problems is rejected without a record.
        if let Some((path, problem)) = plan.preview.problems().next() {
            return Err(GateError::Verdict(sayso_review::VerdictError::Impossible {
                path: path.clone(),
                reason: problem.to_string(),
                kind: problem.kind(),
            }));
        }
        let proposing = NewChange { emptied: plan.emptied, ..NewChange::files(plan.preview, origin, plan.cause) };
        let proposed = self.record_proposal(proposing, now)?;
        let approval = proposed.approval();
        let decided = self.decide(&proposed, &approval, now)?;
        self.end_empty_reviews(now)?;
        Ok((proposed.change, decided))
    }
}

fn require_changes(name: &str, records: Vec<ChangeRecord>) -> Result<Vec<ChangeRecord>, GateError> {
    if records.is_empty() { Err(GateError::NoSuchChange(format!("of `{name}`"))) } else { Ok(records) }
}

fn is_undone(record: &ChangeRecord) -> bool {
    record.is_original() && matches!(record.status, ChangeStatus::Undone { .. })
}

/// Returns the change that was applied last and is not undone, however long ago it was proposed.
fn last_applied(history: History<'_>) -> Result<Option<ChangeRecord>, GateError> {
    let mut before = None;
    loop {
        let events = history.reader().latest(before, PAGE_SIZE)?;
        let Some(first) = events.iter().map(|event| event.number).min() else { return Ok(None) };
        for event in &events {
            // Searching backwards, the first such event is the last application.
            let EventBody::Known(
                Event::Ended { change, outcome: Outcome::Applied | Outcome::Sent | Outcome::Ran { .. }, .. }
                | Event::Redone { change, .. }
                | Event::Recovered { change, finished: true, .. },
            ) = decode_event(event).body
            else {
                continue;
            };
            let record = match history.change(change) {
                Err(GateError::NoSuchChange(_)) => continue,
                record => record?,
            };
            if record.is_original() && record.status == ChangeStatus::Applied && record.applied.is_some() {
                return Ok(Some(record));
            }
        }
        before = Some(first);
    }
}

/// Returns the last undo whose changes are all still undone by it.
fn last_undo(history: History<'_>) -> Result<Option<ChangeRecord>, GateError> {
    for record in history.changes(None) {
        let record = record?;
        if let Cause::Undo { changes: of, paths } = &record.cause
            && record.status == ChangeStatus::Applied
            && is_current(history, record.change, of, paths)?
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// `true` if all changes of an undo are still undone by it.
fn is_current(history: History<'_>, undo: ChangeId, of: &[ChangeId], paths: &[WsPath]) -> Result<bool, GateError> {
    for &change in of {
        let record = history.change(change)?;
        let stands = if paths.is_empty() {
            record.status == (ChangeStatus::Undone { by: undo })
        } else {
            paths.iter().all(|path| record.undone_files.get(path) == Some(&undo))
        };
        if !stands {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Selects one change to undo. Undoing an undo is a redo, and the reverse.
fn undo_one(history: History<'_>, record: ChangeRecord) -> Result<(Cause, Vec<ReplayStep>), GateError> {
    let change = record.change;
    let wrong = |status: String| Err(GateError::WrongStatus { change, verb: "undone", status });
    let backwards = |of: &[ChangeId]| of.iter().rev().copied().collect();
    let cause = match &record.cause {
        _ if record.status != ChangeStatus::Applied => return wrong(record.status.to_string()),
        // In reverse order of the undo.
        Cause::Undo { changes: of, paths } if is_current(history, change, of, paths)? => {
            Cause::Redo { changes: backwards(of), paths: paths.clone() }
        }
        Cause::Undo { .. } => return wrong("an undo that no longer stands".to_owned()),
        Cause::Redo { changes: of, paths } => {
            for &redone in of {
                if history.change(redone)?.status != ChangeStatus::Applied {
                    return wrong("a redo that no longer stands".to_owned());
                }
            }
            Cause::Undo { changes: backwards(of), paths: paths.clone() }
        }
        _ if record.applied.is_none() => return wrong("applied, but changed nothing".to_owned()),
        _ => Cause::Undo { changes: vec![change], paths: Vec::new() },
    };
    Ok((cause, vec![ReplayStep { record, direction: Direction::Backward }]))
}

/// Selects some files of a change to undo.
fn undo_files(record: ChangeRecord, paths: &[WsPath]) -> Result<(Cause, Vec<ReplayStep>), GateError> {
    let change = record.change;
    if record.status != ChangeStatus::Applied || !record.is_original() {
        return Err(GateError::WrongStatus { change, verb: "undone in part", status: record.status.to_string() });
    }
    for path in paths {
        match record.applied.iter().flat_map(|applied| &applied.steps).find(|step| step.path == *path) {
            None => return Err(sayso_review::VerdictError::UnknownFile(path.clone()).into()),
            Some(_) if record.undone_files.contains_key(path) => {
                let status = format!("undone already, as far as `{path}` goes");
                return Err(GateError::WrongStatus { change, verb: "undone", status });
            }
            Some(_) => {}
        }
    }
    let cause = Cause::Undo { changes: vec![change], paths: paths.to_vec() };
    Ok((cause, vec![ReplayStep { record, direction: Direction::Backward }]))
}

/// Selects some files of a change to redo, which were undone separately.
fn redo_files(record: ChangeRecord, paths: &[WsPath]) -> Result<(Cause, Vec<ReplayStep>), GateError> {
    let change = record.change;
    if let Some(path) = paths.iter().find(|path| !record.undone_files.contains_key(path)) {
        let status = format!("not undone, as far as `{path}` goes");
        return Err(GateError::WrongStatus { change, verb: "redone", status });
    }
    let cause = Cause::Redo { changes: vec![change], paths: paths.to_vec() };
    Ok((cause, vec![ReplayStep { record, direction: Direction::Forward }]))
}

/// Selects all applied changes to undo, last first.
fn undo_all(records: Vec<ChangeRecord>) -> Result<(Cause, Vec<ReplayStep>), GateError> {
    let applied = |record: &ChangeRecord| {
        record.is_original() && record.status == ChangeStatus::Applied && record.applied.is_some()
    };
    let mut records: Vec<ChangeRecord> = records.into_iter().filter(applied).collect();
    if records.is_empty() {
        return Err(GateError::NothingTo("undo"));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.status_event));
    let of = records.iter().map(|record| record.change).collect();
    Ok((
        Cause::Undo { changes: of, paths: Vec::new() },
        records.into_iter().map(|record| ReplayStep { record, direction: Direction::Backward }).collect(),
    ))
}

/// Selects all undone changes to redo, last undone first.
fn redo_all(records: Vec<ChangeRecord>, verb: Option<&'static str>) -> Result<(Cause, Vec<ReplayStep>), GateError> {
    if let (Some(verb), Some(record)) = (verb, records.iter().find(|record| !is_undone(record))) {
        let status = record.status.to_string();
        return Err(GateError::WrongStatus { change: record.change, verb, status });
    }
    let mut records: Vec<ChangeRecord> = records.into_iter().filter(is_undone).collect();
    if records.is_empty() {
        return Err(GateError::NothingTo("redo"));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.status_event));
    let of = records.iter().map(|record| record.change).collect();
    Ok((
        Cause::Redo { changes: of, paths: Vec::new() },
        records.into_iter().map(|record| ReplayStep { record, direction: Direction::Forward }).collect(),
    ))
}

/// Returns the changes of the turn of a change.
fn changes_of_turn(
    history: History<'_>,
    change: Option<ChangeId>,
    last: Option<ChangeRecord>,
) -> Result<Vec<ChangeRecord>, GateError> {
    let record = match change {
        Some(change) => history.change(change)?,
        None => last.ok_or(GateError::NothingTo("undo"))?,
    };
    let Some(session) = &record.origin.session else { return Ok(vec![record]) };
    let turn = record.origin.turn.clone();
    let mut records = history.changes_with_key(&session_key(session))?;
    records.retain(|other| other.origin.turn == turn);
    Ok(records)
}
