//! A whole answer, out of a stream's events or out of a body.

use std::borrow::Cow;

use super::event::{Finish, OpaqueKind, Problem, StreamEvent, ToolKind, Usage};
use super::{Api, Decoder};

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Answer {
    /// Its id.
    pub id: String,
    /// The model that gave it.
    pub model: String,
    /// What it says, in the order in which it began.
    pub blocks: Vec<Block>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended, as the API says it and in one vocabulary; `None` if it did not.
    pub finish: Option<(String, Finish)>,
    /// The error that the API reported instead, by kind and message.
    pub error: Option<(String, String)>,
    /// What was wrong with the stream.
    pub problems: Vec<Problem>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Block {
    /// What it says.
    pub content: Content,
    /// What only the API can read, and has to get back.
    pub opaque: Vec<(OpaqueKind, String)>,
}

/// What a block says.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// A tool call.
    ToolCall {
        /// The id that the result will name.
        id: String,
        /// The tool.
        name: String,
        /// What its arguments are.
        kind: ToolKind,
        /// The arguments, as far as they came.
        arguments: String,
        /// How far it came.
        state: CallState,
    },
}

/// Whether all of a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// More may come.
    Open,
    /// Nothing comes later.
    Complete,
}

/// Puts an answer together.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    answer: Answer,
    /// The number of each block.
    numbers: Vec<u32>,
}

impl Collector {
    /// Takes the next event.
    pub fn take(&mut self, event: StreamEvent<'_>) {
        match event {
            StreamEvent::MessageStarted { id, model } => {
                (self.answer.id, self.answer.model) = (id.into_owned(), model.into_owned());
            }
            StreamEvent::Text { block, text } => {
                match &mut self.block(block, || Content::Text(String::new())).content {
                    Content::Text(so_far) | Content::Thinking(so_far) => so_far.push_str(&text),
                    Content::ToolCall { .. } => {}
                }
            }
            StreamEvent::Thinking { block, text } => {
                match &mut self.block(block, || Content::Thinking(String::new())).content {
                    Content::Text(so_far) | Content::Thinking(so_far) => so_far.push_str(&text),
                    Content::ToolCall { .. } => {}
                }
            }
            StreamEvent::Opaque { block, kind, data } => {
                let opaque = &mut self.block(block, || Content::Thinking(String::new())).opaque;
                match opaque.last_mut() {
                    // A signature comes in pieces, too.
                    Some((last, so_far)) if *last == kind => so_far.push_str(&data),
                    _ => opaque.push((kind, data.into_owned())),
                }
            }
            StreamEvent::ToolCallStarted { block, id, name, kind } => {
                self.block(block, || call(id, name, kind, CallState::Open));
            }
            StreamEvent::ToolArguments { block, piece } => {
                let start = || call(Cow::default(), Cow::default(), ToolKind::Function, CallState::Open);
                if let Content::ToolCall { arguments, .. } = &mut self.block(block, start).content {
                    arguments.push_str(&piece);
                }
            }
            StreamEvent::ToolCallComplete { block, id, name, whole } => {
                self.complete(block, id, name, whole);
            }
            StreamEvent::Usage(usage) => self.answer.usage.update(usage),
            StreamEvent::Finished { reason, finish } => self.answer.finish = Some((reason.into_owned(), finish)),
            StreamEvent::Error { kind, message, .. } => {
                self.answer.error.get_or_insert((kind.into_owned(), message.into_owned()));
            }
            StreamEvent::Problem(problem) => self.answer.problems.push(problem),
            StreamEvent::BlockEnded { .. }
            | StreamEvent::KeepAlive
            | StreamEvent::Framing { .. }
            | StreamEvent::Other { .. } => {}
        }
    }

    /// The answer as it is now.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The answer.
    pub fn into_answer(self) -> Answer {
        self.answer
    }

    fn block(&mut self, number: u32, start: impl FnOnce() -> Content) -> &mut Block {
        // From the end, since nearly always the last one is meant.
        let at = self.numbers.iter().rposition(|known| *known == number).unwrap_or_else(|| {
            self.numbers.push(number);
            self.answer.blocks.push(Block { content: start(), opaque: Vec::new() });
            self.numbers.len() - 1
        });
        &mut self.answer.blocks[at]
    }

    fn complete(&mut self, block: u32, said_id: Cow<'_, str>, said_name: Cow<'_, str>, whole: Option<Cow<'_, str>>) {
        let start = || call(Cow::default(), Cow::default(), ToolKind::Function, CallState::Open);
        let mut differs = false;
        if let Content::ToolCall { id, name, arguments, state, .. } = &mut self.block(block, start).content {
            (*id, *name, *state) = (said_id.into_owned(), said_name.into_owned(), CallState::Complete);
            // Clients read what is said as a whole.
            if let Some(whole) = whole.filter(|whole| *whole != **arguments) {
                differs = true;
                *arguments = whole.into_owned();
            }
        }
        let problem = Problem::Contradiction { block };
        if differs && self.answer.problems.last() != Some(&problem) {
            self.answer.problems.push(problem);
        }
    }
}

fn call(id: Cow<'_, str>, name: Cow<'_, str>, kind: ToolKind, state: CallState) -> Content {
    Content::ToolCall { id: id.into_owned(), name: name.into_owned(), kind, arguments: String::new(), state }
}

/// Collects a whole stream.
pub fn from_stream(api: Api, bytes: &[u8]) -> Answer {
    let mut collector = Collector::default();
    let mut decoder: Decoder = api.decoder();
    decoder.feed(bytes, &mut |positioned| collector.take(positioned.event));
    decoder.end(&mut |positioned| collector.take(positioned.event));
    collector.into_answer()
}

/// Reads the body of an answer that was not streamed.
pub fn from_body(api: Api, bytes: &[u8]) -> Result<Answer, BodyError> {
    // What is wrong, and where, is found out by those who say it best.
    let broken = || match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Err(source) => BodyError::NotJson { source },
        Ok(_) => BodyError::NotAnAnswer { api },
    };
    let body = std::str::from_utf8(bytes).map_err(|_| broken())?;
    let mut collector = Collector::default();
    let mut said = false;
    let walked = api.dialect().body_events(body, &mut |event| {
        said = true;
        collector.take(event);
    });
    walked.map_err(|_| broken())?;
    if said { Ok(collector.into_answer()) } else { Err(BodyError::NotAnAnswer { api }) }
}

/// Whether the body of an answer that was not streamed may have a call of a tool in it: if not, it need not be read to be passed on.
pub fn may_call(api: Api, bytes: &[u8]) -> bool {
    // A mark could be written with escapes, which nobody does.
    let escaped = memchr::memmem::find(bytes, br"\u00").is_some();
    escaped || api.dialect().call_marks().iter().any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
}

/// Why a body could not be read as an answer.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is not JSON.
    #[error("the body is not JSON: {source}")]
    NotJson {
        /// Where it stops being it.
        source: serde_json::Error,
    },
    /// It is JSON, but neither an answer nor an error of this API.
    #[error("the body is neither an answer nor an error of {api:?}")]
    NotAnAnswer {
        /// Which API.
        api: Api,
    },
}

impl BodyError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => {
                "a stream is read with `from_stream`; a compressed body has to be decompressed first"
            }
            Self::NotAnAnswer { .. } => "see which API the request went to",
        }
    }
}
