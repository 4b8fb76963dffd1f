//! OpenAI Responses.
//!
//! A block is an item of the output. Clients read what a call is from the item that `response.output_item.done` carries, not from the
//! pieces, so a complete call carries its whole arguments, and a second saying that differs from the first is a problem.

mod parts;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher as _};

use serde_json::{Value, json};

use super::chat::{error_parts, openai_error};
use super::dialect::{Decode, StreamDialect};
use super::event::{Finish, OpaqueKind, Problem, StreamEvent};
use super::reply::{HttpReply, Refusal};
use super::scan::{Broken, members};
use super::{Api, Script, encode};
use parts::{Inner, Parts};

/// The dialect.
pub(super) struct Responses;

impl StreamDialect for Responses {
    fn api(&self) -> Api {
        Api::OpenAiResponses
    }

    fn decoder(&self) -> Box<dyn Decode + Send> {
        Box::<Decoding>::default()
    }

    /// An answer is the response that a stream ends with, its items those that the stream would have ended one by one.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let (mut object, mut error, mut items, mut status) = (None, "null", Vec::new(), None);
        let (mut id, mut model) = ("null", "null");
        let walked = members(body, |name, value| {
            match name {
                "object" => object = value.string()?,
                "error" => error = value.raw()?,
                "id" => id = value.raw()?,
                "model" => model = value.raw()?,
                "output" => items = value.raws()?,
                "status" => status = value.string()?,
                _ => value.skip()?,
            }
            Ok(())
        });
        walked.map_err(|broken| broken.at as u64)?;
        let mut decoding = Decoding::default();
        let mut tell = |event: &str| decoding.decode("", event, out);
        if object.as_deref() != Some("response") {
            return if error.starts_with('{') {
                tell(&format!(r#"{{"type":"error","error":{error}}}"#))
            } else {
                Ok(())
            };
        }
        tell(&format!(r#"{{"type":"response.created","response":{{"id":{id},"model":{model}}}}}"#))?;
        for (index, item) in items.into_iter().enumerate() {
            tell(&format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#))?;
        }
        let kind = json!(format!("response.{}", status.as_deref().unwrap_or("completed")));
        tell(&format!(r#"{{"type":{kind},"response":{body}}}"#))
    }

    fn call_marks(&self) -> &'static [&'static str] {
        &["_call"]
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        encode::responses::stream(script)
    }

    fn body(&self, script: &Script) -> Value {
        encode::responses::body(script)
    }

    /// An event, since Codex counts events and not bytes; of a type that OpenAI sends for this purpose itself.
    fn keep_alive(&self) -> &'static [u8] {
        b"event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n"
    }

    fn refuse(&self, refusal: &Refusal<'_>) -> HttpReply {
        let mut error = openai_error(refusal);
        error["param"] = Value::Null;
        HttpReply::new(refusal, &json!({"error": error}))
    }

    /// Both forms that the API has: some clients look for the one (Codex), some for the other (OpenAI's own library).
    fn break_off(&self, refusal: &Refusal<'_>) -> Vec<u8> {
        let mut error = openai_error(refusal);
        if error["code"].is_null() || matches!(refusal, Refusal::Canceled) {
            // A code that Codex does not answer with another try.
            let final_code = if refusal.status() < 500 { "invalid_prompt" } else { "server_error" };
            error["code"] = final_code.into();
        }
        let (code, message) = (error["code"].clone(), error["message"].clone());
        let mut failed = json!({"code": code, "message": message});
        refusal.add_upstream(&mut failed);
        let mut bytes = encode::named(
            "response.failed",
            &json!({"type": "response.failed", "sequence_number": 0, "response": {
                "id": "resp_failed", "object": "response", "created_at": 0, "status": "failed", "error": &failed, "output": [],
                "model": "", "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            }}),
        );
        // What is said at the top is said inside once more: the library looks only there.
        let event = json!({
            "type": "error", "code": code, "message": message, "param": null, "sequence_number": 0, "error": failed,
        });
        bytes.extend(encode::named("error", &event));
        bytes
    }
}

/// A stream being decoded.
#[derive(Debug, Default)]
struct Decoding {
    started: bool,
    ended: bool,
    next: u32,
    calls: bool,
    items: Vec<Item>,
}

/// More open items than this are not followed.
const OPEN_LIMIT: usize = 1 << 10;

#[derive(Debug)]
struct Item {
    block: u32,
    call: Option<(String, String)>,
    /// Bytes that came in pieces.
    bytes: u64,
    /// The length and hash of the arguments that completed the call.
    complete: Option<(usize, u64)>,
}

impl Decode for Decoding {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let broken = |broken: Broken| broken.at as u64;
        let parts = Parts::parse(name, data).map_err(broken)?;
        match &*parts.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let (block, text) = (self.piece(parts.index, parts.delta.as_deref()), parts.delta.unwrap_or_default());
                out(StreamEvent::Text { block, text });
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let (block, text) = (self.piece(parts.index, parts.delta.as_deref()), parts.delta.unwrap_or_default());
                out(StreamEvent::Thinking { block, text });
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let block = self.piece(parts.index, parts.delta.as_deref());
                if !self.items.iter().any(|item| item.block == block && item.complete.is_none() && item.call.is_some())
                {
                    out(StreamEvent::Problem(Problem::LateArguments { block }));
                }
                out(StreamEvent::ToolArguments { block, piece: parts.delta.unwrap_or_default() });
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                let at = self.find(parts.index).and_then(|block| self.items.iter().position(|i| i.block == block));
                match (at, parts.whole) {
                    (Some(at), Some(whole)) if self.items[at].call.is_some() => self.complete(at, whole, out),
                    _ => out(StreamEvent::Framing { name: parts.kind }),
                }
            }
            "response.output_item.added" => {
                let inner = Inner::parse(parts.item).map_err(broken)?;
                let block = parts.index.unwrap_or(self.next);
                self.added(block, &inner, out);
                match inner.tool() {
                    Some(_) => {}
                    None if matches!(&*inner.kind, "message" | "reasoning") => {
                        out(StreamEvent::Framing { name: parts.kind });
                    }
                    None => out(StreamEvent::Other { name: inner.kind, raw: data.into() }),
                }
            }
            "response.output_item.done" => {
                let inner = Inner::parse(parts.item).map_err(broken)?;
                let texts = inner.texts().map_err(broken)?;
                self.item_done(parts.index, inner, texts, data, out);
            }
            "response.created" => {
                let inner = Inner::parse(parts.response).map_err(broken)?;
                self.started = true;
                out(StreamEvent::MessageStarted { id: inner.id, model: inner.model });
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let inner = Inner::parse(parts.response).map_err(broken)?;
                let error = inner.error.map(error_parts).transpose().map_err(broken)?;
                self.finished(&parts.kind, inner, error, data, out);
            }
            "error" => {
                let nested = parts.error.map(error_parts).transpose().map_err(broken)?;
                let (kind, message) = nested.unwrap_or((parts.code, parts.message));
                self.ended = true;
                out(StreamEvent::Error { kind, message, raw: data.into() });
            }
            "keepalive" | "ping" => out(StreamEvent::KeepAlive),
            "response.in_progress"
            | "response.queued"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.output_text.done"
            | "response.refusal.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.done" => out(StreamEvent::Framing { name: parts.kind }),
            _ => out(StreamEvent::Other { name: parts.kind, raw: data.into() }),
        }
        Ok(())
    }

    fn done(&mut self, _out: &mut dyn FnMut(StreamEvent<'_>)) {}

    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            let open = self.items.iter().filter(|item| item.call.is_some() && item.complete.is_none()).count() as u32;
            out(StreamEvent::Problem(Problem::Cut { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |item: &Item| item.call.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.items.capacity() * size_of::<Item>() + self.items.iter().map(strings).sum::<usize>()
    }
}

impl Decoding {
    /// The block that an event is about: the last open one where it does not say.
    fn find(&self, index: Option<u32>) -> Option<u32> {
        index.or_else(|| self.items.last().map(|item| item.block))
    }

    /// Counts a piece of a block.
    fn piece(&mut self, index: Option<u32>, piece: Option<&str>) -> u32 {
        let block = self.find(index).unwrap_or(0);
        if let Some(item) = self.items.iter_mut().rfind(|item| item.block == block) {
            item.bytes += piece.map_or(0, |piece| piece.len() as u64);
        }
        block
    }

    fn added(&mut self, block: u32, inner: &Inner<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some(at) = self.items.iter().position(|item| item.block == block)
            && self.items.remove(at).call.is_some()
        {
            out(StreamEvent::Problem(Problem::Contradiction { block }));
        }
        if self.items.len() == OPEN_LIMIT {
            return out(StreamEvent::Problem(Problem::TooManyBlocks));
        }
        self.next = self.next.max(block.saturating_add(1));
        let call = inner.tool().map(|_| (inner.call_id.to_string(), inner.name.to_string()));
        self.items.push(Item { block, call, bytes: 0, complete: None });
        if let Some(kind) = inner.tool() {
            self.calls = true;
            let (id, name) = (inner.call_id.clone(), inner.name.clone());
            out(StreamEvent::ToolCallStarted { block, id, name, kind });
        }
    }

    /// A call's arguments were said as a whole.
    fn complete(&mut self, at: usize, whole: Cow<'_, str>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let item = &mut self.items[at];
        let block = item.block;
        let mut hasher = DefaultHasher::new();
        hasher.write(whole.as_bytes());
        let said = (whole.len(), hasher.finish());
        if item.complete == Some(said) {
            return;
        }
        if item.complete.replace(said).is_some() {
            out(StreamEvent::Problem(Problem::Contradiction { block }));
        }
        let (id, name) = item.call.clone().unwrap_or_default();
        if item.bytes == 0 && !whole.is_empty() {
            item.bytes = whole.len() as u64;
            out(StreamEvent::ToolArguments { block, piece: Cow::Borrowed(&whole) });
        }
        out(StreamEvent::ToolCallComplete { block, id: id.into(), name: name.into(), whole: Some(whole) });
    }

    fn item_done(
        &mut self,
        index: Option<u32>,
        inner: Inner<'_>,
        texts: Vec<Cow<'_, str>>,
        data: &str,
        out: &mut dyn FnMut(StreamEvent<'_>),
    ) {
        let block = self.find(index).unwrap_or(self.next);
        if !self.items.iter().any(|item| item.block == block) {
            self.added(block, &inner, out);
        }
        let Some(at) = self.items.iter().position(|item| item.block == block) else { return };
        let unsaid = self.items[at].bytes == 0;
        match &*inner.kind {
            "message" if unsaid => texts.into_iter().for_each(|text| out(StreamEvent::Text { block, text })),
            "reasoning" if unsaid => texts.into_iter().for_each(|text| out(StreamEvent::Thinking { block, text })),
            "function_call" | "custom_tool_call" => {
                let said = (inner.call_id.to_string(), inner.name.to_string());
                if self.items[at].call.as_ref() != Some(&said) {
                    // What was announced is not what is said now, and clients go by this one.
                    out(StreamEvent::Problem(Problem::Contradiction { block }));
                    self.items[at].call = Some(said);
                    self.items[at].complete = None;
                }
                self.complete(at, inner.arguments.unwrap_or_default(), out);
            }
            "message" | "reasoning" => {}
            _ => out(StreamEvent::Other { name: inner.kind.clone(), raw: data.into() }),
        }
        if let Some(data) = inner.encrypted {
            out(StreamEvent::Opaque { block, kind: OpaqueKind::Encrypted, data });
        }
        self.items.remove(at);
        out(StreamEvent::BlockEnded { block });
    }

    fn finished(
        &mut self,
        kind: &str,
        inner: Inner<'_>,
        error: Option<(Cow<'_, str>, Cow<'_, str>)>,
        data: &str,
        out: &mut dyn FnMut(StreamEvent<'_>),
    ) {
        self.ended = true;
        inner.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        if let Some((kind, message)) = error {
            out(StreamEvent::Error { kind, message, raw: data.into() });
        }
        let status = if inner.status.is_empty() {
            Cow::Owned(kind.trim_start_matches("response.").to_owned())
        } else {
            inner.status
        };
        let finish = match (&*status, inner.incomplete.as_deref()) {
            ("completed", _) if self.calls => Finish::ToolUse,
            ("completed", _) => Finish::EndTurn,
            ("incomplete", Some("content_filter")) => Finish::Refusal,
            ("incomplete", _) => Finish::MaxTokens,
            ("cancelled", _) => Finish::Cancelled,
            ("failed", _) => Finish::Failed,
            _ => Finish::Other,
        };
        out(StreamEvent::Finished { reason: inner.incomplete.unwrap_or(status), finish });
    }
}
