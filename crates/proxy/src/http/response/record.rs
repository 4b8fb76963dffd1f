//! The journal entry of a response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sayso_gate::{ChunkedBody, RequestEntry};
use sayso_review::redact::masked_text;
use sayso_review::{BodyRecord, RequestAnswer, RequestStep};
use sayso_wire::stream::{Api, collect};

use super::summary::token_usage;
use super::{Exchange, ResponseTap};
use crate::interceptor::{Recording, entry};
use crate::recorder::Flush;

/// Decoding of a non-streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyDecoding {
    /// The body is not complete.
    Pending,
    /// The body contains no tool call. Only its entry needs the rest, so the recorder thread decodes it.
    Deferred(Api),
    Done,
}

impl BodyDecoding {
    /// Decodes a deferred body into the entry.
    fn finish(self, body: &[u8], answer: &mut RequestAnswer) {
        if let Self::Deferred(api) = self
            && let Ok(response) = collect::from_body(api, body)
        {
            answer.usage = token_usage(response.usage);
            answer.finish = response.finish.map(|(reason, _)| reason);
        }
    }
}

/// Characters of an error message that are recorded beside the status.
const MAX_ERROR_CHARS: usize = 300;

/// Extracts the message of an error body; each API has its own format.
fn error_message(status: u16, body: &[u8]) -> Option<String> {
    if status < 400 {
        return None;
    }
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let pointers = ["/error/message", "/0/error/message", "/message", "/error", "/detail"];
    let message = pointers.iter().find_map(|pointer| body.pointer(pointer)?.as_str())?;
    Some(message.chars().take(MAX_ERROR_CHARS).collect())
}

impl ResponseTap {
    /// Records the response, once.
    pub(super) fn record(&mut self) {
        if std::mem::replace(&mut self.recorded, true) {
            return;
        }
        let Exchange { interceptor, request, started, status, content_type, recording, retries, .. } = &self.exchange;
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mut answer = RequestAnswer {
            status: *status,
            body: BodyRecord::default(),
            content_type: content_type.clone(),
            usage: token_usage(self.summary.usage),
            finish: self.summary.finish.take(),
            problem: self.summary.problem.clone(),
            error: None,
            first_byte_ms: millis(self.first_byte.unwrap_or_else(|| started.elapsed())),
            total_ms: millis(started.elapsed()),
            retries: *retries,
        };
        // After an overload or a broken stream the client retries, and the decision still applies.
        if !answer.may_be_retried() {
            interceptor.answered(*request);
        }
        if *recording == Recording::Disabled {
            return;
        }
        let body = Bytes::from(std::mem::take(&mut self.captured));
        let budget = interceptor.recorder.budget(body.len());
        let truncated = self.size > body.len() || self.summary.problem.is_some() || budget.is_none();
        let (request, decoding) = (*request, self.decoding);
        let (body, decoding) = if budget.is_some() {
            (body, decoding)
        } else {
            // The body is dropped, but its usage is recorded.
            decoding.finish(&body, &mut answer);
            (Bytes::new(), BodyDecoding::Done)
        };
        let build = move || {
            decoding.finish(&body, &mut answer);
            answer.finish = answer.finish.filter(|finish| !finish.is_empty());
            let body = ChunkedBody::of_response(body);
            answer.problem = answer.problem.map(|problem| masked_text(&problem).into_owned());
            answer.error = error_message(answer.status, &body.bytes.bytes(0..body.bytes.len()));
            answer.body = BodyRecord { truncated, ..body.record() };
            vec![RequestEntry { bodies: vec![body], ..entry(request, RequestStep::Answered(Box::new(answer))) }]
        };
        let recorder = Arc::clone(&interceptor.recorder);
        match &self.exchange.barrier {
            Some(barrier) => barrier.after(move || recorder.build_later(request, Flush::Batched, budget, build)),
            None => recorder.build_later(request, Flush::Batched, budget, build),
        }
    }
}
