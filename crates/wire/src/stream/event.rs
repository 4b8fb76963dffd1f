//! Stream events in a vocabulary shared by all dialects.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

/// An event with its byte range in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Positioned<T> {
    /// Range from the first byte of the server-sent event to the first byte after its empty line. All events from one
    /// server-sent event share the range, which does not depend on chunk boundaries. A proxy that holds back the bytes
    /// from the start of the range has forwarded none of the event.
    pub range: Range<u64>,
    pub event: T,
}

/// An event of a response. Every server-sent event yields at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    MessageStarted {
        /// Id; empty if the API gives none.
        id: Cow<'a, str>,
        /// Model; empty if the API does not name it.
        model: Cow<'a, str>,
    },
    /// A piece of text or of a refusal.
    Text {
        block: u32,
        text: Cow<'a, str>,
    },
    /// A piece of reasoning or of its summary.
    Thinking {
        block: u32,
        text: Cow<'a, str>,
    },
    /// Data that only the API can interpret, to be sent back unchanged.
    Opaque {
        /// Block that it belongs to.
        block: u32,
        kind: OpaqueKind,
        data: Cow<'a, str>,
    },
    /// A tool call starts.
    ToolCallStarted {
        block: u32,
        /// Id, which the result refers to; empty if the API gives none.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        kind: ToolKind,
    },
    /// A piece of a call's arguments.
    ToolArguments {
        block: u32,
        piece: Cow<'a, str>,
    },
    /// A tool call is complete, and no arguments follow.
    ToolCallComplete {
        block: u32,
        /// Id, as in the start event.
        id: Cow<'a, str>,
        /// Name of the tool, as in the start event.
        name: Cow<'a, str>,
        /// All arguments, if the API repeats them. Clients read these instead of the pieces.
        whole: Option<Cow<'a, str>>,
    },
    BlockEnded {
        block: u32,
    },
    /// Token usage so far. A present count replaces an earlier one.
    Usage(Usage),
    Finished {
        /// Finish reason in the API's words.
        reason: Cow<'a, str>,
        finish: FinishReason,
    },
    /// The API reports an error in the stream.
    Error {
        /// Type or code in the API's words.
        kind: Cow<'a, str>,
        message: Cow<'a, str>,
        /// Whole error as JSON.
        raw: Cow<'a, str>,
    },
    KeepAlive,
    /// An event that only delimits or repeats others.
    Framing {
        /// Type of the event.
        name: Cow<'a, str>,
    },
    /// An event of an unknown type.
    Other {
        /// Type of the event; empty if it has none.
        name: Cow<'a, str>,
        /// Whole event as JSON.
        raw: Cow<'a, str>,
    },
    /// The stream has a problem; decoding continues.
    Problem(StreamProblem),
}

/// The kind of data that only the API can interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpaqueKind {
    /// A signature over the block's content.
    Signature,
    /// Encrypted content beside a readable part.
    Encrypted,
    /// Withheld content in encrypted form.
    Redacted,
}

/// The kind of a tool's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Function,
    Custom,
}

/// A normalized finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The response is complete.
    EndTurn,
    /// The model requests tool calls.
    ToolUse,
    /// A token limit was reached.
    MaxTokens,
    /// A stop sequence was produced.
    StopSequence,
    /// The model or a filter refused.
    Refusal,
    /// The API paused a long turn.
    Paused,
    /// The response was cancelled.
    Cancelled,
    Failed,
    /// The reason is unknown to this version.
    Other,
}

/// Token counts as reported by the API. `input` may or may not include cached tokens, depending on the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// Input tokens read from a prompt cache.
    pub cache_read: Option<u64>,
    /// Input tokens written to a prompt cache.
    pub cache_written: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Replaces the counts that are present in `later`.
    pub fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cache_read = later.cache_read.or(self.cache_read);
        self.cache_written = later.cache_written.or(self.cache_written);
        self.reasoning = later.reasoning.or(self.reasoning);
    }
}

/// A problem of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamProblem {
    /// The data of an event is not valid JSON.
    #[error("the data of an event is broken JSON at byte {at}")]
    BrokenJson {
        /// Offset of the error within the data.
        at: u64,
    },
    /// The data of an event is not valid UTF-8; invalid bytes were replaced.
    #[error("the data of an event is not UTF-8")]
    NotUtf8,
    /// An event exceeded the size limit and was skipped.
    #[error("an event of {bytes} bytes was skipped: it is longer than the limit")]
    TooLong { bytes: u64 },
    /// Arguments belong to a call that was complete or never started.
    #[error("arguments received for the tool call of block {block}, which is not open")]
    LateArguments { block: u32 },
    /// A complete call was repeated with other arguments.
    #[error("the tool call of block {block} was repeated with different arguments")]
    Contradiction { block: u32 },
    /// The stream ended before the response was complete.
    #[error("the stream ended before the response was complete, with {open} tool calls open")]
    Truncated {
        /// Number of incomplete tool calls.
        open: u32,
    },
    /// Too many blocks; some are not tracked.
    #[error("the response has too many blocks")]
    TooManyBlocks,
}
