//! OpenAI Responses streams.
//!
//! A block is an output item. Clients read a call from the item in `response.output_item.done`, not from the pieces. A
//! complete call therefore carries its whole arguments, and a repetition with other arguments is a problem.

mod parts;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher as _};

use serde_json::{Value, json};

use super::dialect::{DialectDecoder, StreamDialect};
use super::event::{FinishReason, OpaqueKind, StreamEvent, StreamProblem};
use super::openai::{error_object, error_parts};
use super::reply::ReplyError;
use super::scan::{ScanError, members};
use super::{Api, ModelScript, encode};
use parts::{ResponsesEvent, ResponsesObject};

pub(super) struct ResponsesStream;

impl StreamDialect for ResponsesStream {
    fn api(&self) -> Api {
        Api::OpenAiResponses
    }

    fn decoder(&self) -> Box<dyn DialectDecoder + Send> {
        Box::<ResponsesDecoder>::default()
    }

    /// A body equals the response in the final event of a stream; its items are decoded as completed items.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let (mut object, mut error, mut items, mut status) = (None, "null", Vec::new(), None);
        let (mut id, mut model) = ("null", "null");
        let walked = members(body, |name, value| {
            match name {
                "object" => object = value.string()?,
                "error" => error = value.raw()?,
                "id" => id = value.raw()?,
                "model" => model = value.raw()?,
                "output" => items = value.raw_elements()?,
                "status" => status = value.string()?,
                _ => value.skip()?,
            }
            Ok(())
        });
        walked.map_err(|broken| broken.at as u64)?;
        let mut decoding = ResponsesDecoder::default();
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

