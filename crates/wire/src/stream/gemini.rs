//! Gemini `generateContent`, streamed with `alt=sse`.
//!
//! Each event is a small response: parts of a candidate, and the usage so far. A function call is contained in one
//! part. This API does not number blocks, so they are numbered in order of their start.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Value, json};

use super::blocks::{BlockCounter, TextKind};
use super::dialect::{DialectDecoder, StreamDialect};
use super::event::{FinishReason, OpaqueKind, StreamEvent, StreamProblem, ToolKind, Usage};
use super::reply::{ReplyError, StreamStarted};
use super::scan::{JsonCursor, ScanError, elements, has_any, members};
use super::{Api, ModelScript, encode};

pub(super) struct GeminiStream;

impl StreamDialect for GeminiStream {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn decoder(&self) -> Box<dyn DialectDecoder + Send> {
        Box::<GeminiDecoder>::default()
    }

    /// A body is one response, or an array of them for a stream without `alt=sse`.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let mut decoding = GeminiDecoder::default();
        let mut answer = |body: &str| {
            let answers = has_any(body, &["candidates", "error", "promptFeedback"])?;
            if answers { decoding.decode("", body, out) } else { Ok(()) }
        };
        if !body.trim_start().starts_with('[') {
            return answer(body);
        }
        let walked = elements(body, |scan| {
            let element = scan.raw()?;
            answer(element).map_err(|at| ScanError { at: at as usize })
        });
        walked.map_err(|broken| broken.at as u64)
    }

    fn tool_call_markers(&self) -> &'static [&'static str] {
        &["functionCall", "function_call"]
    }

    fn stream(&self, script: &ModelScript) -> Vec<Vec<u8>> {
        encode::gemini::stream(script)
    }

    fn body(&self, script: &ModelScript) -> Value {
        encode::gemini::body(script)
    }

    /// An empty line, because some clients parse a comment as an event and fail.
    fn keep_alive(&self) -> &'static [u8] {
        b"\r\n"
    }

    /// Clients treat an error event as an empty response and retry, but read an error in a chunk of its own.
    fn terminal_error(&self, error: &ReplyError<'_>, _started: StreamStarted) -> Vec<u8> {
        format!("{}\n\n", self.error_body(error)).into_bytes()
    }

    fn error_body(&self, error: &ReplyError<'_>) -> Value {
        let mut object = json!({
            "code": error.status(),
            "message": error.message(&["/error/message", "/0/error/message"]),
            "status": error.kind("/error/status").unwrap_or_else(|| match (error, error.status()) {
                (ReplyError::Canceled, _) => "CANCELLED",
                (_, 401) => "UNAUTHENTICATED",
                (_, 403) => "PERMISSION_DENIED",
                (_, 404) => "NOT_FOUND",
                (_, 429) => "RESOURCE_EXHAUSTED",
                (_, 503) => "UNAVAILABLE",
                (_, 500..) => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            }.to_owned()),
        });
        error.add_upstream(&mut object);
        json!({"error": object})
    }
}

#[derive(Debug, Default)]
struct GeminiDecoder {
    started: bool,
    ended: bool,
    calls: bool,
    blocks: BlockCounter,
}

#[derive(Default)]
struct GeminiChunk<'a> {
    id: Cow<'a, str>,
    model: Cow<'a, str>,
    /// First part; most events have only one.
    first: Option<GeminiPart<'a>>,
    rest: Vec<GeminiPart<'a>>,
    finish: Option<Cow<'a, str>>,
    usage: Option<Usage>,
    blocked: Option<Cow<'a, str>>,
    error: Option<&'a str>,
    /// `true` if there are more candidates. Their calls are decoded, because an agent may run them.
    more: bool,
    more_calls: Vec<GeminiPart<'a>>,
    known: bool,
}

#[derive(Default)]
struct GeminiPart<'a> {
    raw: &'a str,
    text: Option<Cow<'a, str>>,
    thought: bool,
    signature: Option<Cow<'a, str>>,
    call: Option<FunctionCall<'a>>,
}

