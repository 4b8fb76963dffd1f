//! Undo and redo: which recorded changes, in which order, and what they would do to the tree now.

use std::collections::BTreeSet;

use sayso_review::{
    Cause, ChangeId, Event, EventBody, IfChanged, Origin, Outcome, Preview, Target, Transition, Uncaptured, WsPath,
    reverse,
};

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, recorded};
use crate::proposed::{Decided, Proposing};
use crate::record::{call_key, session_key};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Events that are looked at in one go.
const SOME: usize = 64;

/// What an undo or a redo would do. Nothing has happened yet.
#[derive(Clone, Debug)]
pub struct UndoPlan {
    /// Why there is a change: what it takes back or makes again.
    pub cause: Cause,
    /// What it would do.
    pub preview: Preview,
    /// What may have changed with the changes that it takes back, and cannot be put back.
    pub uncaptured: Vec<Uncaptured>,
    emptied: Vec<WsPath>,
}

/// A recorded change and the way in which it is played.
struct Played {
    record: ChangeRecord,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Back,
    Again,
}

impl UndoPlan {
    /// The changes it takes back or makes again.
    pub fn changes(&self) -> &[ChangeId] {
        match &self.cause {
            Cause::Undo { of, .. } | Cause::Redo { of, .. } | Cause::Review { of, .. } => of,
            Cause::Proposal | Cause::Rebase { .. } | Cause::Restore { .. } => &[],
        }
    }

    pub(crate) fn new(cause: Cause, preview: Preview) -> Self {
        Self { cause, preview, uncaptured: Vec::new(), emptied: Vec::new() }
    }
}

impl Engine {
    /// What taking back would do.
    pub fn plan_undo(&self, target: &Target, if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let (cause, played) = match target {
            Target::Last => match last_applied(history)? {
                Some(record) => undo_one(history, record)?,
                None => return Err(GateError::NothingTo("undo")),
            },
            Target::Change { change } => undo_one(history, history.change(*change)?)?,
            Target::Files { change, paths } => undo_files(history.change(*change)?, paths)?,
            Target::Call { call } => undo_all(found(call, history.with_key(&call_key(call))?)?)?,
            Target::Session { session } => undo_all(found(session, history.with_key(&session_key(session))?)?)?,
            Target::Turn { change } => undo_all(turn(history, *change, last_applied(history)?)?)?,
        };
        self.plan(cause, &played, if_changed)
    }

    /// What making again would do.
    pub fn plan_redo(&self, target: &Target, if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let (cause, played) = match target {
            Target::Last => match last_undo(history)? {
                Some(undo) => undo_one(history, undo)?,
                None => return Err(GateError::NothingTo("redo")),
            },
            Target::Change { change } => redo_all(vec![history.change(*change)?], Some("redone"))?,
            Target::Files { change, paths } => redo_files(history.change(*change)?, paths)?,
            Target::Call { call } => redo_all(found(call, history.with_key(&call_key(call))?)?, None)?,
            Target::Session { session } => redo_all(found(session, history.with_key(&session_key(session))?)?, None)?,
            Target::Turn { change } => {
                let last = history.changes(None).find(|record| record.as_ref().map_or(true, is_undone)).transpose()?;
                redo_all(turn(history, *change, last)?, None)?
            }
        };
        self.plan(cause, &played, if_changed)
    }

