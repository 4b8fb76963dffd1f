//! OpenAI Chat Completions, as OpenAI and the many who imitate it speak it.

mod parts;

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Value, json};

use super::dialect::{Decode, StreamDialect};
use super::event::{Finish, Problem, StreamEvent, ToolKind};
use super::reply::{HttpReply, Refusal};
use super::scan::has_any;
use super::{Api, Script, encode};
pub(super) use parts::error_parts;
use parts::{CallPart, Choice, Parts};

/// The dialect.
pub(super) struct Chat;

impl StreamDialect for Chat {
    fn api(&self) -> Api {
        Api::OpenAiChat
    }

    fn decoder(&self) -> Box<dyn Decode + Send> {
        Box::<Decoding>::default()
    }

    /// An answer is one chunk that says `message` where a chunk says `delta`.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        if has_any(body, &["choices", "error"])? { Decoding::default().decode("", body, out) } else { Ok(()) }
    }

    fn call_marks(&self) -> &'static [&'static str] {
        &["tool_calls", "function_call"]
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        encode::chat::stream(script)
    }

    fn body(&self, script: &Script) -> Value {
        encode::chat::body(script)
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": keep-alive\n\n"
    }

    fn refuse(&self, refusal: &Refusal<'_>) -> HttpReply {
        HttpReply::new(refusal, &error(refusal))
    }

    fn break_off(&self, refusal: &Refusal<'_>) -> Vec<u8> {
        encode::unnamed(&error(refusal))
    }
}

fn error(refusal: &Refusal<'_>) -> Value {
    let mut error = openai_error(refusal);
    error["param"] = Value::Null;
    refusal.add_upstream(&mut error);
    json!({"error": error})
}

/// The error object that both of OpenAI's APIs answer with.
pub(super) fn openai_error(refusal: &Refusal<'_>) -> Value {
    json!({
        "message": refusal.message(&["/error/message"]),
        "type": refusal.kind("/error/type").unwrap_or_else(|| match refusal.status() {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }.to_owned()),
        "code": refusal.kind("/error/code").or_else(|| {
            matches!(refusal, Refusal::Canceled).then(|| "request_canceled".to_owned())
        }),
    })
}

/// A stream being decoded.
///
/// Blocks are not numbered in this dialect: they are counted here as they begin.
#[derive(Debug, Default)]
struct Decoding {
    started: bool,
    ended: bool,
    next: u32,
    /// The open block of text or of thinking.
    said: Option<(Said, u32)>,
    calls: Vec<Call>,
}

/// More calls than this are not followed.
const CALL_LIMIT: usize = 1 << 10;

/// The calls of a choice are numbered from a multiple of this on.
const CALLS_OF_A_CHOICE: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Text,
    Thinking,
}

#[derive(Debug)]
struct Call {
    index: u64,
    block: u32,
    /// Its id and the tool's name, until it is complete.
    open: Option<(String, String)>,
}

