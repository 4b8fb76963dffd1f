//! Credentials in bodies: masked in everything that is stored, exact in memory.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use sayso_gate::ChunkedBody;
use sayso_review::redact::{self, FILLER, Redaction, is_credential_key};
use sayso_review::{BodyRecord, ContentHash, RequestId};
use sayso_wire::Override;
use sayso_wire::json::{Document, Target};

use crate::lock;

/// Limits: bodies with masked values, and bytes of all values.
const MAX_BODIES: usize = 512;
const MAX_BYTES: usize = 1 << 20;

/// The masked values of the last recorded bodies. They are never written to disk, so a replay after a restart is refused.
#[derive(Debug, Default)]
pub(crate) struct ExactValues {
    recent: Mutex<RecentValues>,
}

#[derive(Debug, Default)]
struct RecentValues {
    bodies: VecDeque<ExactBody>,
    bytes: usize,
}

#[derive(Debug)]
struct ExactBody {
    request: RequestId,
    chunks: Vec<ContentHash>,
    redactions: Vec<Redaction>,
    values: Vec<Bytes>,
}

impl ExactBody {
    fn size(&self) -> usize {
        self.values.iter().map(Bytes::len).sum()
    }
}

impl ExactValues {
    /// Remembers the masked values of a body. A body that was built from a recorded one has only fillers, and is skipped.
    pub(crate) fn remember(&self, request: RequestId, body: &ChunkedBody) {
        let is_masked = |value: &Bytes| value.iter().all(|byte| *byte == FILLER);
        if body.values.is_empty() || body.values.iter().any(is_masked) {
            return;
        }
        let chunks = body.chunks.iter().map(|chunk| chunk.hash).collect();
        let (redactions, values) = (body.redactions.clone(), body.values.clone());
        let body = ExactBody { request, chunks, redactions, values };
        let mut recent = lock(&self.recent);
        recent.bytes += body.size();
        recent.bodies.push_back(body);
        while recent.bodies.len() > MAX_BODIES || recent.bytes > MAX_BYTES {
            let Some(oldest) = recent.bodies.pop_front() else { break };
            recent.bytes -= oldest.size();
        }
    }

    /// Writes the exact values back into a recorded body. Returns `false` if they are no longer in memory.
    #[must_use]
    pub(crate) fn restore(&self, request: RequestId, record: &BodyRecord, bytes: &mut [u8]) -> bool {
        if record.redacted == 0 {
            return true;
        }
        let recent = lock(&self.recent);
        let is_same = |body: &&ExactBody| body.request == request && body.chunks == record.chunks;
        let Some(body) = recent.bodies.iter().rev().find(is_same) else { return false };
        for (redaction, value) in body.redactions.iter().zip(&body.values) {
            bytes[redaction.range()].copy_from_slice(value);
        }
        true
    }
}

/// Names each masked value of a body once: by its path, such as `mcp_servers[0].authorization_token`, or by its key if the body is
/// not JSON.
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

/// Path of the innermost value that contains an offset.
fn path_at(document: &Document, offset: usize) -> String {
    let contains_offset = |target: &Target| document.span(*target).is_some_and(|span| span.contains(&offset));
    let mut target = document.root();
    while let Some(child) = document.children(target).find(contains_offset) {
        target = child;
    }
    document.path(target)
}

/// Returns `true` if an override contains a credential. Such overrides are never written to a file.
pub(crate) fn contains_credential(edit: &Override) -> bool {
    let Some(content) = &edit.content else { return false };
    is_credential_path(&edit.anchor.path) || !redact::find(content.as_bytes()).is_empty()
}

/// Returns `true` for the path of a member that usually holds a credential, such as `api_key`.
pub fn is_credential_path(path: &str) -> bool {
    let last = path.rsplit(['.', '[']).next().unwrap_or_default();
    is_credential_key(last.trim_matches(['"', ']']).as_bytes())
}
