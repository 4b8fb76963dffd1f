//! Strategies for changes.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{Cause, ChangeRecord, ChangeStatus, Delivery, Origin, OutsidePath, Performer, Ruling, RulingRecord};

use crate::arbitrary::{apply_records, file_records, hash, maybe, path, paths, subjects, text, uncaptured, verdicts};

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 0..3)
}

pub(crate) fn origins() -> impl Strategy<Value = Origin> {
    (maybe(), maybe(), maybe(), maybe()).prop_map(|(agent, session, turn, call)| Origin { agent, session, turn, call })
}

pub(crate) fn causes() -> impl Strategy<Value = Cause> {
    prop_oneof![
        Just(Cause::Proposal),
        (numbers(), paths()).prop_map(|(changes, paths)| Cause::Undo { changes, paths }),
        (numbers(), paths()).prop_map(|(changes, paths)| Cause::Redo { changes, paths }),
        (numbers(), text()).prop_map(|(changes, turn)| Cause::Review { changes, turn }),
        any::<u64>().prop_map(|snapshot| Cause::Restore { snapshot }),
        any::<u64>().prop_map(|original| Cause::Rebase { original }),
    ]
}

pub(crate) fn performers() -> impl Strategy<Value = Performer> {
    select(vec![Performer::Gate, Performer::Agent])
}

pub(crate) fn rulings() -> impl Strategy<Value = Ruling> {
    select(vec![Ruling::Allow, Ruling::Later, Ruling::Ask, Ruling::Deny])
}

pub(crate) fn ruling_records() -> impl Strategy<Value = RulingRecord> {
    (rulings(), text(), maybe(), outside_paths()).prop_map(|(ruling, rule, reason, outside)| RulingRecord {
        ruling,
        rule,
        reason,
        outside,
    })
}

pub(crate) fn outside_paths() -> impl Strategy<Value = Vec<OutsidePath>> {
    vec(path().prop_map(|path| OutsidePath::parse(&format!("/{}", path.as_str())).unwrap()), 0..3)
}

pub(crate) fn statuses() -> impl Strategy<Value = ChangeStatus> {
    prop_oneof![
        5 => select(vec![
            ChangeStatus::Pending,
            ChangeStatus::Interrupted,
            ChangeStatus::Permitted,
            ChangeStatus::Applied,
            ChangeStatus::Denied,
            ChangeStatus::Stale,
            ChangeStatus::Cancelled,
        ]),
        1 => any::<u64>().prop_map(|by| ChangeStatus::Undone { by }),
        1 => text().prop_map(|reason| ChangeStatus::Failed { reason }),
    ]
}

/// Changes without the fields that do not cross the wire.
pub(crate) fn changes() -> impl Strategy<Value = ChangeRecord> {
    let start = (any::<u64>(), any::<i64>(), statuses(), origins(), causes(), subjects(), performers());
    let decided = (hash(), option::of(verdicts()), maybe(), option::of(ruling_records()), option::of(any::<i64>()));
    let happened = (vec(file_records(), 0..3), option::of(apply_records()), paths(), paths(), any::<bool>());
    let rest = (numbers(), numbers(), paths(), vec(uncaptured(), 0..3), option::of(any::<u64>()));
    let delivery = prop_oneof![Just(Delivery::NotTracked), Just(Delivery::Waiting), Just(Delivery::Delivered)];
    let ended = (option::of(any::<i32>()), maybe(), btree_map(path(), any::<u64>(), 0..3), delivery);
    (start, decided, happened, rest, ended).prop_map(|(start, decided, happened, rest, ended)| {
        let (change, time, status, origin, cause, subject, performer) = start;
        let (preview, verdict, told, ruled, deadline) = decided;
        let (mut files, applied, left_alone, saved, in_part) = happened;
        // Only events have cards.
        for file in &mut files {
            file.card = None;
        }
        let (after, without, differs, uncaptured, reviewed) = rest;
        let (code, run_note, undone_files, delivery) = ended;
        ChangeRecord {
            change,
            time,
            status,
            origin,
            cause,
            files,
            preview,
            verdict,
            agent_message: told,
            delivery,
            applied,
            skipped_files: left_alone,
            rescued_files: saved,
            partial: in_part,
            subject,
            ruling: ruled,
            performer,
            intent: None,
            deadline,
            predecessors: after,
            dropped_predecessors: without,
            expected: Vec::new(),
            outside: Vec::new(),
            differing_files: differs,
            uncaptured,
            reviewed,
            exit_code: code,
            run_note,
            undone_files,
            permitted_event: 0,
            applied_event: 0,
            status_event: 0,
        }
    })
}
