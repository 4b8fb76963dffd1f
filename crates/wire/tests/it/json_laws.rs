//! Laws of lossless JSON for arbitrary texts and edits.

use proptest::prelude::*;
use sayso_wire::json::{Document, JsonKind, Target, text};
use sayso_wire::{ModelRequest, RequestHead};

/// Generates white space, mostly empty.
fn space() -> impl Strategy<Value = String> {
    prop_oneof![6 => Just(String::new()), 1 => Just(" ".to_owned()), 1 => "[ \t\r\n]{1,3}"]
}

/// Generates a string in any JSON notation.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z<>/ é😀]{0,6}",
        Just("\\n".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\/".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\\ud800".to_owned()),
        Just("\\u003c".to_owned()),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        string(),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?",
    ]
}

/// Generates JSON with odd spacing, escapes, duplicate names and large numbers.
pub(crate) fn json() -> impl Strategy<Value = String> {
    let value = leaf().prop_recursive(5, 60, 5, |inner| {
        let element = (space(), inner.clone(), space()).prop_map(|(before, value, after)| before + &value + &after);
        let key = prop_oneof![Just("\"a\"".to_owned()), Just("\"\\u0061\"".to_owned()), string()];
        let member = (space(), key, space(), space(), inner, space()).prop_map(
            |(before, key, colon, value_before, value, after)| {
                format!("{before}{key}{colon}:{value_before}{value}{after}")
            },
        );
        prop_oneof![
            (space(), proptest::collection::vec(element, 0..5)).prop_map(|(empty, list)| {
                if list.is_empty() { format!("[{empty}]") } else { format!("[{}]", list.join(",")) }
            }),
            (space(), proptest::collection::vec(member, 0..5)).prop_map(|(empty, list)| {
                if list.is_empty() { format!("{{{empty}}}") } else { format!("{{{}}}", list.join(",")) }
            }),
        ]
    });
    (space(), value, space()).prop_map(|(before, value, after)| before + &value + &after)
}

fn all(document: &Document) -> Vec<Target> {
    let mut all = Vec::new();
    let mut next = vec![document.root()];
    while let Some(target) = next.pop() {
        all.push(target);
        next.extend(document.children(target));
    }
    all
}

/// An action of a person.
#[derive(Clone, Debug)]
enum Action {
    Replace(prop::sample::Index, String),
    Delete(prop::sample::Index),
    Restore(prop::sample::Index),
    Move(prop::sample::Index, prop::sample::Index),
    Add(prop::sample::Index, String),
    Undo,
    Redo,
}

