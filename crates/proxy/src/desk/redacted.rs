//! Credentials in bodies: masked in all that is stored, exact in memory.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use sayso_gate::CutBody;
use sayso_review::redact::{self, FILLER, Redaction, is_credential_key};
use sayso_review::{BodyRecord, ContentHash, RequestId};
use sayso_wire::Override;
use sayso_wire::json::{Document, Target};

use super::lock;

/// Bodies whose masked values are remembered, and bytes of values in all.
const MAX_BODIES: usize = 512;
const MAX_BYTES: usize = 1 << 20;

/// The masked values of the last bodies that were recorded. They are in no file, so that they are gone with the engine.
#[derive(Debug, Default)]
pub(crate) struct ExactValues {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: VecDeque<ExactBody>,
    bytes: usize,
}

#[derive(Debug)]
struct ExactBody {
    request: RequestId,
    pieces: Vec<ContentHash>,
    redactions: Vec<Redaction>,
    values: Vec<Bytes>,
}

impl ExactBody {
    fn size(&self) -> usize {
        self.values.iter().map(Bytes::len).sum()
    }
}

impl ExactValues {
    /// Remembers the masked values of a body. Those of one that was made from a recorded body are not known.
    pub(crate) fn keep(&self, request: RequestId, body: &CutBody) {
        let is_masked = |value: &Bytes| value.iter().all(|byte| *byte == FILLER);
        if body.values.is_empty() || body.values.iter().any(is_masked) {
            return;
        }
        let pieces = body.pieces.iter().map(|piece| piece.hash).collect();
        let (redactions, values) = (body.redactions.clone(), body.values.clone());
        let body = ExactBody { request, pieces, redactions, values };
        let mut kept = lock(&self.kept);
        kept.bytes += body.size();
        kept.bodies.push_back(body);
        while kept.bodies.len() > MAX_BODIES || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.bodies.pop_front() else { break };
            kept.bytes -= oldest.size();
        }
    }

    /// Puts the values back into a recorded body. `false` if they are not known any more.
    #[must_use]
    pub(crate) fn restore(&self, request: RequestId, record: &BodyRecord, bytes: &mut [u8]) -> bool {
        if record.redacted == 0 {
            return true;
        }
        let kept = lock(&self.kept);
        let is_it = |body: &&ExactBody| body.request == request && body.pieces == record.pieces;
        let Some(body) = kept.bodies.iter().rev().find(is_it) else { return false };
        for (redaction, value) in body.redactions.iter().zip(&body.values) {
            bytes[redaction.range()].copy_from_slice(value);
        }
        true
    }
}

/// Names the masked values of a body, each once: by the path, such as `mcp_servers[0].authorization_token`, or else by the key.
pub fn redacted_paths(body: &[u8], redactions: &[Redaction]) -> Vec<String> {
    let document = Document::parse(body).ok();
    let mut paths: Vec<String> = Vec::new();
    for redaction in redactions {
        let path = document.as_ref().map(|document| path_at(document, redaction.start)).unwrap_or_default();
        let is_key = path.rsplit(['.', '[']).next().is_some_and(|last| last.trim_matches(['"', ']']) == redaction.name);
        let named = match path.as_str() {
            "" => redaction.name.clone(),
            path if is_key => path.to_owned(),
            path => format!("{path} ({})", redaction.name),
        };
        if !paths.contains(&named) {
            paths.push(named);
        }
    }
    paths
}

/// The path of the innermost value around an offset.
fn path_at(document: &Document, offset: usize) -> String {
    let is_around = |target: &Target| document.span(*target).is_some_and(|span| span.contains(&offset));
    let mut target = document.root();
    while let Some(child) = document.children(target).find(is_around) {
        target = child;
    }
    document.path(target)
}

/// `true` if an edit says a credential, which is not written to a file.
pub(super) fn holds_credential(edit: &Override) -> bool {
    let Some(content) = &edit.content else { return false };
    is_credential_path(&edit.anchor.path) || !redact::find(content.as_bytes()).is_empty()
}

/// `true` for the path of a member that holds a credential.
pub fn is_credential_path(path: &str) -> bool {
    let last = path.rsplit(['.', '[']).next().unwrap_or_default();
    is_credential_key(last.trim_matches(['"', ']']).as_bytes())
}
