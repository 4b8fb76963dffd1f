//! What a model's stream says, in one vocabulary for all dialects.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

/// Something with the bytes of the stream that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Positioned<T> {
    /// From the first byte of the server-sent event that carried it to the first byte after that event's empty line. All that one
    /// event says has the same range, and ranges do not depend on how the stream was cut into chunks. Who holds back the bytes from
    /// the start of a range on has passed on nothing of what it says.
    pub range: Range<u64>,
    /// What it is.
    pub event: T,
}

/// One thing that a stream says. A server-sent event says at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// The answer begins.
    MessageStarted {
        /// Its id; empty if the API gives none.
        id: Cow<'a, str>,
        /// The model that answers; empty if the API does not say.
        model: Cow<'a, str>,
    },
    /// A piece of text, or of a refusal.
    Text {
        /// Which block.
        block: u32,
        /// The piece.
        text: Cow<'a, str>,
    },
    /// A piece of what the model thinks, or of a summary of it.
    Thinking {
        /// Which block.
        block: u32,
        /// The piece.
        text: Cow<'a, str>,
    },
    /// Something that only the API can read and that has to go back to it unchanged.
    Opaque {
        /// Which block it belongs to.
        block: u32,
        /// What it is.
        kind: OpaqueKind,
        /// It, as it came.
        data: Cow<'a, str>,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// Which block.
        block: u32,
        /// The id that the result will name; empty if the API gives none.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// What its arguments are.
        kind: ToolKind,
    },
    /// A piece of a tool call's arguments.
    ToolArguments {
        /// Which block.
        block: u32,
        /// The piece.
        piece: Cow<'a, str>,
    },
    /// A tool call is complete: nothing of it comes later.
    ToolCallComplete {
        /// Which block.
        block: u32,
        /// The id, once more.
        id: Cow<'a, str>,
        /// The tool, once more.
        name: Cow<'a, str>,
        /// All the arguments, where the API says them again. Then these count, and not the pieces: clients read them here.
        whole: Option<Cow<'a, str>>,
    },
    /// A block is over.
    BlockEnded {
        /// Which block.
        block: u32,
    },
    /// What the answer costs so far. Later numbers replace earlier ones; a number that is not there does not.
    Usage(Usage),
    /// The model is done.
    Finished {
        /// Why, as the API says it.
        reason: Cow<'a, str>,
        /// Why, in one vocabulary.
        finish: Finish,
    },
    /// The API reports an error in the stream.
    Error {
        /// Its type or code, as the API says it.
        kind: Cow<'a, str>,
        /// What it says.
        message: Cow<'a, str>,
        /// All of it, as JSON.
        raw: Cow<'a, str>,
    },
    /// Only a sign of life.
    KeepAlive,
    /// An event that frames or repeats what others carry.
    Framing {
        /// Its type.
        name: Cow<'a, str>,
    },
    /// Something that this version does not know.
    Other {
        /// Its type, where it has one.
        name: Cow<'a, str>,
        /// All of it.
        raw: Cow<'a, str>,
    },
    /// Something is wrong with the stream; decoding goes on.
    Problem(Problem),
}

/// Something that only the API can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpaqueKind {
    /// A signature over the block's content.
    Signature,
    /// The block's content, encrypted, beside what can be read of it.
    Encrypted,
    /// The block's content, withheld.
    Redacted,
}

/// What a tool's arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A JSON object.
    Function,
    /// Any text.
    Custom,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It had said everything.
    EndTurn,
    /// It wants tools to be run.
    ToolUse,
    /// A limit of tokens was reached.
    MaxTokens,
    /// A stop sequence came up.
    StopSequence,
    /// It, or a filter, refused.
    Refusal,
    /// The API paused a long turn.
    Paused,
    /// The answer was cancelled.
    Cancelled,
    /// The API failed.
    Failed,
    /// Something that this version does not know.
    Other,
}

/// Token counts as the API counts them: whether `input` includes what came from a cache is the API's own matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
    /// Tokens of the request that came from a cache.
    pub cache_read: Option<u64>,
    /// Tokens of the request that went into a cache.
    pub cache_written: Option<u64>,
    /// Tokens of the answer that were thought.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Takes over the numbers that `later` has.
    pub fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cache_read = later.cache_read.or(self.cache_read);
        self.cache_written = later.cache_written.or(self.cache_written);
        self.reasoning = later.reasoning.or(self.reasoning);
    }
}

/// What can be wrong with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// An event's data is not JSON.
    #[error("the data of an event is broken JSON at byte {at}")]
    BrokenJson {
        /// Where in the data.
        at: u64,
    },
    /// An event's data is not UTF-8; it was read with replacement characters.
    #[error("the data of an event is not UTF-8")]
    NotUtf8,
    /// An event was too long and was skipped.
    #[error("an event of {bytes} bytes was skipped: it is longer than the limit")]
    TooLong {
        /// How long.
        bytes: u64,
    },
    /// Arguments came for a call that was complete already, or for one that never started.
    #[error("arguments came for a tool call of block {block} that was not open")]
    LateArguments {
        /// Which block.
        block: u32,
    },
    /// A complete call was said again with other arguments.
    #[error("the tool call of block {block} was said twice, with different arguments")]
    Contradiction {
        /// Which block.
        block: u32,
    },
    /// The stream ended before the answer did.
    #[error("the stream ended before the answer did, with {open} tool calls open")]
    Cut {
        /// How many tool calls were not complete.
        open: u32,
    },
    /// More blocks than an answer has, so that some are not followed.
    #[error("the answer has more blocks than are followed")]
    TooManyBlocks,
}
