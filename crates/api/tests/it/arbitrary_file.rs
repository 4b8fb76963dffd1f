//! Strategies for file states, previews and records.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{
    ApplyRecord, CardLine, CardLineKind, FilePreview, FileRecord, FileState, Fingerprint, InlineCard, Operation,
    Placement, PlanStep, Preview, RecordedStep, Uncaptured,
};

use crate::arbitrary::{hash, notes, path, paths, problems, text};
use crate::arbitrary_described::mode;

pub(crate) fn fingerprints() -> impl Strategy<Value = Fingerprint> {
    prop_oneof![
        Just(Fingerprint::Absent),
        (hash(), any::<u64>(), mode()).prop_map(|(hash, size, mode)| Fingerprint::File { hash, size, mode }),
        text().prop_map(|target| Fingerprint::Link { target }),
    ]
}

/// Lines, which give hunks, and arbitrary bytes.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(select(vec!["a\n", "b\n", "c\r\n", "d"]), 0..24).prop_map(|lines| lines.concat().into_bytes()),
        vec(any::<u8>(), 0..16),
    ]
}

pub(crate) fn file_states() -> impl Strategy<Value = FileState> {
    prop_oneof![
        1 => Just(FileState::Absent),
        4 => (contents(), mode()).prop_map(|(bytes, mode)| FileState::file(bytes, mode)),
        1 => text().prop_map(|target| FileState::Link { target }),
    ]
}

pub(crate) fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        select(vec![Operation::Create, Operation::Update, Operation::Delete]),
        path().prop_map(|from| Operation::Rename { from }),
    ]
}

pub(crate) fn file_records() -> impl Strategy<Value = FileRecord> {
    let states = (fingerprints(), fingerprints());
    let counts = (any::<usize>(), any::<usize>());
    let rest = (option::of(problems()), any::<bool>(), option::of(cards()));
    (path(), path(), operations(), states, counts, vec(notes(), 0..3), rest).prop_map(
        |(path, location, operation, (before, after), (added, removed), notes, (problem, settled, card))| FileRecord {
            path,
            location,
            operation,
            before,
            after,
            added,
            removed,
            notes,
            problem,
            settled,
            card,
        },
    )
}

fn cards() -> impl Strategy<Value = InlineCard> {
    let kinds = select(vec![CardLineKind::Add, CardLineKind::Remove, CardLineKind::Context]);
    let line = (kinds, text()).prop_map(|(kind, text)| CardLine { kind, text });
    (vec(line, 0..3), any::<bool>(), any::<usize>()).prop_map(|(lines, truncated, total_lines)| InlineCard {
        lines,
        truncated,
        total_lines,
    })
}

fn file_previews() -> impl Strategy<Value = FilePreview> {
    (path(), path(), operations(), file_states(), file_states(), vec(notes(), 0..3), option::of(problems())).prop_map(
        |(path, location, operation, before, after, notes, problem)| FilePreview {
            path,
            location,
            operation,
            before,
            after,
            notes,
            problem,
        },
    )
}

pub(crate) fn placements() -> impl Strategy<Value = Placement> {
    select(vec![Placement::Proposed, Placement::InPlace])
}

pub(crate) fn previews() -> impl Strategy<Value = Preview> {
    (vec((file_previews(), any::<bool>()), 0..4), placements())
        .prop_map(|(files, placement)| Preview::recorded(files, placement))
}

pub(crate) fn recorded_steps() -> impl Strategy<Value = RecordedStep> {
    (path(), fingerprints(), fingerprints()).prop_map(|(path, before, after)| RecordedStep { path, before, after })
}

pub(crate) fn plan_steps() -> impl Strategy<Value = PlanStep> {
    (path(), file_states(), file_states()).prop_map(|(path, before, after)| PlanStep { path, before, after })
}

pub(crate) fn apply_records() -> impl Strategy<Value = ApplyRecord> {
    (text(), vec(recorded_steps(), 0..3), paths(), paths())
        .prop_map(|(token, steps, directories, emptied)| ApplyRecord { token, steps, directories, emptied })
}

pub(crate) fn uncaptured() -> impl Strategy<Value = Uncaptured> {
    (text(), text()).prop_map(|(path, reason)| Uncaptured { path, reason })
}
