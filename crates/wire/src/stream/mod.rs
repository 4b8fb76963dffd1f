//! Model streams: decoded as they come, collected, and written.
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
//! Bytes go through [`SseDecoder`] into events with data, through a dialect into [`StreamEvent`]s, and these are pushed to the caller at once: a
//! decoder keeps the unfinished end of the last chunk, and of an open block its number, id, name and counters, but no text that it
//! has passed on ([`Decoder::retained`] says how much). An event's text is borrowed from the chunk where it has no escapes.
//!
//! # Adding a dialect
//!
//! Add a file beside `anthropic.rs` with a unit type that implements [`StreamDialect`], a variant of [`Api`], and its line in
//! [`Api::dialect`]. The tests of `tests/it/stream*.rs` run over [`Api::ALL`]; give them a folder of streams in `tests/corpus/streams`.
//!
//! # Limits
//!
//! Only the first choice or candidate of an answer is taken apart; what belongs to another is [`StreamEvent::Other`].

mod anthropic;
mod chat;
pub mod collect;
mod dialect;
pub mod encode;
mod event;
mod gemini;
mod reply;
mod responses;
pub(crate) mod scan;
mod shape;
mod sse;

use std::borrow::Cow;

pub use collect::{Answer, Block, Collector};
pub use dialect::{Decode, StreamDialect};
pub use encode::{Ending, Script, ScriptBlock};
pub use event::{Finish, OpaqueKind, Positioned, Problem, StreamEvent, ToolKind, Usage};
pub use reply::{Begun, CANCELED, HttpReply, Refusal};
use shape::{Shape, Watch};
pub use sse::{EVENT_LIMIT, SseDecoder, SseEvent, SseItem};

/// The model APIs that are spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic's `/v1/messages`.
    AnthropicMessages,
    /// OpenAI's `/v1/chat/completions`, which many others speak, too.
    OpenAiChat,
    /// OpenAI's `/v1/responses`.
    OpenAiResponses,
    /// Google's `:generateContent` and `:streamGenerateContent?alt=sse`.
    Gemini,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::AnthropicMessages, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// How this API streams.
    pub fn dialect(self) -> &'static dyn StreamDialect {
        match self {
            Self::AnthropicMessages => &anthropic::Anthropic,
            Self::OpenAiChat => &chat::Chat,
            Self::OpenAiResponses => &responses::Responses,
            Self::Gemini => &gemini::Gemini,
        }
    }

    /// A decoder at the start of a stream.
    pub fn decoder(self) -> Decoder {
        self.decoder_with_limit(EVENT_LIMIT)
    }

    /// A decoder that skips events with more than `limit` bytes.
    pub fn decoder_with_limit(self, limit: usize) -> Decoder {
        Decoder {
            sse: SseDecoder::with_limit(limit),
            pieces: Pieces { dialect: self.dialect().decoder(), shape: Shape::default() },
            last: 0,
        }
    }
}

/// Decodes a stream of one answer at any chunk boundary.
pub struct Decoder {
    sse: SseDecoder,
    pieces: Pieces,
    /// Where the last event ended.
    last: u64,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("sse", &self.sse).finish_non_exhaustive()
    }
}

impl Decoder {
    /// Takes the next bytes and hands out all that became known.
    pub fn feed(&mut self, chunk: &[u8], out: &mut impl FnMut(Positioned<StreamEvent<'_>>)) {
        let Self { sse, pieces, last } = self;
        sse.feed(chunk, &mut |range, item| {
            *last = range.end;
            pieces.item_came(item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
    }

    /// Says that no more bytes come, and hands out what the stream ended in the middle of.
    pub fn end(&mut self, out: &mut impl FnMut(Positioned<StreamEvent<'_>>)) {
        let Self { sse, pieces, last } = self;
        sse.end(&mut |range, item| {
            *last = range.end;
            pieces.item_came(item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
        let end = *last;
        pieces.dialect.end(&mut |event| out(Positioned { range: end..end, event }));
    }

    /// How many bytes it holds on to.
    pub fn retained(&self) -> usize {
        self.sse.retained() + self.pieces.dialect.retained() + self.pieces.shape.retained()
    }
}

/// What takes the items of a stream apart.
struct Pieces {
    dialect: Box<dyn Decode + Send>,
    shape: Shape,
}

impl Pieces {
    fn item_came(&mut self, item: SseItem<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
        let event = match item {
            SseItem::Event(event) => event,
            SseItem::Comment(_) | SseItem::Blank => return out(StreamEvent::KeepAlive),
            SseItem::TooLong { bytes } => return out(StreamEvent::Problem(Problem::TooLong { bytes })),
        };
        if let Some((event, usage)) = self.shape.repeat(event.name, event.data) {
            out(event);
            return usage.into_iter().for_each(|usage| out(StreamEvent::Usage(usage)));
        }
        if event.data == b"[DONE]" {
            self.shape.forget();
            self.dialect.done(out);
            return out(StreamEvent::Framing { name: "[DONE]".into() });
        }
        if let Ok(data) = std::str::from_utf8(event.data) {
            return self.data_came(event.name, data, out);
        }
        out(StreamEvent::Problem(Problem::NotUtf8));
        self.data_came(event.name, &String::from_utf8_lossy(event.data), out);
    }

    fn data_came(&mut self, name: &[u8], data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) {
        // A name that is not text names nothing that is known.
        let text = std::str::from_utf8(name).unwrap_or_default();
        let mut watch = Watch::new(data);
        let decoded = self.dialect.decode(text, data, &mut |event| {
            watch.see(&event);
            out(event);
        });
        if let Err(at) = decoded {
            self.shape.forget();
            out(StreamEvent::Problem(Problem::BrokenJson { at }));
            return out(StreamEvent::Other { name: Cow::Borrowed(text), raw: Cow::Borrowed(data) });
        }
        self.shape.learn(name, data, &watch);
    }
}
