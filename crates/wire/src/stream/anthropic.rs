//! Anthropic Messages.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::dialect::{Decode, StreamDialect};
use super::event::{Finish, OpaqueKind, Problem, StreamEvent, ToolKind, Usage};
use super::reply::{Begun, HttpReply, Refusal};
use super::scan::{Broken, members};
use super::{Api, Script, encode};

/// The dialect.
pub(super) struct Anthropic;

impl StreamDialect for Anthropic {
    fn api(&self) -> Api {
        Api::AnthropicMessages
    }

    fn decoder(&self) -> Box<dyn Decode + Send> {
        Box::<Decoding>::default()
    }

    /// An answer is the `message` of a stream with its blocks filled in, so it is read as the stream that would fill it.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let (mut kind, mut blocks, mut stop_reason) = (None, Vec::new(), "null");
        let walked = members(body, |name, value| {
            match name {
                "type" => kind = value.string()?,
                "content" => blocks = value.raws()?,
                "stop_reason" => stop_reason = value.raw()?,
                _ => value.skip()?,
            }
            Ok(())
        });
        walked.map_err(|broken| broken.at as u64)?;
        let mut decoding = Decoding::default();
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

    fn call_marks(&self) -> &'static [&'static str] {
        &["tool_use"]
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        encode::anthropic::stream(script)
    }

    fn body(&self, script: &Script) -> Value {
        encode::anthropic::body(script)
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn refuse(&self, refusal: &Refusal<'_>) -> HttpReply {
        HttpReply::new(refusal, &error(refusal))
    }

    fn break_off(&self, refusal: &Refusal<'_>) -> Vec<u8> {
        encode::named("error", &error(refusal))
    }

    /// Claude Code asks again without a stream unless one block was complete before the error.
    fn end_for_good(&self, refusal: &Refusal<'_>, begun: Begun) -> Vec<u8> {
        if begun == Begun::Yes {
            return self.break_off(refusal);
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
            self.break_off(refusal),
        ]
        .concat()
    }
}

fn error(refusal: &Refusal<'_>) -> Value {
    let mut error = json!({
        "type": refusal.kind("/error/type").unwrap_or_else(|| match refusal.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }.to_owned()),
        "message": refusal.message(&["/error/message"]),
    });
    refusal.add_upstream(&mut error);
    json!({"type": "error", "error": error})
}

/// A stream being decoded.
#[derive(Debug, Default)]
struct Decoding {
    open: Vec<Open>,
    started: bool,
    ended: bool,
}

/// More open blocks than this are not followed.
const OPEN_LIMIT: usize = 1 << 10;

#[derive(Debug)]
struct Open {
    index: u32,
    call: Option<(String, String)>,
    /// Whether arguments came.
    filled: bool,
}

/// What an event has, of what matters.
#[derive(Default)]
struct Parts<'a> {
    kind: Cow<'a, str>,
    index: u32,
    delta: Cow<'a, str>,
    piece: Option<Cow<'a, str>>,
    stop_reason: Option<Cow<'a, str>>,
    /// The block of `content_block_start`, the message of `message_start`, or the error, as written.
    inner: &'a str,
    usage: Option<Usage>,
}

impl<'a> Parts<'a> {
    fn parse(name: &'a str, data: &'a str) -> Result<Self, Broken> {
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

fn usage(raw: &str) -> Result<Usage, Broken> {
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

/// The members of a block, a message or an error that matter.
#[derive(Default)]
struct Inner<'a> {
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

impl<'a> Inner<'a> {
    fn parse(raw: &'a str) -> Result<Self, Broken> {
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

impl Decode for Decoding {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let parts = Parts::parse(name, data).map_err(|broken| broken.at as u64)?;
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
                    Some(Open { call: Some(_), filled, .. }) => {
                        *filled |= !piece.is_empty();
                        out(StreamEvent::ToolArguments { block, piece });
                    }
                    // The arguments of something that the API runs by itself.
                    Some(_) => out(other(parts.delta)),
                    None => {
                        out(StreamEvent::Problem(Problem::LateArguments { block }));
                        out(StreamEvent::ToolArguments { block, piece });
                    }
                },
                _ => out(other(parts.delta)),
            },
            "content_block_start" => {
                let inner = Inner::parse(parts.inner).map_err(|broken| broken.at as u64)?;
                self.block_started(block, inner, data, out);
            }
            "content_block_stop" => {
                if let Some(at) = self.open.iter().rposition(|open| open.index == block)
                    && let Open { call: Some((id, name)), filled, .. } = self.open.remove(at)
                {
                    if !filled {
                        // It began with an empty object, and that is what it has.
                        out(StreamEvent::ToolArguments { block, piece: "{}".into() });
                    }
                    let (id, name) = (id.into(), name.into());
                    out(StreamEvent::ToolCallComplete { block, id, name, whole: None });
                }
                out(StreamEvent::BlockEnded { block });
            }
            "message_start" => {
                let inner = Inner::parse(parts.inner).map_err(|broken| broken.at as u64)?;
                self.started = true;
                out(StreamEvent::MessageStarted { id: inner.id, model: inner.model });
                inner.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
            }
            "message_delta" => {
                let said = parts.usage.is_some() || parts.stop_reason.is_some();
                parts.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
                if let Some(reason) = parts.stop_reason {
                    self.ended = true;
                    let finish = finish(&reason);
                    out(StreamEvent::Finished { reason, finish });
                }
                if !said {
                    out(StreamEvent::Framing { name: parts.kind });
                }
            }
            "message_stop" => out(StreamEvent::Framing { name: parts.kind }),
            "ping" => out(StreamEvent::KeepAlive),
            "error" => {
                let inner = Inner::parse(parts.inner).map_err(|broken| broken.at as u64)?;
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
            out(StreamEvent::Problem(Problem::Cut { open }));
        }
    }

    fn retained(&self) -> usize {
        let strings = |open: &Open| open.call.as_ref().map_or(0, |(id, name)| id.capacity() + name.capacity());
        self.open.capacity() * size_of::<Open>() + self.open.iter().map(strings).sum::<usize>()
    }
}

impl Decoding {
    fn block_started(&mut self, block: u32, inner: Inner<'_>, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some(at) = self.open.iter().position(|open| open.index == block)
            && self.open.remove(at).call.is_some()
        {
            out(StreamEvent::Problem(Problem::Contradiction { block }));
        }
        if self.open.len() == OPEN_LIMIT {
            out(StreamEvent::Problem(Problem::TooManyBlocks));
            return;
        }
        let call = (inner.kind == "tool_use").then(|| (inner.id.to_string(), inner.name.to_string()));
        // A stream starts with none; a body has them here.
        let filled = !matches!(inner.input, "" | "{}" | "null");
        self.open.push(Open { index: block, call, filled });
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

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" => Finish::EndTurn,
        "tool_use" => Finish::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => Finish::MaxTokens,
        "stop_sequence" => Finish::StopSequence,
        "refusal" => Finish::Refusal,
        "pause_turn" => Finish::Paused,
        _ => Finish::Other,
    }
}
