//! Edits as a JSON Patch, compared with the `json_patch` crate.

use proptest::prelude::*;
use sayso_wire::{EditError, ModelRequest, RequestHead};

use crate::corpus::examples;
use crate::json_laws::json;

fn patched(body: &[u8], patch: &[u8]) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_slice(body).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(patch).unwrap();
    json_patch::patch(&mut value, &patch).unwrap();
    value
}

#[test]
fn edits_equal_patch_applied_by_json_patch() {
    for example in examples() {
        let Ok(_) = serde_json::from_slice::<serde_json::Value>(&example.body) else { continue };
        let mut request = example.request();
        if request.dialect().is_none() {
            continue;
        }
        let ids: Vec<_> = request.sections().map(|section| section.id).collect();
        for (number, id) in ids.into_iter().enumerate() {
            // Read-only values stay unchanged.
            match number % 3 {
                0 => drop(request.delete(id)),
                1 => drop(request.edit_section(id, "{\"edited\": 1.50}")),
                _ => {}
            }
        }
        request.append("one more").unwrap();
        let patch = request.to_patch().unwrap();
        let sent: serde_json::Value = serde_json::from_slice(&request.to_bytes()).unwrap();
        assert_eq!(patched(&example.body, &patch), sent, "{}", example.name);
        let mut again = example.request();
        again.apply_patch(&patch).unwrap_or_else(|error| panic!("{}: {error}", example.name));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&again.to_bytes()).unwrap(), sent, "{}", example.name);
        again.undo().unwrap();
        assert_eq!(again.to_bytes(), example.body, "{}", example.name);
    }
}

#[test]
fn patch_numbers_keep_notation() {
    let mut request =
        ModelRequest::new("r", RequestHead::new("/v1/messages"), &br#"{"messages":[],"temperature":1}"#[..]);
    request.apply_patch(br#"[{"op":"replace","path":"/temperature","value":0.10E+0}]"#).unwrap();
    assert_eq!(request.to_bytes(), &br#"{"messages":[],"temperature":0.10E+0}"#[..]);
}

#[test]
fn patch_is_atomic() {
    let body = br#"{"messages":[{"role":"user","content":"a"}]}"#;
    let mut request = ModelRequest::new("r", RequestHead::new("/v1/messages"), &body[..]);
    let patches: [&[u8]; 5] = [
        br#"[{"op":"remove","path":"/messages/0"},{"op":"remove","path":"/nothing"}]"#,
        br#"[{"op":"test","path":"/messages/0/role","value":"assistant"}]"#,
        br#"[{"op":"jump","path":"/messages"}]"#,
        br#"{"op":"remove"}"#,
        b"[",
    ];
    for patch in patches {
        let error = request.apply_patch(patch).unwrap_err();
        assert!(matches!(error, EditError::Patch { .. }), "{error}");
        assert_eq!(request.to_bytes(), &body[..]);
        assert!(request.history().undo.is_empty());
    }
}

proptest! {
    /// Applies arbitrary patches and compares the results.
    #[test]
    fn patch_operations_match_json_patch(
        body in json(),
        operations in proptest::collection::vec((0..5_usize, "(/(a|messages|0|1|-)){0,3}", json()), 1..4),
    ) {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&body) else { return Ok(()) };
        let source = serde_json::json!({ "messages": [value.clone(), { "a": value }, []], "a": 1 });
        let operations: Vec<String> = operations.iter().filter_map(|(kind, path, value)| {
            serde_json::from_str::<serde_json::Value>(value).ok()?;
            let kind = ["add", "replace", "remove", "copy", "test"][*kind];
            let from = if kind == "copy" { r#""from":"/messages/1","# } else { "" };
            Some(format!(r#"{{"op":"{kind}","path":"{path}",{from}"value":{}}}"#, value.trim()))
        }).collect();
        let patch = format!("[{}]", operations.join(","));
        let theirs = {
            let mut value = source.clone();
            let parsed: Result<json_patch::Patch, _> = serde_json::from_str(&patch);
            parsed.ok().and_then(|parsed| json_patch::patch(&mut value, &parsed).ok()).map(|()| value)
        };
        let mut request = ModelRequest::new("r", RequestHead::new("/v1/messages"), source.to_string().into_bytes());
        let ours = request.apply_patch(patch.as_bytes()).is_ok();
        if let Some(theirs) = theirs {
            prop_assert!(ours, "{}", patch);
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&request.to_bytes()).unwrap(), theirs, "{}", patch);
        } else if !ours {
            prop_assert_eq!(request.to_bytes(), source.to_string().into_bytes());
        }
    }
}
