//! Changes, from where they come to how they stand.

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
        (numbers(), paths()).prop_map(|(of, paths)| Cause::Undo { of, paths }),
        (numbers(), paths()).prop_map(|(of, paths)| Cause::Redo { of, paths }),
        (numbers(), text()).prop_map(|(of, turn)| Cause::Review { of, turn }),
        any::<u64>().prop_map(|snapshot| Cause::Restore { snapshot }),
        any::<u64>().prop_map(|of| Cause::Rebase { of }),
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

/// Paths outside the workspace.
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

/// All that the protocol says of a change; what only the engine needs is empty.
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
        let (files, applied, left_alone, saved, in_part) = happened;
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
            told,
            delivery,
            applied,
            left_alone,
            saved,
            in_part,
            subject,
            ruled,
            performer,
            intent: None,
            deadline,
            after,
            without,
            expected: Vec::new(),
            outside: Vec::new(),
            differs,
            uncaptured,
            reviewed,
            code,
            run_note,
            undone_files,
            permitted: 0,
            happened: 0,
            since: 0,
        }
    })
}