struct FunctionCall<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl<'a> GeminiChunk<'a> {
    fn parse(data: &'a str) -> Result<Self, ScanError> {
        let mut parts = Self::default();
        members(data, |key, scan| {
            match key {
                "responseId" => parts.id = scan.string()?.unwrap_or_default(),
                "modelVersion" => parts.model = scan.string()?.unwrap_or_default(),
                "candidates" => {
                    parts.known = true;
                    let mut place = 0;
                    scan.elements(&mut |scan| {
                        place += 1;
                        parts.candidate(scan, place - 1)
                    })?;
                }
                "usageMetadata" => {
                    parts.known = true;
                    parts.usage = Some(usage(scan)?);
                }
                "promptFeedback" => scan.members(&mut |key, scan| {
                    match key {
                        "blockReason" => parts.blocked = scan.string()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                "error" => parts.error = Some(scan.raw()?).filter(|raw| raw.starts_with('{')),
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(parts)
    }

    fn candidate(&mut self, scan: &mut JsonCursor<'a>, place: u64) -> Result<(), ScanError> {
        let (mut part, mut rest, mut finish, mut number) = (None, Vec::new(), None, place);
        scan.members(&mut |key, scan| {
            match key {
                "index" => number = scan.number()?.unwrap_or(place),
                "content" => scan.members(&mut |key, scan| {
                    match key {
                        "parts" => scan.elements(&mut |scan| {
                            if part.is_none() {
                                part = Some(GeminiPart::parse(scan)?);
                            } else {
                                rest.push(GeminiPart::parse(scan)?);
                            }
                            Ok(())
                        })?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                "finishReason" => finish = scan.string()?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        if number == 0 {
            (self.first, self.rest, self.finish) = (part, rest, finish);
        } else {
            self.more = true;
            self.more_calls.extend(part.into_iter().chain(rest).filter(|part| part.call.is_some()));
        }
        Ok(())
    }
}

impl<'a> GeminiPart<'a> {
    fn parse(scan: &mut JsonCursor<'a>) -> Result<Self, ScanError> {
        let mut part = Self::default();
        let mut ahead = scan.clone();
        ahead.members(&mut |key, scan| {
            match key {
                "text" => part.text = scan.string()?,
                "thought" => part.thought = scan.raw()? == "true",
                "thoughtSignature" => part.signature = scan.string()?,
                "functionCall" | "function_call" => {
                    let mut call = FunctionCall { id: Cow::default(), name: Cow::default(), arguments: "{}" };
                    scan.members(&mut |key, scan| {
                        match key {
                            "id" => call.id = scan.string()?.unwrap_or_default(),
                            "name" => call.name = scan.string()?.unwrap_or_default(),
                            "args" => call.arguments = scan.raw()?,
                            _ => scan.skip()?,
                        }
                        Ok(())
                    })?;
                    part.call = Some(call);
                }
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        part.raw = scan.text_until(&ahead).trim_start();
        *scan = ahead;
        Ok(part)
    }
}

fn usage(scan: &mut JsonCursor<'_>) -> Result<Usage, ScanError> {
    let mut usage = Usage::default();
    scan.members(&mut |key, scan| {
        match key {
            "promptTokenCount" => usage.input = scan.number()?,
            "candidatesTokenCount" => usage.output = scan.number()?,
            "cachedContentTokenCount" => usage.cache_read = scan.number()?,
            "thoughtsTokenCount" => usage.reasoning = scan.number()?,
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok(usage)
}

impl DialectDecoder for GeminiDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let broken = |broken: ScanError| broken.at as u64;
        let parts = GeminiChunk::parse(data).map_err(broken)?;
        let has_events = Cell::new(false);
        let out = &mut |event: StreamEvent<'_>| {
            has_events.set(true);
            out(event);
        };
        if let Some(error) = parts.error {
            self.ended = true;
            let (kind, message) = error_parts(error).map_err(broken)?;
            out(StreamEvent::Error { kind, message, raw: data.into() });
        }
        if parts.known && !std::mem::replace(&mut self.started, true) {
            out(StreamEvent::MessageStarted { id: parts.id, model: parts.model });
        }
        for part in parts.first.into_iter().chain(parts.rest).chain(parts.more_calls) {
            self.part(part, out);
        }
        parts.usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        if let Some(reason) = parts.finish.or(parts.blocked) {
            self.blocks.end_text(out);
            self.ended = true;
            let finish = finish(&reason, self.calls);
            out(StreamEvent::Finished { reason, finish });
        }
        if parts.more || !parts.known && !has_events.get() {
            out(StreamEvent::Other { name: name.into(), raw: data.into() });
        } else if !has_events.get() {
            out(StreamEvent::Framing { name: "generateContent".into() });
        }
        Ok(())
    }

    fn done(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.blocks.end_text(out);
        self.ended = true;
    }

    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            out(StreamEvent::Problem(StreamProblem::Truncated { open: 0 }));
        }
    }

    fn retained(&self) -> usize {
        0
    }
}

fn error_parts(raw: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), ScanError> {
    let (mut kind, mut message) = (Cow::default(), Cow::default());
    members(raw, |key, scan| {
        match key {
            "status" => kind = scan.string()?.unwrap_or_default(),
            "message" => message = scan.string()?.unwrap_or_default(),
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok((kind, message))
}

impl GeminiDecoder {
    fn part(&mut self, part: GeminiPart<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let opaque = |block, data| StreamEvent::Opaque { block, kind: OpaqueKind::Signature, data };
        if let Some(FunctionCall { id, name, arguments }) = part.call {
            self.blocks.end_text(out);
            self.calls = true;
            let block = self.blocks.begin();
            let (kind, piece) = (ToolKind::Function, Cow::Borrowed(arguments));
            out(StreamEvent::ToolCallStarted { block, id: id.clone(), name: name.clone(), kind });
            out(StreamEvent::ToolArguments { block, piece });
            part.signature.into_iter().for_each(|data| out(opaque(block, data)));
            out(StreamEvent::ToolCallComplete { block, id, name, whole: None });
            return out(StreamEvent::BlockEnded { block });
        }
        let Some(text) = part.text else {
            return out(StreamEvent::Other { name: "part".into(), raw: part.raw.into() });
        };
        if text.is_empty() && part.signature.is_none() {
            return;
        }
        let kind = if part.thought { TextKind::Thinking } else { TextKind::Text };
        let block = self.blocks.text_block(kind, out);
        match kind {
            _ if text.is_empty() => {}
            TextKind::Text => out(StreamEvent::Text { block, text }),
            TextKind::Thinking => out(StreamEvent::Thinking { block, text }),
        }
        part.signature.into_iter().for_each(|data| out(opaque(block, data)));
    }
}

fn finish(reason: &str, calls: bool) -> FinishReason {
    match reason {
        "STOP" if calls => FinishReason::ToolUse,
        "STOP" => FinishReason::EndTurn,
        "MAX_TOKENS" => FinishReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY" => {
            FinishReason::Refusal
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::Failed,
        _ => FinishReason::Other,
    }
}
