//! Anthropic Messages streams.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::dialect::{DialectDecoder, StreamDialect};
use super::event::{FinishReason, OpaqueKind, StreamEvent, StreamProblem, ToolKind, Usage};
use super::reply::{ReplyError, StreamStarted};
use super::scan::{ScanError, members};
use super::{Api, ModelScript, encode};

pub(super) struct AnthropicStream;

impl StreamDialect for AnthropicStream {
    fn api(&self) -> Api {
        Api::AnthropicMessages
    }

    fn decoder(&self) -> Box<dyn DialectDecoder + Send> {
        Box::<AnthropicDecoder>::default()
    }

    /// A body has the form of the `message` in `message_start`, with its blocks filled in. Decode it as the equivalent
    /// stream.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let (mut kind, mut blocks, mut stop_reason) = (None, Vec::new(), "null");
        let walked = members(body, |name, value| {
            match name {
                "type" => kind = value.string()?,
                "content" => blocks = value.raw_elements()?,
                "stop_reason" => stop_reason = value.raw()?,
                _ => value.skip()?,
            }
            Ok(())
        });
        walked.map_err(|broken| broken.at as u64)?;
        let mut decoding = AnthropicDecoder::default();
        let mut tell = |event: &str| decoding.decode("", event, out);
        match kind.as_deref() {
            Some("error") => tell(body),
            Some("message") => {
                tell(&format!(r#"{{"type":"message_start","message":{body}}}"#))?;
                for (index, block) in blocks.into_iter().enumerate() {
                    tell(&format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#))?;
                    tell(&format!(r#"{{"type":"content_block_stop","index":{index}}}"#))?;
                }
                tell(&format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{stop_reason}}}}}"#))
            }
            _ => Ok(()),
        }
    }

    fn tool_call_markers(&self) -> &'static [&'static str] {
        &["tool_use"]
    }

    fn stream(&self, script: &ModelScript) -> Vec<Vec<u8>> {
        encode::anthropic::stream(script)
    }

    fn body(&self, script: &ModelScript) -> Value {
        encode::anthropic::body(script)
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn retryable_end(&self, error: &ReplyError<'_>) -> Vec<u8> {
        encode::named("error", &self.error_body(error))
    }

    /// Claude Code retries without a stream unless one block was complete before the error.
    fn terminal_error(&self, error: &ReplyError<'_>, started: StreamStarted) -> Vec<u8> {
        if started == StreamStarted::Yes {
            return self.retryable_end(error);
        }
        let usage = json!({"input_tokens": 0, "output_tokens": 0});
        let message = json!({"id": "msg_sayso", "type": "message", "role": "assistant", "model": "", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage});
        let block = json!({"type": "text", "text": ""});
        [
            encode::named("message_start", &json!({"type": "message_start", "message": message})),
            encode::named(
                "content_block_start",
                &json!({"type": "content_block_start", "index": 0, "content_block": block}),
            ),
            encode::named("content_block_stop", &json!({"type": "content_block_stop", "index": 0})),
            self.retryable_end(error),
        ]
        .concat()
    }

    fn error_body(&self, error: &ReplyError<'_>) -> Value {
        let mut object = json!({
            "type": error.kind("/error/type").unwrap_or_else(|| match error.status() {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            }.to_owned()),
            "message": error.message(&["/error/message"]),
        });
        error.add_upstream(&mut object);
        json!({"type": "error", "error": object})
    }
}

#[derive(Debug, Default)]
struct AnthropicDecoder {
    open: Vec<OpenBlock>,
    started: bool,
    ended: bool,
}

/// Maximum number of open blocks to track.
const MAX_OPEN_BLOCKS: usize = 1 << 10;

#[derive(Debug)]
struct OpenBlock {
    index: u32,
    call: Option<(String, String)>,
    /// `true` once arguments were received.
    filled: bool,
}

/// The relevant members of an event.
#[derive(Default)]
struct AnthropicEvent<'a> {
    kind: Cow<'a, str>,
    index: u32,
    delta: Cow<'a, str>,
    piece: Option<Cow<'a, str>>,
    stop_reason: Option<Cow<'a, str>>,
    /// Raw JSON of the block, the message or the error.
    inner: &'a str,
    usage: Option<Usage>,
}

