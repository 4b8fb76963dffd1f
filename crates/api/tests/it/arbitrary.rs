//! Strategies for values of all types that cross the wire, with every variant.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sayso_review::{ContentHash, WsPath};
use serde_json::{Map, Value};

pub(crate) use crate::arbitrary_change::{
    causes, changes, origins, outside_paths, performers, ruling_records, rulings, statuses,
};
pub(crate) use crate::arbitrary_described::{effects, notes, problems, tool_problems, uncertainties};
pub(crate) use crate::arbitrary_event::{dry_runs, events, if_changed, remember_as, snapshot_records, targets};
pub(crate) use crate::arbitrary_file::{
    apply_records, file_records, file_states, fingerprints, operations, placements, plan_steps, previews,
    recorded_steps, uncaptured,
};
pub(crate) use crate::arbitrary_intent::{file_intents, intents, proposals};
pub(crate) use crate::arbitrary_request::{request_events, request_records};
pub(crate) use crate::arbitrary_subject::{subjects, syntaxes};
pub(crate) use crate::arbitrary_verdict::{answers, comments, file_answers, verdicts};

/// Texts with line breaks, quotes and control characters.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,8}".boxed(), "(?s).{0,8}".boxed(), Just("a\r\nb\u{0}\u{202e}\u{1F980}\"\\".to_owned()).boxed(),]
}

pub(crate) fn maybe() -> impl Strategy<Value = Option<String>> {
    option::of(text())
}

pub(crate) fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

/// Paths, including the root of the workspace.
pub(crate) fn path() -> impl Strategy<Value = WsPath> {
    let parsed = "[a-z]{1,4}(/[ -.0-~é]{1,4}){0,2}".prop_filter_map("goes up", |text| WsPath::parse(&text).ok());
    prop_oneof![9 => parsed, 1 => Just(WsPath::root())]
}

pub(crate) fn paths() -> impl Strategy<Value = Vec<WsPath>> {
    vec(path(), 0..3)
}

pub(crate) fn hash() -> impl Strategy<Value = ContentHash> {
    any::<[u8; 32]>().prop_map(ContentHash::from_bytes)
}

/// JSON with numbers that lose digits in a naive writer, and objects with unsorted keys.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
