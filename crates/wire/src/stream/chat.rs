//! OpenAI Chat Completions streams, and compatible APIs.

mod parts;

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Value, json};

use super::blocks::{BlockCounter, TextKind};
use super::dialect::{DialectDecoder, StreamDialect};
use super::event::{FinishReason, StreamEvent, StreamProblem, ToolKind};
use super::openai::{error_object, error_parts};
use super::reply::ReplyError;
use super::scan::has_any;
use super::{Api, ModelScript, encode};
use parts::{ChatChoice, ChatChunk, ToolCallDelta};

pub(super) struct ChatStream;

impl StreamDialect for ChatStream {
    fn api(&self) -> Api {
        Api::OpenAiChat
    }

    fn decoder(&self) -> Box<dyn DialectDecoder + Send> {
        Box::<ChatDecoder>::default()
    }

    /// A body has the form of a chunk, with `message` in place of `delta`.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        if has_any(body, &["choices", "error"])? { ChatDecoder::default().decode("", body, out) } else { Ok(()) }
    }

    fn tool_call_markers(&self) -> &'static [&'static str] {
        &["tool_calls", "function_call"]
    }

    fn stream(&self, script: &ModelScript) -> Vec<Vec<u8>> {
        encode::chat::stream(script)
    }

    fn body(&self, script: &ModelScript) -> Value {
        encode::chat::body(script)
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": keep-alive\n\n"
    }

    fn error_body(&self, error: &ReplyError<'_>) -> Value {
        let mut object = error_object(error);
        object["param"] = Value::Null;
        error.add_upstream(&mut object);
        json!({"error": object})
    }
}

/// The decoder of a stream.
///
/// This API does not number blocks, so they are numbered in order of their start.
#[derive(Debug, Default)]
struct ChatDecoder {
    started: bool,
    ended: bool,
    blocks: BlockCounter,
    calls: Vec<OpenCall>,
}

/// Maximum number of calls to track.
const MAX_CALLS: usize = 1 << 10;

/// Distance between the call numbers of consecutive choices.
const CALLS_PER_CHOICE: u64 = 1 << 32;

#[derive(Debug)]
struct OpenCall {
    index: u64,
    block: u32,
    /// Id and tool name, until the call is complete.
    open: Option<(String, String)>,
}

impl DialectDecoder for ChatDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let parts = ChatChunk::parse(data).map_err(|broken| broken.at as u64)?;
        let has_events = Cell::new(false);
        let out = &mut |event: StreamEvent<'_>| {
            has_events.set(true);
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
            let block = self.blocks.text_block(TextKind::Thinking, out);
            out(StreamEvent::Thinking { block, text });
        }
        for text in [choice.text, choice.refusal].into_iter().flatten().filter(not_empty) {
            let block = self.blocks.text_block(TextKind::Text, out);
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
            self.blocks.end_text(out);
            self.complete(0, out);
            self.ended = true;
            let finish = finish(&reason, !self.calls.is_empty());
            out(StreamEvent::Finished { reason, finish });
        }
        parts.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        if more || !parts.known && !has_events.get() {
            out(StreamEvent::Other { name: name.into(), raw: data.into() });
        } else if !has_events.get() {
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
            out(StreamEvent::Problem(StreamProblem::Truncated { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |call: &OpenCall| call.open.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.calls.capacity() * size_of::<OpenCall>() + self.calls.iter().map(strings).sum::<usize>()
    }
}

impl ChatDecoder {
    /// Completes everything that is open.
    fn complete_all(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.blocks.end_text(out);
        self.complete_where(|_| true, out);
    }

    /// Completes the calls of a choice.
    fn complete(&mut self, choice: u64, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.complete_where(|call| call.index / CALLS_PER_CHOICE == choice, out);
    }

    fn complete_where(&mut self, wanted: impl Fn(&OpenCall) -> bool, out: &mut dyn FnMut(StreamEvent<'_>)) {
        for call in self.calls.iter_mut().filter(|call| wanted(call)) {
            let block = call.block;
            if let Some((id, name)) = call.open.take() {
                out(StreamEvent::ToolCallComplete { block, id: id.into(), name: name.into(), whole: None });
                out(StreamEvent::BlockEnded { block });
            }
        }
    }

    /// Decodes a choice other than the first. Its text is reported as a whole; its calls are decoded, because an agent
    /// may run them.
    fn aside(&mut self, choice: ChatChoice<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let first = choice.number.saturating_mul(CALLS_PER_CHOICE);
        for (place, part) in (0..).zip(choice.calls) {
            let index = first.saturating_add(part.index.unwrap_or(place));
            self.call(ToolCallDelta { index: Some(index), ..part }, out);
        }
        if choice.finish.is_some() {
            self.complete(choice.number, out);
        }
    }

    fn call(&mut self, part: ToolCallDelta<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let last = self.calls.last().map(|call| call.index);
        // Some servers omit the index, others give every call the same one. An id with a name starts a new call.
        let index = part.index.or(if part.id.is_empty() { last } else { None });
        let index = index.unwrap_or_else(|| last.map_or(0, |last| last + 1));
        let known = self.calls.iter().rfind(|call| call.index == index).filter(|call| {
            let other = |(id, _): &(String, String)| *id != *part.id;
            part.id.is_empty() || part.name.is_empty() || !call.open.as_ref().is_some_and(other)
        });
        if let Some(call) = known {
            let block = call.block;
            if call.open.is_none() && !part.piece.is_empty() {
                out(StreamEvent::Problem(StreamProblem::LateArguments { block }));
            }
            if !part.piece.is_empty() {
                out(StreamEvent::ToolArguments { block, piece: part.piece });
            }
            return;
        }
        // A call with an index does not complete the others, because servers may interleave calls. A partial call must
        // not pass for a complete one; all are completed at the end of the response.
        if part.index.is_some() && self.calls.iter().all(|call| call.index != index) {
            self.blocks.end_text(out);
        } else {
            self.complete_all(out);
        }
        if self.calls.len() == MAX_CALLS {
            return out(StreamEvent::Problem(StreamProblem::TooManyBlocks));
        }
        let block = self.blocks.begin();
        let open = Some((part.id.to_string(), part.name.to_string()));
        self.calls.push(OpenCall { index, block, open });
        let kind = if part.custom { ToolKind::Custom } else { ToolKind::Function };
        out(StreamEvent::ToolCallStarted { block, id: part.id, name: part.name, kind });
        if !part.piece.is_empty() {
            out(StreamEvent::ToolArguments { block, piece: part.piece });
        }
    }
}

fn finish(reason: &str, calls: bool) -> FinishReason {
    match reason {
        "stop" if calls => FinishReason::ToolUse,
        "stop" => FinishReason::EndTurn,
        "tool_calls" | "function_call" => FinishReason::ToolUse,
        "length" => FinishReason::MaxTokens,
        "content_filter" => FinishReason::Refusal,
        _ => FinishReason::Other,
    }
}