impl<'a> AnthropicEvent<'a> {
    fn parse(name: &'a str, data: &'a str) -> Result<Self, ScanError> {
        let mut parts = Self { kind: Cow::Borrowed(name), inner: "null", ..Self::default() };
        members(data, |key, scan| {
            match key {
                "type" => parts.kind = scan.string()?.unwrap_or_default(),
                "index" => parts.index = scan.number()?.unwrap_or_default() as u32,
                "delta" => scan.members(&mut |key, scan| {
                    match key {
                        "type" => parts.delta = scan.string()?.unwrap_or_default(),
                        "text" | "partial_json" | "thinking" | "signature" => parts.piece = scan.string()?,
                        "stop_reason" => parts.stop_reason = scan.string()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                "content_block" | "message" | "error" => parts.inner = scan.raw()?,
                "usage" => parts.usage = Some(usage(scan.raw()?)?),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

fn usage(raw: &str) -> Result<Usage, ScanError> {
    let mut usage = Usage::default();
    members(raw, |key, scan| {
        match key {
            "input_tokens" => usage.input = scan.number()?,
            "output_tokens" => usage.output = scan.number()?,
            "cache_read_input_tokens" => usage.cache_read = scan.number()?,
            "cache_creation_input_tokens" => usage.cache_written = scan.number()?,
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok(usage)
}

/// The relevant members of a block, a message or an error.
#[derive(Default)]
struct AnthropicObject<'a> {
    kind: Cow<'a, str>,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    model: Cow<'a, str>,
    text: Cow<'a, str>,
    signature: Cow<'a, str>,
    data: Cow<'a, str>,
    message: Cow<'a, str>,
    input: &'a str,
    usage: Option<Usage>,
}

impl<'a> AnthropicObject<'a> {
    fn parse(raw: &'a str) -> Result<Self, ScanError> {
        let mut inner = Self::default();
        members(raw, |key, scan| {
            match key {
                "type" => inner.kind = scan.string()?.unwrap_or_default(),
                "id" => inner.id = scan.string()?.unwrap_or_default(),
                "name" => inner.name = scan.string()?.unwrap_or_default(),
                "model" => inner.model = scan.string()?.unwrap_or_default(),
                "text" | "thinking" => inner.text = scan.string()?.unwrap_or_default(),
                "signature" => inner.signature = scan.string()?.unwrap_or_default(),
                "data" => inner.data = scan.string()?.unwrap_or_default(),
                "message" => inner.message = scan.string()?.unwrap_or_default(),
                "input" => inner.input = scan.raw()?,
                "usage" => inner.usage = Some(usage(scan.raw()?)?),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(inner)
    }
}

impl DialectDecoder for AnthropicDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let parts = AnthropicEvent::parse(name, data).map_err(|broken| broken.at as u64)?;
        let other = |name| StreamEvent::Other { name, raw: Cow::Borrowed(data) };
        let block = parts.index;
        match &*parts.kind {
            "content_block_delta" => match (&*parts.delta, parts.piece) {
                ("text_delta", Some(text)) => out(StreamEvent::Text { block, text }),
                ("thinking_delta", Some(text)) => out(StreamEvent::Thinking { block, text }),
                ("signature_delta", Some(data)) => {
                    out(StreamEvent::Opaque { block, kind: OpaqueKind::Signature, data });
                }
                ("input_json_delta", Some(piece)) => match self.open.iter_mut().rfind(|open| open.index == block) {
                    Some(OpenBlock { call: Some(_), filled, .. }) => {
                        *filled |= !piece.is_empty();
                        out(StreamEvent::ToolArguments { block, piece });
                    }
                    // Arguments of a tool that the API runs itself.
                    Some(_) => out(other(parts.delta)),
                    None => {
                        out(StreamEvent::Problem(StreamProblem::LateArguments { block }));
                        out(StreamEvent::ToolArguments { block, piece });
                    }
                },
                _ => out(other(parts.delta)),
            },
            "content_block_start" => {
                let inner = AnthropicObject::parse(parts.inner).map_err(|broken| broken.at as u64)?;
                self.start_block(block, inner, data, out);
            }
            "content_block_stop" => {
                if let Some(at) = self.open.iter().rposition(|open| open.index == block)
                    && let OpenBlock { call: Some((id, name)), filled, .. } = self.open.remove(at)
                {
                    if !filled {
                        // No pieces were received, so the arguments are the empty object of the start event.
                        out(StreamEvent::ToolArguments { block, piece: "{}".into() });
                    }
                    let (id, name) = (id.into(), name.into());
                    out(StreamEvent::ToolCallComplete { block, id, name, whole: None });
                }
                out(StreamEvent::BlockEnded { block });
            }
            "message_start" => {
                let inner = AnthropicObject::parse(parts.inner).map_err(|broken| broken.at as u64)?;
                self.started = true;
                out(StreamEvent::MessageStarted { id: inner.id, model: inner.model });
                inner.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
            }
            "message_delta" => {
                let has_update = parts.usage.is_some() || parts.stop_reason.is_some();
                parts.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
                if let Some(reason) = parts.stop_reason {
                    self.ended = true;
                    let finish = finish(&reason);
                    out(StreamEvent::Finished { reason, finish });
                }
                if !has_update {
                    out(StreamEvent::Framing { name: parts.kind });
                }
            }
            "message_stop" => out(StreamEvent::Framing { name: parts.kind }),
            "ping" => out(StreamEvent::KeepAlive),
            "error" => {
                let inner = AnthropicObject::parse(parts.inner).map_err(|broken| broken.at as u64)?;
                self.ended = true;
                out(StreamEvent::Error { kind: inner.kind, message: inner.message, raw: data.into() });
            }
            _ => out(other(parts.kind)),
        }
        Ok(())
    }

    fn done(&mut self, _out: &mut dyn FnMut(StreamEvent<'_>)) {}

    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            let open = self.open.iter().filter(|open| open.call.is_some()).count() as u32;
            out(StreamEvent::Problem(StreamProblem::Truncated { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |open: &OpenBlock| open.call.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.open.capacity() * size_of::<OpenBlock>() + self.open.iter().map(strings).sum::<usize>()
    }
}

impl AnthropicDecoder {
    fn start_block(
        &mut self,
        block: u32,
        inner: AnthropicObject<'_>,
        data: &str,
        out: &mut dyn FnMut(StreamEvent<'_>),
    ) {
        if let Some(at) = self.open.iter().position(|open| open.index == block)
            && self.open.remove(at).call.is_some()
        {
            out(StreamEvent::Problem(StreamProblem::Contradiction { block }));
        }
        if self.open.len() == MAX_OPEN_BLOCKS {
            out(StreamEvent::Problem(StreamProblem::TooManyBlocks));
            return;
        }
        let call = (inner.kind == "tool_use").then(|| (inner.id.to_string(), inner.name.to_string()));
        // A stream starts a call with empty arguments, a body contains them here.
        let filled = !matches!(inner.input, "" | "{}" | "null");
        self.open.push(OpenBlock { index: block, call, filled });
        let framing = StreamEvent::Framing { name: "content_block_start".into() };
        match &*inner.kind {
            "text" if inner.text.is_empty() => out(framing),
            "text" => out(StreamEvent::Text { block, text: inner.text }),
            "thinking" => {
                let empty = inner.text.is_empty() && inner.signature.is_empty();
                if !inner.text.is_empty() {
                    out(StreamEvent::Thinking { block, text: inner.text });
                }
                if !inner.signature.is_empty() {
                    out(StreamEvent::Opaque { block, kind: OpaqueKind::Signature, data: inner.signature });
                }
                if empty {
                    out(framing);
                }
            }
            "redacted_thinking" => {
                out(StreamEvent::Opaque { block, kind: OpaqueKind::Redacted, data: inner.data });
            }
            "tool_use" => {
                let kind = ToolKind::Function;
                out(StreamEvent::ToolCallStarted { block, id: inner.id, name: inner.name, kind });
                if filled {
                    out(StreamEvent::ToolArguments { block, piece: inner.input.into() });
                }
            }
            _ => out(StreamEvent::Other { name: inner.kind, raw: data.into() }),
        }
    }
}

fn finish(reason: &str) -> FinishReason {
    match reason {
        "end_turn" => FinishReason::EndTurn,
        "tool_use" => FinishReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::MaxTokens,
        "stop_sequence" => FinishReason::StopSequence,
        "refusal" => FinishReason::Refusal,
        "pause_turn" => FinishReason::Paused,
        _ => FinishReason::Other,
    }
}
