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
mod scan;
mod sse;

use std::borrow::Cow;

pub use collect::{Answer, Block, Collector};
pub use dialect::{Decode, StreamDialect};
pub use encode::{Ending, Script, ScriptBlock};
pub use event::{Finish, OpaqueKind, Positioned, Problem, StreamEvent, ToolKind, Usage};
pub use reply::{CANCELED, HttpReply, Refusal};
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
        Decoder { sse: SseDecoder::with_limit(limit), dialect: self.dialect().decoder(), last: 0 }
    }
}

/// Decodes a stream of one answer at any chunk boundary.
pub struct Decoder {
    sse: SseDecoder,
    dialect: Box<dyn Decode + Send>,
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
        let Self { sse, dialect, last } = self;
        sse.feed(chunk, &mut |range, item| {
            *last = range.end;
            item_came(&mut **dialect, item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
    }

    /// Says that no more bytes come, and hands out what the stream ended in the middle of.
    pub fn end(&mut self, out: &mut impl FnMut(Positioned<StreamEvent<'_>>)) {
        let Self { sse, dialect, last } = self;
        sse.end(&mut |range, item| {
            *last = range.end;
            item_came(&mut **dialect, item, &mut |event| out(Positioned { range: range.clone(), event }));
        });
        let end = *last;
        dialect.end(&mut |event| out(Positioned { range: end..end, event }));
    }

    /// How many bytes it holds on to.
    pub fn retained(&self) -> usize {
        self.sse.retained() + self.dialect.retained()
    }
}

/// Takes one item of the stream apart.
fn item_came(dialect: &mut dyn Decode, item: SseItem<'_>, out: &mut dyn FnMut(StreamEvent<'_>)) {
    let event = match item {
        SseItem::Event(event) => event,
        SseItem::Comment(_) | SseItem::Blank => return out(StreamEvent::KeepAlive),
        SseItem::TooLong { bytes } => return out(StreamEvent::Problem(Problem::TooLong { bytes })),
    };
    if event.data == b"[DONE]" {
        dialect.done(out);
        return out(StreamEvent::Framing { name: "[DONE]".into() });
    }
    // A name that is not text names nothing that is known.
    let name = std::str::from_utf8(event.name).unwrap_or_default();
    if let Ok(data) = std::str::from_utf8(event.data) {
        return data_came(dialect, name, data, out);
    }
    out(StreamEvent::Problem(Problem::NotUtf8));
    data_came(dialect, name, &String::from_utf8_lossy(event.data), out);
}

fn data_came(dialect: &mut dyn Decode, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) {
    if let Err(at) = dialect.decode(name, data, out) {
        out(StreamEvent::Problem(Problem::BrokenJson { at }));
        out(StreamEvent::Other { name: Cow::Borrowed(name), raw: Cow::Borrowed(data) });
    }
}
