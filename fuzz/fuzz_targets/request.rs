//! Edits any request body in any way. Bytes outside the edited values stay, and undo restores the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_wire::{ModelRequest, RequestHead, ShrinkLimits};

const PATHS: [&str; 4] =
    ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:streamGenerateContent"];

fuzz_target!(|input: (u8, Vec<(u8, u8, String)>, Vec<u8>)| {
    let (path, edits, body) = input;
    let path = PATHS[usize::from(path) % PATHS.len()];
    let mut request = ModelRequest::new("r", RequestHead::new(path), body.clone());
    assert_eq!(request.to_bytes(), body.as_slice());
    let json = serde_json::from_slice::<serde_json::Value>(&body).is_ok();
    for (kind, which, value) in &edits {
        let ids: Vec<_> = request.sections().map(|section| section.id).collect();
        let Some(id) = ids.get(usize::from(*which) % ids.len().max(1)).copied() else { break };
        let section = request.section(id).expect("a listed section exists").clone();
        request.content(&section);
        let span = section.leaf.and_then(|leaf| request.document()?.span(leaf));
        let clean = !request.is_dirty();
        match kind % 7 {
            0 => {
                if request.edit_section(id, value).is_ok()
                    && let (true, Some(span)) = (clean, span)
                {
                    let sent = request.to_bytes();
                    assert_eq!(sent[..span.start], body[..span.start]);
                    assert!(sent.ends_with(&body[span.end..]));
                }
            }
            1 => drop(request.delete(id)),
            2 => drop(request.restore(id)),
            3 => drop(request.append(value)),
            4 => drop(request.shrink(id, ShrinkLimits { head: 3, tail: 2 })),
            5 => drop(request.undo()),
            _ => drop(request.edit_path(value, "1")),
        }
        if json {
            let sent = request.to_bytes();
            serde_json::from_slice::<serde::de::IgnoredAny>(&sent).expect("what is sent is JSON");
        }
    }
    request.problems();
    request.diff();
    if let Ok(patch) = request.to_patch() {
        serde_json::from_slice::<serde::de::IgnoredAny>(&patch).expect("a patch is JSON");
        let read = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let mut again = ModelRequest::new("r", RequestHead::new(path), body.clone());
        // If both bodies parse, the patch turns the original into the edited one.
        if let (Some(sent), Ok(_)) = (read(&request.to_bytes()), again.apply_patch(&patch)) {
            assert_eq!(read(&again.to_bytes()), Some(sent));
        }
    }
    while request.undo().is_some() {}
    assert_eq!(request.to_bytes(), body.as_slice());
    while request.redo().is_some() {}
    request.reset();
    assert_eq!(request.to_bytes(), body.as_slice());
});
