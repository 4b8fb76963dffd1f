//! What is recorded of an answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sayso_gate::{CutBody, RequestEntry};
use sayso_review::redact::masked_text;
use sayso_review::{BodyRecord, RequestAnswer, RequestStep};
use sayso_wire::stream::{Api, collect};

use super::{AnswerTap, Exchange};
use crate::desk::{Keeps, entry};
use crate::http::said::counted;
use crate::log::Haste;

/// Whether an answer in one piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// It may not be complete.
    NotYet,
    /// It has no call in it. The rest is of interest only to those who record it.
    Later(Api),
    /// It was.
    Done,
}

impl Read {
    /// Reads what was not read before, as far as it is recorded.
    fn later(self, kept: &[u8], answer: &mut RequestAnswer) {
        if let Self::Later(api) = self
            && let Ok(said) = collect::from_body(api, kept)
        {
            answer.usage = counted(said.usage);
            answer.finish = said.finish.map(|(said, _)| said);
        }
    }
}

/// The most of an error that is told beside its status.
const MOST_SAID: usize = 300;

/// What an error says for a person, in whatever form an API has for it.
fn error_said(status: u16, body: &[u8]) -> Option<String> {
    if status < 400 {
        return None;
    }
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let places = ["/error/message", "/0/error/message", "/message", "/error", "/detail"];
    let said = places.iter().find_map(|place| body.pointer(place)?.as_str())?;
    Some(said.chars().take(MOST_SAID).collect())
}

impl AnswerTap {
    /// Records the answer, once.
    pub(super) fn tell(&mut self) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let Exchange { desk, request, started, status, content_type, keeps, retries, .. } = &self.exchange;
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mut answer = RequestAnswer {
            status: *status,
            body: BodyRecord::default(),
            content_type: content_type.clone(),
            usage: counted(self.said.usage),
            finish: self.said.finish.take(),
            problem: self.said.problem.clone(),
            error: None,
            first_byte_ms: millis(self.first.unwrap_or_else(|| started.elapsed())),
            total_ms: millis(started.elapsed()),
            retries: *retries,
        };
        // What a client sends again after an overload is still what it was.
        if !answer.may_come_again() {
            desk.answered(*request);
        }
        if *keeps == Keeps::No {
            return;
        }
        let kept = Bytes::from(std::mem::take(&mut self.kept));
        let room = desk.log.room(kept.len());
        let cut = self.size > kept.len() || self.said.problem.is_some() || room.is_none();
        let (request, read) = (*request, self.read);
        let (kept, read) = if room.is_some() {
            (kept, read)
        } else {
            // What it says of itself is little.
            read.later(&kept, &mut answer);
            (Bytes::new(), Read::Done)
        };
        let work = move || {
            read.later(&kept, &mut answer);
            answer.finish = answer.finish.filter(|finish| !finish.is_empty());
            let body = CutBody::of_answer(kept);
            answer.problem = answer.problem.map(|problem| masked_text(&problem).into_owned());
            answer.error = error_said(answer.status, &body.bytes.bytes(0..body.bytes.len()));
            answer.body = BodyRecord { cut, ..body.record() };
            vec![RequestEntry { bodies: vec![body], ..entry(request, RequestStep::Answered(Box::new(answer))) }]
        };
        let log = Arc::clone(&desk.log);
        match &self.exchange.sequel {
            Some(sequel) => sequel.then(move || log.later(Haste::Soon, room, work)),
            None => log.later(Haste::Soon, room, work),
        }
    }
}
