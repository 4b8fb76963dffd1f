//! Strategies for verdicts.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{Answer, Comment, CommentSide, Decider, FileAnswer, HunkId, Surface, SurfaceKind, Verdict};

use crate::arbitrary::{hash, json, maybe, path, text};
use crate::arbitrary_intent::bytes;

fn hunks() -> impl Strategy<Value = HunkId> {
    (1..usize::MAX, option::of(1..usize::MAX)).prop_map(|(hunk, part)| HunkId { hunk, part })
}

pub(crate) fn file_answers() -> impl Strategy<Value = FileAnswer> {
    prop_oneof![
        Just(FileAnswer::Approve),
        btree_set(hunks(), 0..4).prop_map(|hunks| FileAnswer::Hunks { hunks }),
        text().prop_map(|text| FileAnswer::EditedText { text }),
        bytes().prop_map(|bytes| FileAnswer::EditedBytes { bytes }),
        maybe().prop_map(|reason| FileAnswer::Deny { reason }),
    ]
}

pub(crate) fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Approve),
        (btree_map(path(), file_answers(), 0..4), maybe()).prop_map(|(files, reason)| Answer::Files { files, reason }),
        text().prop_map(|command| Answer::Command { command }),
        json().prop_map(|arguments| Answer::Arguments { arguments }),
        maybe().prop_map(|reason| Answer::Deny { reason }),
    ]
}

pub(crate) fn comments() -> impl Strategy<Value = Comment> {
    let side = select(vec![CommentSide::Current, CommentSide::Proposed]);
    (path(), any::<usize>(), side, text()).prop_map(|(path, line, side, text)| Comment { path, line, side, text })
}

fn deciders() -> impl Strategy<Value = Decider> {
    let kind = select(vec![
        SurfaceKind::Unknown,
        SurfaceKind::Terminal,
        SurfaceKind::Browser,
        SurfaceKind::Editor,
        SurfaceKind::CommandLine,
    ]);
    let surface = (kind, text()).prop_map(|(kind, name)| Surface::new(kind, &name));
    let person = option::of(surface).prop_map(|surface| Decider::Person { surface });
    prop_oneof![person, text().prop_map(|rule| Decider::Policy { rule })]
}

pub(crate) fn verdicts() -> impl Strategy<Value = Verdict> {
    let message = option::of(text().prop_map(|text| format!("{text}!")));
    (hash(), answers(), vec(comments(), 0..3), message, deciders())
        .prop_map(|(preview, answer, comments, message, by)| Verdict { preview, answer, comments, message, by })
}
