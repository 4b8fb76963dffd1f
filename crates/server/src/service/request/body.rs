//! Bodies, byte for byte.

use sayso_api::convert::field::enumeration;
use sayso_api::proto;
use sayso_proxy::desk::Looked;
use sayso_review::{BodyRecord, RequestRecord, redact};
use sayso_wire::ModelRequest;

use super::missing;
use crate::failure::Failure;
use crate::host::Host;

/// Bytes that are read where nobody says how many, and at most.
const SOME: u32 = 1 << 20;
const MOST: u32 = 4 << 20;

/// A part of a body.
pub(super) fn part(
    host: &Host,
    asked: &proto::GetRequestBodyRequest,
) -> Result<proto::GetRequestBodyResponse, Failure> {
    let record = host.proxy.desk.record(asked.request)?;
    let (bytes, cut, content_type) = match enumeration::<_, proto::RequestBody>(asked.body, "body")? {
        proto::RequestBody::Unspecified | proto::RequestBody::AsSent => {
            let now = host.proxy.desk.look_if_waiting(record.request, |request| {
                let exact = request.to_bytes();
                if asked.exact { exact.into_owned() } else { redact::masked(&exact).into_owned() }
            });
            let sent = record.latest();
            (now.map_or_else(|| recorded(host, sent), Ok)?, sent.cut, of_requests(&record))
        }
        proto::RequestBody::AsCame => (recorded(host, &record.seen.body)?, record.seen.body.cut, of_requests(&record)),
        proto::RequestBody::Answer => {
            let answer = record.answer.as_ref().ok_or_else(|| unanswered(&record))?;
            (recorded(host, &answer.body)?, answer.body.cut, answer.content_type.clone())
        }
        proto::RequestBody::Patch => {
            (patch(host, record.request)?, false, Some("application/json-patch+json".to_owned()))
        }
    };
    let size = bytes.len() as u64;
    let start = usize::try_from(asked.offset).unwrap_or(usize::MAX).min(bytes.len());
    let limit = if asked.limit == 0 { SOME } else { asked.limit.min(MOST) } as usize;
    let end = start.saturating_add(limit).min(bytes.len());
    let content = bytes.get(start..end).unwrap_or_default().to_vec();
    Ok(proto::GetRequestBodyResponse {
        content,
        size,
        has_more: end < bytes.len(),
        cut,
        content_type,
        ..Default::default()
    })
}

pub(super) fn recorded(host: &Host, body: &BodyRecord) -> Result<Vec<u8>, Failure> {
    Ok(host.gate.read(|history| history.body(body))?)
}

fn of_requests(record: &RequestRecord) -> Option<String> {
    let header = record.seen.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    header.map(|(_, value)| value.clone())
}

fn unanswered(record: &RequestRecord) -> Failure {
    let why = record.ended.as_ref().map(|end| format!(": {}", end.message())).unwrap_or_default();
    missing(format!("request {} has no answer{why}", record.request))
        .hint(format!("`sayso request show {}` says how it stands", record.request))
}

fn patch(host: &Host, request: u64) -> Result<Vec<u8>, Failure> {
    let record = host.proxy.desk.record(request)?;
    let made = host.proxy.desk.look(request, |Looked { request, waiting, .. }| {
        // Of one that was recorded before edits were, they are not known.
        let known = waiting.is_some() || request.is_dirty() || !record.is_edited();
        known.then(|| request.to_patch())
    })?;
    let made = made.ok_or_else(|| {
        missing(format!("the edits of request {request} are not on record by themselves"))
            .hint(format!("`sayso request diff {request}` shows how it differs from what came"))
    })?;
    made.map(|patch| redact::masked(&patch).into_owned()).map_err(|error| {
        let failure = missing(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// A request as it came.
pub(super) fn as_it_came(host: &Host, record: &RequestRecord) -> Result<ModelRequest, Failure> {
    let body = recorded(host, &record.seen.body)?;
    let head = sayso_wire::Head { path: record.seen.path.clone(), headers: record.seen.headers.clone() };
    Ok(ModelRequest::new(record.request.to_string(), head, body))
}