    fn tool_call_markers(&self) -> &'static [&'static str] {
        &["_call"]
    }

    fn stream(&self, script: &ModelScript) -> Vec<Vec<u8>> {
        encode::responses::stream(script)
    }

    fn body(&self, script: &ModelScript) -> Value {
        encode::responses::body(script)
    }

    /// An event rather than a comment, because Codex measures idle time between events. OpenAI sends this type itself.
    fn keep_alive(&self) -> &'static [u8] {
        b"event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n"
    }

    fn error_body(&self, error: &ReplyError<'_>) -> Value {
        let mut object = error_object(error);
        object["param"] = Value::Null;
        json!({"error": object})
    }

    /// Both error forms of the API, because Codex reads one and OpenAI's library the other.
    fn retryable_end(&self, error: &ReplyError<'_>) -> Vec<u8> {
        let mut object = error_object(error);
        if object["code"].is_null() || matches!(error, ReplyError::Canceled) {
            // An error code after which Codex does not retry.
            let final_code = if error.status() < 500 { "invalid_prompt" } else { "server_error" };
            object["code"] = final_code.into();
        }
        let (code, message) = (object["code"].clone(), object["message"].clone());
        let mut failed = json!({"code": code, "message": message});
        error.add_upstream(&mut failed);
        let mut bytes = encode::named(
            "response.failed",
            &json!({"type": "response.failed", "sequence_number": 0, "response": {
                "id": "resp_failed", "object": "response", "created_at": 0, "status": "failed", "error": &failed, "output": [],
                "model": "", "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            }}),
        );
        // OpenAI's library reads the error only from the nested object, so repeat it there.
        let event = json!({
            "type": "error", "code": code, "message": message, "param": null, "sequence_number": 0, "error": failed,
        });
        bytes.extend(encode::named("error", &event));
        bytes
    }
}

#[derive(Debug, Default)]
struct ResponsesDecoder {
    has_started: bool,
    has_ended: bool,
    /// Block of the next item without an index.
    next_block: u32,
    /// `true` after the first tool call.
    has_calls: bool,
    /// Items that were added and are not done.
    items: Vec<OpenItem>,
}

/// Maximum number of open items to track.
const MAX_OPEN_ITEMS: usize = 1 << 10;

#[derive(Debug)]
struct OpenItem {
    block: u32,
    /// Id and name of a tool call.
    call: Option<(String, String)>,
    /// Number of bytes reported in pieces. If there are none, the text or the arguments of the completed item are reported.
    bytes: u64,
    /// Length and hash of the arguments that completed the call.
    complete: Option<(usize, u64)>,
}

impl DialectDecoder for ResponsesDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let broken = |broken: ScanError| broken.at as u64;
        let parts = ResponsesEvent::parse(name, data).map_err(broken)?;
        match &*parts.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let (block, text) =
                    (self.count_piece(parts.index, parts.delta.as_deref()), parts.delta.unwrap_or_default());
                out(StreamEvent::Text { block, text });
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let (block, text) =
                    (self.count_piece(parts.index, parts.delta.as_deref()), parts.delta.unwrap_or_default());
                out(StreamEvent::Thinking { block, text });
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let block = self.count_piece(parts.index, parts.delta.as_deref());
                if !self.items.iter().any(|item| item.block == block && item.complete.is_none() && item.call.is_some())
                {
                    out(StreamEvent::Problem(StreamProblem::LateArguments { block }));
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
                let inner = ResponsesObject::parse(parts.item).map_err(broken)?;
                let block = parts.index.unwrap_or(self.next_block);
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
                let inner = ResponsesObject::parse(parts.item).map_err(broken)?;
                let texts = inner.texts().map_err(broken)?;
                self.item_done(parts.index, inner, texts, data, out);
            }
            "response.created" => {
                let inner = ResponsesObject::parse(parts.response).map_err(broken)?;
                self.has_started = true;
                out(StreamEvent::MessageStarted { id: inner.id, model: inner.model });
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let inner = ResponsesObject::parse(parts.response).map_err(broken)?;
                let error = inner.error.map(error_parts).transpose().map_err(broken)?;
                self.finished(&parts.kind, inner, error, data, out);
            }
            "error" => {
                let nested = parts.error.map(error_parts).transpose().map_err(broken)?;
                let (kind, message) = nested.unwrap_or((parts.code, parts.message));
                self.has_ended = true;
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
        if self.has_started && !std::mem::replace(&mut self.has_ended, true) {
            let open = self.items.iter().filter(|item| item.call.is_some() && item.complete.is_none()).count() as u32;
            out(StreamEvent::Problem(StreamProblem::Truncated { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |item: &OpenItem| item.call.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.items.capacity() * size_of::<OpenItem>() + self.items.iter().map(strings).sum::<usize>()
    }
}

impl ResponsesDecoder {
    /// Returns the block of an event; without an index, the last open one.
    fn find(&self, index: Option<u32>) -> Option<u32> {
        index.or_else(|| self.items.last().map(|item| item.block))
    }

    /// Counts the bytes of a piece, and returns its block.
    fn count_piece(&mut self, index: Option<u32>, piece: Option<&str>) -> u32 {
        let block = self.find(index).unwrap_or(0);
        if let Some(item) = self.items.iter_mut().rfind(|item| item.block == block) {
            item.bytes += piece.map_or(0, |piece| piece.len() as u64);
        }
        block
    }

    /// Opens the block of an item. An open call in the same block is a problem.
    fn added(&mut self, block: u32, inner: &ResponsesObject<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some(at) = self.items.iter().position(|item| item.block == block)
            && self.items.remove(at).call.is_some()
        {
            out(StreamEvent::Problem(StreamProblem::Contradiction { block }));
        }
        if self.items.len() == MAX_OPEN_ITEMS {
            return out(StreamEvent::Problem(StreamProblem::TooManyBlocks));
        }
        self.next_block = self.next_block.max(block.saturating_add(1));
        let call = inner.tool().map(|_| (inner.call_id.to_string(), inner.name.to_string()));
        self.items.push(OpenItem { block, call, bytes: 0, complete: None });
        if let Some(kind) = inner.tool() {
            self.has_calls = true;
            let (id, name) = (inner.call_id.clone(), inner.name.clone());
            out(StreamEvent::ToolCallStarted { block, id, name, kind });
        }
    }

    /// Completes a call with its whole arguments. Equal arguments may complete it again without an effect.
    fn complete(&mut self, at: usize, whole: Cow<'_, str>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let item = &mut self.items[at];
        let block = item.block;
        let mut hasher = DefaultHasher::new();
        hasher.write(whole.as_bytes());
        let key = (whole.len(), hasher.finish());
        if item.complete == Some(key) {
            return;
        }
        if item.complete.replace(key).is_some() {
            out(StreamEvent::Problem(StreamProblem::Contradiction { block }));
        }
        let (id, name) = item.call.clone().unwrap_or_default();
        if item.bytes == 0 && !whole.is_empty() {
            item.bytes = whole.len() as u64;
            out(StreamEvent::ToolArguments { block, piece: Cow::Borrowed(&whole) });
        }
        out(StreamEvent::ToolCallComplete { block, id: id.into(), name: name.into(), whole: Some(whole) });
    }

    /// Ends the block of an item, and reports what no earlier event has reported.
    fn item_done(
        &mut self,
        index: Option<u32>,
        inner: ResponsesObject<'_>,
        texts: Vec<Cow<'_, str>>,
        data: &str,
        out: &mut dyn FnMut(StreamEvent<'_>),
    ) {
        let block = self.find(index).unwrap_or(self.next_block);
        if !self.items.iter().any(|item| item.block == block) {
            self.added(block, &inner, out);
        }
        let Some(at) = self.items.iter().position(|item| item.block == block) else { return };
        let unsaid = self.items[at].bytes == 0;
        match &*inner.kind {
            "message" if unsaid => texts.into_iter().for_each(|text| out(StreamEvent::Text { block, text })),
            "reasoning" if unsaid => texts.into_iter().for_each(|text| out(StreamEvent::Thinking { block, text })),
            "function_call" | "custom_tool_call" => {
                let call = (inner.call_id.to_string(), inner.name.to_string());
                if self.items[at].call.as_ref() != Some(&call) {
                    // The item differs from its announcement, and clients read the item.
                    out(StreamEvent::Problem(StreamProblem::Contradiction { block }));
                    self.items[at].call = Some(call);
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

    /// Reports the end of the response: usage, error and finish reason.
    fn finished(
        &mut self,
        kind: &str,
        inner: ResponsesObject<'_>,
        error: Option<(Cow<'_, str>, Cow<'_, str>)>,
        data: &str,
        out: &mut dyn FnMut(StreamEvent<'_>),
    ) {
        self.has_ended = true;
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
            ("completed", _) if self.has_calls => FinishReason::ToolUse,
            ("completed", _) => FinishReason::EndTurn,
            ("incomplete", Some("content_filter")) => FinishReason::Refusal,
            ("incomplete", _) => FinishReason::MaxTokens,
            ("cancelled", _) => FinishReason::Cancelled,
            ("failed", _) => FinishReason::Failed,
            _ => FinishReason::Other,
        };
        out(StreamEvent::Finished { reason: inner.incomplete.unwrap_or(status), finish });
    }
}
