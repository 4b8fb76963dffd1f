//! Byte ranges of bodies.

use sayso_api::convert::field::enumeration;
use sayso_api::proto;
use sayso_proxy::interceptor::RequestView;
use sayso_review::{BodyRecord, RequestRecord, redact};
use sayso_wire::ModelRequest;

use super::missing;
use crate::failure::Failure;
use crate::host::Host;

const DEFAULT_BYTES: u32 = 1 << 20;
const MAX_BYTES: u32 = 4 << 20;

/// Reads the requested range of the requested body.
pub(super) fn part(
    host: &Host,
    asked: &proto::GetRequestBodyRequest,
) -> Result<proto::GetRequestBodyResponse, Failure> {
    let record = host.proxy.interceptor.record(asked.request)?;
    let (bytes, truncated, content_type) = match enumeration::<_, proto::RequestBody>(asked.body, "body")? {
        proto::RequestBody::Unspecified | proto::RequestBody::AsSent => {
            let held = host.proxy.interceptor.view_if_held(record.request, |request| {
                let exact = request.to_bytes();
                if asked.exact { exact.into_owned() } else { redact::masked(&exact).into_owned() }
            });
            let sent = record.latest();
            (held.map_or_else(|| recorded(host, sent), Ok)?, sent.truncated, request_content_type(&record))
        }
        proto::RequestBody::AsReceived => {
            (recorded(host, &record.received.body)?, record.received.body.truncated, request_content_type(&record))
        }
        proto::RequestBody::Answer => {
            let answer = record.answer.as_ref().ok_or_else(|| no_answer(&record))?;
            (recorded(host, &answer.body)?, answer.body.truncated, answer.content_type.clone())
        }
        proto::RequestBody::Patch => {
            (patch(host, record.request)?, false, Some("application/json-patch+json".to_owned()))
        }
    };
    let size = bytes.len() as u64;
    let start = usize::try_from(asked.offset).unwrap_or(usize::MAX).min(bytes.len());
    let limit = if asked.limit == 0 { DEFAULT_BYTES } else { asked.limit.min(MAX_BYTES) } as usize;
    let end = start.saturating_add(limit).min(bytes.len());
    let content = bytes.get(start..end).unwrap_or_default().to_vec();
    Ok(proto::GetRequestBodyResponse {
        content,
        size,
        has_more: end < bytes.len(),
        truncated,
        content_type,
        ..Default::default()
    })
}

pub(super) fn recorded(host: &Host, body: &BodyRecord) -> Result<Vec<u8>, Failure> {
    Ok(host.gate.read(|history| history.body(body))?)
}

fn request_content_type(record: &RequestRecord) -> Option<String> {
    let header = record.received.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    header.map(|(_, value)| value.clone())
}

fn no_answer(record: &RequestRecord) -> Failure {
    let reason = record.ended.as_ref().map(|end| format!(": {}", end.message())).unwrap_or_default();
    missing(format!("request {} has no response{reason}", record.request))
        .hint(format!("run `sayso request show {}` for its status", record.request))
}

fn patch(host: &Host, request: u64) -> Result<Vec<u8>, Failure> {
    let record = host.proxy.interceptor.record(request)?;
    let patch = host.proxy.interceptor.view(request, |RequestView { request, hold, .. }| {
        // Records of old versions contain the edited body without its edits.
        let known = hold.is_some() || request.is_dirty() || !record.is_edited();
        known.then(|| request.to_patch())
    })?;
    let patch = patch.ok_or_else(|| {
        missing(format!("the edits of request {request} are not recorded separately"))
            .hint(format!("run `sayso request diff {request}` to compare it with the received request"))
    })?;
    patch.map(|patch| redact::masked(&patch).into_owned()).map_err(|error| {
        let failure = missing(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// Parses a request as received.
pub(super) fn as_received(host: &Host, record: &RequestRecord) -> Result<ModelRequest, Failure> {
    let body = recorded(host, &record.received.body)?;
    let head = sayso_wire::RequestHead { path: record.received.path.clone(), headers: record.received.headers.clone() };
    Ok(ModelRequest::new(record.request.to_string(), head, body))
}