    fn plan(&self, cause: Cause, played: &[Played], if_changed: IfChanged) -> Result<UndoPlan, GateError> {
        let history = self.history();
        let mut transitions = Vec::new();
        let mut emptied = BTreeSet::new();
        let mut uncaptured = Vec::new();
        for Played { record, way } in played {
            let Some(applied) = &record.applied else { continue };
            if *way == Way::Back && cause.paths().is_empty() {
                uncaptured.extend(record.uncaptured.iter().cloned());
            }
            if *way == Way::Back {
                emptied.extend(applied.directories.iter().cloned());
            }
            let named = cause.paths();
            // What was taken back by itself stays as it is, unless it is what this is about.
            let wanted = |path: &WsPath| {
                if named.is_empty() { !record.undone_files.contains_key(path) } else { named.contains(path) }
            };
            for step in applied.steps.iter().filter(|step| wanted(&step.path)) {
                let (before, after) = (history.state(&step.before)?, history.state(&step.after)?);
                let (from, to) = match way {
                    Way::Back => (after, before),
                    Way::Again => (before, after),
                };
                transitions.push(Transition { change: record.change, path: step.path.clone(), from, to });
            }
        }
        let paths: BTreeSet<WsPath> = transitions.iter().map(|transition| transition.path.clone()).collect();
        let sight = self.workspace().look(paths, FILE_LIMIT);
        let preview = reverse(&transitions, &sight.files, if_changed);
        Ok(UndoPlan { cause, preview, uncaptured, emptied: emptied.into_iter().collect() })
    }

    /// Carries an undo or a redo out, as a change of its own.
    pub fn perform(&mut self, plan: UndoPlan, origin: Origin, now: i64) -> Result<Decided, GateError> {
        Ok(self.perform_as_change(plan, origin, now)?.1)
    }

    /// Carries it out, and gives the number of the change that does so.
    pub(crate) fn perform_as_change(
        &mut self,
        plan: UndoPlan,
        origin: Origin,
        now: i64,
    ) -> Result<(ChangeId, Decided), GateError> {
        // A plan with problems cannot be approved; saying so needs no entry in the history.
        if let Some((path, problem)) = plan.preview.problems().next() {
            return Err(GateError::Verdict(sayso_review::VerdictError::Impossible {
                path: path.clone(),
                reason: problem.to_string(),
                kind: problem.kind(),
            }));
        }
        let proposing = Proposing { emptied: plan.emptied, ..Proposing::files(plan.preview, origin, plan.cause) };
        let proposed = self.record_proposal(proposing, now)?;
        let approval = proposed.approval();
        let decided = self.decide(&proposed, &approval, now)?;
        self.end_empty_reviews(now)?;
        Ok((proposed.change, decided))
    }
}

fn found(name: &str, records: Vec<ChangeRecord>) -> Result<Vec<ChangeRecord>, GateError> {
    if records.is_empty() { Err(GateError::NoSuchChange(format!("of `{name}`"))) } else { Ok(records) }
}

fn is_undone(record: &ChangeRecord) -> bool {
    record.is_original() && matches!(record.status, ChangeStatus::Undone { .. })
}

