//! Gemini's generateContent, streamed with `alt=sse`.
//!
//! Each event is a whole answer in small: parts of a candidate, and the usage so far. A function call comes in one part and is complete
//! with it. Blocks are not numbered: they are counted here as they begin.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Value, json};

use super::dialect::{Decode, StreamDialect};
use super::event::{Finish, OpaqueKind, Problem, StreamEvent, ToolKind, Usage};
use super::reply::{Begun, HttpReply, Refusal};
use super::scan::{Broken, Scan, elements, has_any, members};
use super::{Api, Script, encode};

/// The dialect.
pub(super) struct Gemini;

impl StreamDialect for Gemini {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn decoder(&self) -> Box<dyn Decode + Send> {
        Box::<Decoding>::default()
    }

    /// One answer, or an array of them: a stream that was asked for without `alt=sse`.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let mut decoding = Decoding::default();
        let mut answer = |body: &str| {
            let answers = has_any(body, &["candidates", "error", "promptFeedback"])?;
            if answers { decoding.decode("", body, out) } else { Ok(()) }
        };
        if !body.trim_start().starts_with('[') {
            return answer(body);
        }
        let walked = elements(body, |scan| {
            let element = scan.raw()?;
            answer(element).map_err(|at| Broken { at: at as usize })
        });
        walked.map_err(|broken| broken.at as u64)
    }

    fn call_marks(&self) -> &'static [&'static str] {
        &["functionCall", "function_call"]
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        encode::gemini::stream(script)
    }

    fn body(&self, script: &Script) -> Value {
        encode::gemini::body(script)
    }

    /// An empty line: some clients take a comment for an event and fail at it.
    fn keep_alive(&self) -> &'static [u8] {
        b"\r\n"
    }

    fn refuse(&self, refusal: &Refusal<'_>) -> HttpReply {
        HttpReply::new(refusal, &error(refusal))
    }

    fn break_off(&self, refusal: &Refusal<'_>) -> Vec<u8> {
        encode::unnamed(&error(refusal))
    }

    /// Its clients take an error in an event for an empty answer and try again, but read one that is a chunk of its own.
    fn end_for_good(&self, refusal: &Refusal<'_>, _begun: Begun) -> Vec<u8> {
        format!("{}\n\n", error(refusal)).into_bytes()
    }
}

fn error(refusal: &Refusal<'_>) -> Value {
    let mut error = json!({
        "code": refusal.status(),
        "message": refusal.message(&["/error/message", "/0/error/message"]),
        "status": refusal.kind("/error/status").unwrap_or_else(|| match (refusal, refusal.status()) {
            (Refusal::Canceled, _) => "CANCELLED",
            (_, 401) => "UNAUTHENTICATED",
            (_, 403) => "PERMISSION_DENIED",
            (_, 404) => "NOT_FOUND",
            (_, 429) => "RESOURCE_EXHAUSTED",
            (_, 503) => "UNAVAILABLE",
            (_, 500..) => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        }.to_owned()),
    });
    refusal.add_upstream(&mut error);
    json!({"error": error})
}

/// A stream being decoded.
#[derive(Debug, Default)]
struct Decoding {
    started: bool,
    ended: bool,
    calls: bool,
    next: u32,
    /// The open block of text or of thinking.
    said: Option<(Said, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Text,
    Thinking,
}

#[derive(Default)]
struct Parts<'a> {
    id: Cow<'a, str>,
    model: Cow<'a, str>,
    /// Nearly always there is one.
    first: Option<Part<'a>>,
    rest: Vec<Part<'a>>,
    finish: Option<Cow<'a, str>>,
    usage: Option<Usage>,
    blocked: Option<Cow<'a, str>>,
    error: Option<&'a str>,
    /// Whether there is a candidate beyond the first, and what those call: an agent may take any of them.
    more: bool,
    more_calls: Vec<Part<'a>>,
    known: bool,
}

#[derive(Default)]
struct Part<'a> {
    raw: &'a str,
    text: Option<Cow<'a, str>>,
    thought: bool,
    signature: Option<Cow<'a, str>>,
    call: Option<Call<'a>>,
}

struct Call<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl<'a> Parts<'a> {
    fn parse(data: &'a str) -> Result<Self, Broken> {
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

    fn candidate(&mut self, scan: &mut Scan<'a>, place: u64) -> Result<(), Broken> {
        let (mut part, mut rest, mut finish, mut number) = (None, Vec::new(), None, place);
        scan.members(&mut |key, scan| {
            match key {
                "index" => number = scan.number()?.unwrap_or(place),
                "content" => scan.members(&mut |key, scan| {
                    match key {
                        "parts" => scan.elements(&mut |scan| {
                            if part.is_none() {
                                part = Some(Part::parse(scan)?);
                            } else {
                                rest.push(Part::parse(scan)?);
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

impl<'a> Part<'a> {
    fn parse(scan: &mut Scan<'a>) -> Result<Self, Broken> {
        let mut part = Self::default();
        let mut ahead = scan.clone();
        ahead.members(&mut |key, scan| {
            match key {
                "text" => part.text = scan.string()?,
                "thought" => part.thought = scan.raw()? == "true",
                "thoughtSignature" => part.signature = scan.string()?,
                "functionCall" | "function_call" => {
                    let mut call = Call { id: Cow::default(), name: Cow::default(), arguments: "{}" };
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
        part.raw = scan.until(&ahead).trim_start();
        *scan = ahead;
        Ok(part)
    }
}

fn usage(scan: &mut Scan<'_>) -> Result<Usage, Broken> {
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

impl Decode for Decoding {
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64> {
        let broken = |broken: Broken| broken.at as u64;
        let parts = Parts::parse(data).map_err(broken)?;
        let said = Cell::new(false);
        let out = &mut |event: StreamEvent<'_>| {
            said.set(true);
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
            self.silent(out);
            self.ended = true;
            let finish = finish(&reason, self.calls);
            out(StreamEvent::Finished { reason, finish });
        }
        if parts.more || !parts.known && !said.get() {
            out(StreamEvent::Other { name: name.into(), raw: data.into() });
        } else if !said.get() {
            out(StreamEvent::Framing { name: "generateContent".into() });
        }
        Ok(())
    }

    fn done(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        self.silent(out);
        self.ended = true;
    }

    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            out(StreamEvent::Problem(Problem::Cut { open: 0 }));
        }
    }

    fn retained(&self) -> usize {
        0
    }
}

fn error_parts(raw: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), Broken> {
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

impl Decoding {
    fn begin(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn silent(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some((_, block)) = self.said.take() {
            out(StreamEvent::BlockEnded { block });
        }
    }

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

    fn part(&mut self, part: Part<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let opaque = |block, data| StreamEvent::Opaque { block, kind: OpaqueKind::Signature, data };
        if let Some(Call { id, name, arguments }) = part.call {
            self.silent(out);
            self.calls = true;
            let block = self.begin();
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
        let what = if part.thought { Said::Thinking } else { Said::Text };
        let block = self.saying(what, out);
        match what {
            _ if text.is_empty() => {}
            Said::Text => out(StreamEvent::Text { block, text }),
            Said::Thinking => out(StreamEvent::Thinking { block, text }),
        }
        part.signature.into_iter().for_each(|data| out(opaque(block, data)));
    }
}

fn finish(reason: &str, calls: bool) -> Finish {
    match reason {
        "STOP" if calls => Finish::ToolUse,
        "STOP" => Finish::EndTurn,
        "MAX_TOKENS" => Finish::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY" => {
            Finish::Refusal
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => Finish::Failed,
        _ => Finish::Other,
    }
}