fn action() -> impl Strategy<Value = Action> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), json()).prop_map(|(target, value)| Action::Replace(target, value.trim().to_owned())),
        2 => index().prop_map(Action::Delete),
        2 => index().prop_map(Action::Restore),
        1 => (index(), index()).prop_map(|(target, before)| Action::Move(target, before)),
        1 => (index(), json()).prop_map(|(target, value)| Action::Add(target, value.trim().to_owned())),
        2 => Just(Action::Undo),
        1 => Just(Action::Redo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn json_validity_matches_serde(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[\\[\\]{}:,\"\\\\a0-9eE.+ tfn-]{0,24}".prop_map(String::into_bytes),
        json().prop_map(String::into_bytes),
    ]) {
        let others = std::str::from_utf8(&bytes).is_ok() && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        prop_assert_eq!(Document::parse(bytes.clone()).is_ok(), others);
    }

    #[test]
    fn decoded_strings_match_serde(raw in string()) {
        let inside = &raw.as_bytes()[1..raw.len() - 1];
        let decoded = text::decode(inside).into_owned();
        if let Ok(others) = serde_json::from_str::<String>(&raw) {
            prop_assert_eq!(&decoded, &others);
        }
        let again = text::encode(&decoded);
        prop_assert_eq!(serde_json::from_slice::<String>(&again).unwrap(), decoded);
    }

    #[test]
    fn document_keeps_bytes_and_paths_resolve(source in json()) {
        let document = Document::parse(source.as_bytes()).unwrap();
        prop_assert_eq!(document.to_bytes(), source.as_bytes());
        for target in all(&document) {
            let path = document.path(target);
            prop_assert_eq!(document.resolve(&path), Ok(target), "{}", path);
        }
    }

    /// All edits replace leaves, so the expected text can be computed from spans.
    #[test]
    fn bytes_outside_edited_leaves_are_identical(
        source in json(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), json()), 0..6),
    ) {
        let mut document = Document::parse(source.as_bytes()).unwrap();
        let leaves: Vec<Target> = all(&document).into_iter().filter(|target| document.kind(*target).is_leaf()).collect();
        prop_assume!(!leaves.is_empty());
        let mut expected = std::collections::BTreeMap::new();
        for (index, value) in &edits {
            let (target, value) = (*index.get(&leaves), value.trim());
            let change = document.replace(target, value.as_bytes()).unwrap();
            document.apply(&change);
            expected.insert(document.span(target).unwrap().start, (document.span(target).unwrap(), value));
        }
        let (mut wanted, mut written) = (Vec::new(), 0);
        for (span, value) in expected.values() {
            wanted.extend_from_slice(&source.as_bytes()[written..span.start]);
            wanted.extend_from_slice(value.as_bytes());
            written = span.end;
        }
        wanted.extend_from_slice(&source.as_bytes()[written..]);
        prop_assert_eq!(String::from_utf8(document.to_bytes()).unwrap(), String::from_utf8(wanted).unwrap());
    }

    /// Applies edits of all kinds, and compares with the same document in `serde_json` where possible.
    #[test]
    fn edits_undo_and_redo_exactly(source in json(), actions in proptest::collection::vec(action(), 0..12)) {
        let mut document = Document::parse(source.as_bytes()).unwrap();
        let (mut undo, mut redo) = (Vec::new(), Vec::new());
        let mut states = vec![document.to_bytes()];
        for action in actions {
            let here = all(&document);
            let change = match &action {
                Action::Undo => {
                    if let Some(change) = undo.pop() {
                        let change: sayso_wire::json::DocumentChange = change;
                        document.apply(&change.inverted());
                        redo.push((change, states.pop().unwrap()));
                        prop_assert_eq!(&document.to_bytes(), states.last().unwrap());
                    }
                    continue;
                }
                Action::Redo => {
                    if let Some((change, state)) = redo.pop() {
                        document.apply(&change);
                        prop_assert_eq!(&document.to_bytes(), &state);
                        undo.push(change);
                        states.push(state);
                    }
                    continue;
                }
                Action::Replace(target, value) => document.replace(*target.get(&here), value.as_bytes()).ok(),
                Action::Delete(target) => document.delete(*target.get(&here)),
                Action::Restore(target) => document.restore(*target.get(&here)),
                Action::Move(target, before) => document.reorder(*target.get(&here), Some(*before.get(&here))),
                Action::Add(target, value) => {
                    let container = *target.get(&here);
                    let added = match document.kind(container) {
                        JsonKind::Array => document.add_element(container, None, value.as_bytes()),
                        JsonKind::Object => document.add_member(container, "added", value.as_bytes()),
                        _ => Ok(None),
                    };
                    added.unwrap().map(|(_, change)| change)
                }
            };
            if let Some(change) = change {
                document.apply(&change);
                undo.push(change);
                redo.clear();
                states.push(document.to_bytes());
            }
            // The text is always valid JSON and equals the document's own view.
            let bytes = document.to_bytes();
            let again = Document::parse(bytes.clone()).expect("what is sent is JSON");
            for target in all(&document) {
                let path = document.path(target);
                prop_assert_eq!(document.resolve(&path), Ok(target), "{}", path);
                let found = again.resolve(&path).expect("the path leads to it in what is sent, too");
                prop_assert_eq!(document.value_bytes(target), again.raw(found).to_vec(), "{}", path);
            }
        }
        for change in undo.iter().rev() {
            document.apply(&change.inverted());
        }
        prop_assert_eq!(document.to_bytes(), source.as_bytes());
        prop_assert!(document.is_original());
    }

    #[test]
    fn arbitrary_requests_never_panic(path in "/v1/(messages|chat/completions|responses|models/m:generateContent)", body in prop_oneof![
        json().prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..200),
        (json(), json(), json()).prop_map(|(one, two, three)| format!(
            r#"{{"messages":[{{"role":"user","content":{one}}},{two}],"system":{three},"tools":{one},"input":{two},"contents":{three}}}"#
        ).into_bytes()),
    ]) {
        let mut request = ModelRequest::new("r", RequestHead::new(path), body.clone());
        prop_assert_eq!(request.to_bytes(), body.as_slice());
        let ids: Vec<_> = request.sections().map(|section| section.id).collect();
        let empty = body.iter().all(|byte| b" \t\r\n{}".contains(byte));
        prop_assert!(!ids.is_empty() || empty);
        request.problems();
        for id in ids {
            let section = request.section(id).unwrap().clone();
            request.content(&section);
            request.raw_path(&section);
            let _ = request.edit_section(id, "{\"x\":[1]}");
            let _ = request.delete(id);
        }
        request.diff();
        request.reset();
        prop_assert_eq!(request.to_bytes(), body.as_slice());
    }
}

#[test]
fn deep_nesting_does_not_overflow_stack() {
    let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
    let request = ModelRequest::new("r", RequestHead::new("/v1/messages"), deep.clone());
    assert_eq!(request.sections().count(), 1);
    assert_eq!(request.to_bytes(), deep);
    let fits = [b"{\"messages\":".to_vec(), b"[".repeat(1_000), b"]".repeat(1_000), b"}".to_vec()].concat();
    let mut request = ModelRequest::new("r", RequestHead::new("/v1/messages"), fits.clone());
    let document = request.document().unwrap();
    let deepest = format!("messages{}", "[0]".repeat(999));
    let target = document.resolve(&deepest).unwrap();
    assert_eq!(document.path(target), deepest);
    request.edit(target, "1").unwrap();
    assert!(request.to_bytes().windows(3).any(|bytes| bytes == b"[1]"));
    request.undo();
    assert_eq!(request.to_bytes(), fits);
}

#[test]
fn ten_megabyte_request_is_edited() {
    let texts: Vec<String> =
        (0..20_000).map(|number| format!(r#"{{"role":"user","content":"{number} {}"}}"#, "x".repeat(520))).collect();
    let body = format!(r#"{{"model":"m","messages":[{}]}}"#, texts.join(",\n"));
    assert!(body.len() > 10 << 20);
    let mut request = ModelRequest::new("r", RequestHead::new("/v1/chat/completions"), body.clone().into_bytes());
    assert_eq!(
        request.sections().filter(|section| section.parent.is_none() && section.message_index.is_some()).count(),
        20_000
    );
    let target = request.resolve("messages[19999].content").unwrap();
    request.edit(target, "the last").unwrap();
    let first = request.resolve("messages[0]").unwrap();
    request.delete(first.into()).unwrap();
    let sent = request.to_bytes().into_owned();
    let expected = body
        .replacen(&format!("{},\n", texts[0]), "", 1)
        .replace(&texts[19_999], r#"{"role":"user","content":"the last"}"#);
    assert!(sent == expected.into_bytes());
    request.undo();
    request.undo();
    assert!(request.to_bytes() == body.as_bytes());
}