impl Decode for Decoding {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let parts = Parts::parse(data).map_err(|broken| broken.at as u64)?;
        let said = Cell::new(false);
        let out = &mut |event: StreamEvent<'_>| {
            said.set(true);
            out(event);
        };
        if let Some(error) = parts.error {
            self.ended = true;
            let (kind, message) = error_parts(error).map_err(|broken| broken.at as u64)?;
            out(StreamEvent::Error { kind, message, raw: data.into() });
        }
        if parts.known && !std::mem::replace(&mut self.started, true) {
            out(StreamEvent::MessageStarted { id: parts.id, model: parts.model });
        }
        let choice = parts.choice;
        let not_empty = |piece: &Cow<'_, str>| !piece.is_empty();
        if let Some(text) = choice.thinking.filter(not_empty) {
            let block = self.saying(Said::Thinking, out);
            out(StreamEvent::Thinking { block, text });
        }
        for text in [choice.text, choice.refusal].into_iter().flatten().filter(not_empty) {
            let block = self.saying(Said::Text, out);
            out(StreamEvent::Text { block, text });
        }
        for part in choice.calls {
            self.call(part, out);
        }
        let more = !parts.more.is_empty();
        for other in parts.more {
            self.aside(other, out);
        }
        if let Some(reason) = choice.finish {
            self.silent(out);
            self.complete(0, out);
            self.ended = true;
            let finish = finish(&reason, !self.calls.is_empty());
            out(StreamEvent::Finished { reason, finish });
        }
        parts.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        if more || !parts.known && !said.get() {
            out(StreamEvent::Other { name: name.into(), raw: data.into() });
        } else if !said.get() {
            out(StreamEvent::Framing { name: "chat.completion.chunk".into() });
        }
        Ok(())
    }

    fn done(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.complete_all(out);
        self.ended = true;
    }

    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            let open = self.calls.iter().filter(|call| call.open.is_some()).count() as u32;
            out(StreamEvent::Problem(Problem::Cut { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |call: &Call| call.open.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.calls.capacity() * size_of::<Call>() + self.calls.iter().map(strings).sum::<usize>()
    }
}

impl Decoding {
    fn begin(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// The block of what is being said, begun where something else was said before.
    fn saying(&mut self, what: Said, out: &mut dyn FnMut(StreamEvent<'_>)) -> u32 {
        if let Some((said, block)) = self.said
            && said == what
        {
            return block;
        }
        self.silent(out);
        let block = self.begin();
        self.said = Some((what, block));
        block
    }

    fn silent(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some((_, block)) = self.said.take() {
            out(StreamEvent::BlockEnded { block });
        }
    }

    /// Nothing comes for what is open.
    fn complete_all(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.silent(out);
        self.complete_where(|_| true, out);
    }

    /// Nothing comes for the calls of a choice.
    fn complete(&mut self, choice: u64, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.complete_where(|call| call.index / CALLS_OF_A_CHOICE == choice, out);
    }

    fn complete_where(&mut self, wanted: impl Fn(&Call) -> bool, out: &mut dyn FnMut(StreamEvent<'_>)) {
        for call in self.calls.iter_mut().filter(|call| wanted(call)) {
            let block = call.block;
            if let Some((id, name)) = call.open.take() {
                out(StreamEvent::ToolCallComplete { block, id: id.into(), name: name.into(), whole: None });
                out(StreamEvent::BlockEnded { block });
            }
        }
    }

    /// A choice beyond the first. What it says is left to the reader of the whole; what it calls is not, as an agent may take it.
    fn aside(&mut self, choice: Choice<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let first = choice.number.saturating_mul(CALLS_OF_A_CHOICE);
        for (place, part) in (0..).zip(choice.calls) {
            let index = first.saturating_add(part.index.unwrap_or(place));
            self.call(CallPart { index: Some(index), ..part }, out);
        }
        if choice.finish.is_some() {
            self.complete(choice.number, out);
        }
    }

    fn call(&mut self, part: CallPart<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let last = self.calls.last().map(|call| call.index);
        // Some leave the index out, and some give every call the same one: an id with a name starts a call.
        let index = part.index.or(if part.id.is_empty() { last } else { None });
        let index = index.unwrap_or_else(|| last.map_or(0, |last| last + 1));
        let known = self.calls.iter().rfind(|call| call.index == index).filter(|call| {
            let other = |(id, _): &(String, String)| *id != *part.id;
            part.id.is_empty() || part.name.is_empty() || !call.open.as_ref().is_some_and(other)
        });
        if let Some(call) = known {
            let block = call.block;
            if call.open.is_none() && !part.piece.is_empty() {
                out(StreamEvent::Problem(Problem::LateArguments { block }));
            }
            if !part.piece.is_empty() {
                out(StreamEvent::ToolArguments { block, piece: part.piece });
            }
            return;
        }
        // One with an index of its own says nothing of the others: more may come for them, and half of a call must not pass for all
        // of it. They are complete with the answer.
        if part.index.is_some() && self.calls.iter().all(|call| call.index != index) {
            self.silent(out);
        } else {
            self.complete_all(out);
        }
        if self.calls.len() == CALL_LIMIT {
            return out(StreamEvent::Problem(Problem::TooManyBlocks));
        }
        let block = self.begin();
        let open = Some((part.id.to_string(), part.name.to_string()));
        self.calls.push(Call { index, block, open });
        let kind = if part.custom { ToolKind::Custom } else { ToolKind::Function };
        out(StreamEvent::ToolCallStarted { block, id: part.id, name: part.name, kind });
        if !part.piece.is_empty() {
            out(StreamEvent::ToolArguments { block, piece: part.piece });
        }
    }
}

fn finish(reason: &str, calls: bool) -> Finish {
    match reason {
        "stop" if calls => Finish::ToolUse,
        "stop" => Finish::EndTurn,
        "tool_calls" | "function_call" => Finish::ToolUse,
        "length" => Finish::MaxTokens,
        "content_filter" => Finish::Refusal,
        _ => Finish::Other,
    }
}