/// The change that was applied last and still is, however long ago it was proposed.
fn last_applied(history: History<'_>) -> Result<Option<ChangeRecord>, GateError> {
    let mut before = None;
    loop {
        let events = history.reader().latest(before, SOME)?;
        let Some(first) = events.iter().map(|event| event.number).min() else { return Ok(None) };
        for event in &events {
            // The last event that made a change an applied one is the first that is found from behind.
            let EventBody::Known(
                Event::Ended { change, outcome: Outcome::Applied | Outcome::Sent | Outcome::Ran { .. }, .. }
                | Event::Redone { change, .. }
                | Event::Recovered { change, finished: true, .. },
            ) = recorded(event).body
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

/// The last undo whose changes are all still undone by it.
fn last_undo(history: History<'_>) -> Result<Option<ChangeRecord>, GateError> {
    for record in history.changes(None) {
        let record = record?;
        if let Cause::Undo { of, paths } = &record.cause
            && record.status == ChangeStatus::Applied
            && stands(history, record.change, of, paths)?
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Whether an undo still stands: what it took back was not made again or taken back otherwise.
fn stands(history: History<'_>, undo: ChangeId, of: &[ChangeId], paths: &[WsPath]) -> Result<bool, GateError> {
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

/// Takes one change back, which for an undo is to make again what it took back.
fn undo_one(history: History<'_>, record: ChangeRecord) -> Result<(Cause, Vec<Played>), GateError> {
    let change = record.change;
    let wrong = |status: String| Err(GateError::WrongStatus { change, verb: "undone", status });
    let backwards = |of: &[ChangeId]| of.iter().rev().copied().collect();
    let cause = match &record.cause {
        _ if record.status != ChangeStatus::Applied => return wrong(record.status.to_string()),
        // In the order in which they happen now, which is the other way round.
        Cause::Undo { of, paths } if stands(history, change, of, paths)? => {
            Cause::Redo { of: backwards(of), paths: paths.clone() }
        }
        Cause::Undo { .. } => return wrong("an undo that no longer stands".to_owned()),
        Cause::Redo { of, paths } => {
            for &redone in of {
                if history.change(redone)?.status != ChangeStatus::Applied {
                    return wrong("a redo that no longer stands".to_owned());
                }
            }
            Cause::Undo { of: backwards(of), paths: paths.clone() }
        }
        _ if record.applied.is_none() => return wrong("applied, but changed nothing".to_owned()),
        _ => Cause::Undo { of: vec![change], paths: Vec::new() },
    };
    Ok((cause, vec![Played { record, way: Way::Back }]))
}

/// Takes some files of a change back.
fn undo_files(record: ChangeRecord, paths: &[WsPath]) -> Result<(Cause, Vec<Played>), GateError> {
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
    let cause = Cause::Undo { of: vec![change], paths: paths.to_vec() };
    Ok((cause, vec![Played { record, way: Way::Back }]))
}

/// Makes some files of a change again that were taken back by themselves.
fn redo_files(record: ChangeRecord, paths: &[WsPath]) -> Result<(Cause, Vec<Played>), GateError> {
    let change = record.change;
    if let Some(path) = paths.iter().find(|path| !record.undone_files.contains_key(path)) {
        let status = format!("not undone, as far as `{path}` goes");
        return Err(GateError::WrongStatus { change, verb: "redone", status });
    }
    let cause = Cause::Redo { of: vec![change], paths: paths.to_vec() };
    Ok((cause, vec![Played { record, way: Way::Again }]))
}

/// Takes all changes back that are applied, the last one first.
fn undo_all(records: Vec<ChangeRecord>) -> Result<(Cause, Vec<Played>), GateError> {
    let applied = |record: &ChangeRecord| {
        record.is_original() && record.status == ChangeStatus::Applied && record.applied.is_some()
    };
    let mut records: Vec<ChangeRecord> = records.into_iter().filter(applied).collect();
    if records.is_empty() {
        return Err(GateError::NothingTo("undo"));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.since));
    let of = records.iter().map(|record| record.change).collect();
    Ok((
        Cause::Undo { of, paths: Vec::new() },
        records.into_iter().map(|record| Played { record, way: Way::Back }).collect(),
    ))
}

/// Makes all changes again that were taken back, the one that was taken back last first.
fn redo_all(records: Vec<ChangeRecord>, verb: Option<&'static str>) -> Result<(Cause, Vec<Played>), GateError> {
    if let (Some(verb), Some(record)) = (verb, records.iter().find(|record| !is_undone(record))) {
        let status = record.status.to_string();
        return Err(GateError::WrongStatus { change: record.change, verb, status });
    }
    let mut records: Vec<ChangeRecord> = records.into_iter().filter(is_undone).collect();
    if records.is_empty() {
        return Err(GateError::NothingTo("redo"));
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.since));
    let of = records.iter().map(|record| record.change).collect();
    Ok((
        Cause::Redo { of, paths: Vec::new() },
        records.into_iter().map(|record| Played { record, way: Way::Again }).collect(),
    ))
}

/// The changes of the turn that a change belongs to.
fn turn(
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
    let mut records = history.with_key(&session_key(session))?;
    records.retain(|other| other.origin.turn == turn);
    Ok(records)
}
