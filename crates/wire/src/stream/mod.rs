//! Model streams: incremental decoding, collecting and encoding.
//!
//! ```
//! use sayso_wire::stream::{Api, StreamEvent};
//!
//! let mut decoder = Api::AnthropicMessages.decoder();
//! let mut text = String::new();
//! let bytes = b"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
//! for chunk in bytes.chunks(7) {
//!     decoder.feed(chunk, &mut |positioned| {
//!         if let StreamEvent::Text { text: piece, .. } = positioned.event {
//!             text.push_str(&piece);
//!         }
//!     });
//! }
//! assert_eq!(text, "Hi");
//! ```
//!
//! # Design
//!
//! [`SseDecoder`] splits the bytes into server-sent events, and a dialect decodes these into [`StreamEvent`]s, which are passed
//! to the caller at once. A decoder keeps the unfinished end of the last chunk, and the number, id, name and counters of each
//! open block. It keeps no text ([`Decoder::retained`] returns the size). Text without escapes is borrowed from the chunk.
//!
//! # Adding a dialect
//!
//! Add a file beside `anthropic.rs` with a unit type that implements [`StreamDialect`], a variant of [`Api`], and a line in
//! [`Api::dialect`]. The tests in `tests/it/stream*.rs` run over [`Api::ALL`] and read `tests/corpus/streams`.
//!
//! # Limits
//!
//! Only the first choice or candidate of a response is decoded; the others yield [`StreamEvent::Other`], except for their calls.

mod anthropic;
mod blocks;
mod chat;
pub mod collect;
mod dialect;
pub mod encode;
mod event;
mod fast_path;
mod gemini;
mod openai;
mod reply;
mod responses;
pub(crate) mod scan;
mod sse;

use std::borrow::Cow;

pub use collect::{Collector, ModelResponse, ResponseBlock};
pub use dialect::{DialectDecoder, StreamDialect};
pub use encode::{ModelScript, ScriptBlock, ScriptEnding};
pub use event::{FinishReason, OpaqueKind, Positioned, StreamEvent, StreamProblem, ToolKind, Usage};
use fast_path::{EventObserver, EventTemplate};
pub use reply::{CANCELED, HttpReply, ReplyError, StreamStarted};
pub use sse::{EVENT_LIMIT, SseDecoder, SseEvent, SseItem};

/// The supported model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    AnthropicMessages,
    /// OpenAI `/v1/chat/completions`, also offered by many other servers.
    OpenAiChat,
    OpenAiResponses,
    /// Google `:generateContent` and `:streamGenerateContent?alt=sse`.
    Gemini,
}

impl Api {
    pub const ALL: [Self; 4] = [Self::AnthropicMessages, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// Identifies the API by the path of a request, without its query and without a trailing slash. Returns `None` for
    /// paths without a model endpoint.
    pub fn from_path(path: &str) -> Option<Self> {
        let ends_with_any = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        // The version is missing if the upstream's base URL contains it.
        if path == "/messages" || ends_with_any(&["/v1/messages", "/messages/count_tokens"]) {
            Some(Self::AnthropicMessages)
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAiChat)
        } else if ends_with_any(&["/responses", "/responses/compact", "/responses/input_tokens"]) {
            Some(Self::OpenAiResponses)
        } else if ends_with_any(&[":generateContent", ":streamGenerateContent", ":countTokens"]) {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Returns the stream dialect.
    pub fn dialect(self) -> &'static dyn StreamDialect {
        match self {
            Self::AnthropicMessages => &anthropic::AnthropicStream,
            Self::OpenAiChat => &chat::ChatStream,
            Self::OpenAiResponses => &responses::ResponsesStream,
            Self::Gemini => &gemini::GeminiStream,
        }
    }

    /// Returns a decoder at the start of a stream.
    pub fn decoder(self) -> Decoder {
        self.decoder_with_limit(EVENT_LIMIT)
    }

    /// Returns a decoder that skips events with more than `limit` bytes.
    pub fn decoder_with_limit(self, limit: usize) -> Decoder {
        Decoder {
            sse: SseDecoder::with_limit(limit),
            events: EventDecoder { dialect: self.dialect().decoder(), template: EventTemplate::default() },
            last: 0,
        }
    }
}

/// Decodes the stream of one response at any chunk boundary.
pub struct Decoder {
    sse: SseDecoder,
    events: EventDecoder,
    /// End of the last event.
    last: u64,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("sse", &self.sse).finish_non_exhaustive()
    }
}

impl Decoder {
    /// Decodes the next bytes and passes all completed events to `out`.
    pub fn feed(&mut self, chunk: &[u8], out: &mut impl FnMut(Positioned<StreamEvent<'_>>)) {
        let Self { sse, events, last } = self;
        sse.feed(chunk, &mut |range, item| {
            *last = range.end;
            events.decode_item(item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
    }

    /// Ends the stream and passes events for incomplete content to `out`.
    pub fn end(&mut self, out: &mut impl FnMut(Positioned<StreamEvent<'_>>)) {
        let Self { sse, events, last } = self;
        sse.end(&mut |range, item| {
            *last = range.end;
            events.decode_item(item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
        let end = *last;
        events.dialect.end(&mut |event| out(Positioned { range: end..end, event }));
    }

    /// Returns the number of retained bytes.
    pub fn retained(&self) -> usize {
        self.sse.retained() + self.events.dialect.retained() + self.events.template.retained()
    }
}

/// Decodes the items of a stream.
struct EventDecoder {
    dialect: Box<dyn DialectDecoder + Send>,
    template: EventTemplate,
}

impl EventDecoder {
    fn decode_item(&mut self, item: SseItem<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let event = match item {
            SseItem::Event(event) => event,
            SseItem::Comment(_) | SseItem::Blank => return out(StreamEvent::KeepAlive),
            SseItem::TooLong { bytes } => return out(StreamEvent::Problem(StreamProblem::TooLong { bytes })),
        };
        if let Some((event, usage)) = self.template.match_event(event.name, event.data) {
            out(event);
            return usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        }
        if event.data == b"[DONE]" {
            self.template.forget();
            self.dialect.done(out);
            return out(StreamEvent::Framing { name: "[DONE]".into() });
        }
        if let Ok(data) = std::str::from_utf8(event.data) {
            return self.decode_data(event.name, data, out);
        }
        out(StreamEvent::Problem(StreamProblem::NotUtf8));
        self.decode_data(event.name, &String::from_utf8_lossy(event.data), out);
    }

    fn decode_data(&mut self, name: &[u8], data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) {
        // An event name that is not valid UTF-8 is unknown.
        let text = std::str::from_utf8(name).unwrap_or_default();
        let mut observer = EventObserver::new(data);
        let decoded = self.dialect.decode(text, data, &mut |event| {
            observer.observe(&event);
            out(event);
        });
        if let Err(at) = decoded {
            self.template.forget();
            out(StreamEvent::Problem(StreamProblem::BrokenJson { at }));
            return out(StreamEvent::Other { name: Cow::Borrowed(text), raw: Cow::Borrowed(data) });
        }
        self.template.learn(name, data, &observer);
    }
}
