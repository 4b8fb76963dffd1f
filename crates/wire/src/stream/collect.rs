//! Collects a whole response from a stream or a body.

use std::borrow::Cow;

use super::event::{FinishReason, OpaqueKind, StreamEvent, StreamProblem, ToolKind, Usage};
use super::{Api, Decoder};

/// The response of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelResponse {
    pub id: String,
    pub model: String,
    /// Content blocks in order of their start.
    pub blocks: Vec<ResponseBlock>,
    pub usage: Usage,
    /// Finish reason in the API's words and normalized; `None` if the response is incomplete.
    pub finish: Option<(String, FinishReason)>,
    /// Error reported by the API, as kind and message.
    pub error: Option<(String, String)>,
    /// Problems of the stream.
    pub problems: Vec<StreamProblem>,
}

/// A block of a response.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ResponseBlock {
    pub content: BlockContent,
    /// Data that only the API can interpret, to be sent back unchanged.
    pub opaque: Vec<(OpaqueKind, String)>,
}

/// The content of a block.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockContent {
    Text(String),
    /// Reasoning of the model.
    Thinking(String),
    ToolCall {
        /// Id, which the result refers to.
        id: String,
        /// Name of the tool.
        name: String,
        kind: ToolKind,
        /// Arguments received so far.
        arguments: String,
        state: CallState,
    },
}

/// The completeness of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// More arguments may follow.
    Open,
    Complete,
}

/// Collects the events of a response.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    response: ModelResponse,
    /// Number of each block in the stream.
    numbers: Vec<u32>,
}

impl Collector {
    pub fn push(&mut self, event: StreamEvent<'_>) {
        match event {
            StreamEvent::MessageStarted { id, model } => {
                (self.response.id, self.response.model) = (id.into_owned(), model.into_owned());
            }
            StreamEvent::Text { block, text } => {
                match &mut self.block(block, || BlockContent::Text(String::new())).content {
                    BlockContent::Text(so_far) | BlockContent::Thinking(so_far) => so_far.push_str(&text),
                    BlockContent::ToolCall { .. } => {}
                }
            }
            StreamEvent::Thinking { block, text } => {
                match &mut self.block(block, || BlockContent::Thinking(String::new())).content {
                    BlockContent::Text(so_far) | BlockContent::Thinking(so_far) => so_far.push_str(&text),
                    BlockContent::ToolCall { .. } => {}
                }
            }
            StreamEvent::Opaque { block, kind, data } => {
                let opaque = &mut self.block(block, || BlockContent::Thinking(String::new())).opaque;
                match opaque.last_mut() {
                    // A signature may arrive in pieces.
                    Some((last, so_far)) if *last == kind => so_far.push_str(&data),
                    _ => opaque.push((kind, data.into_owned())),
                }
            }
            StreamEvent::ToolCallStarted { block, id, name, kind } => {
                self.block(block, || call(id, name, kind, CallState::Open));
            }
            StreamEvent::ToolArguments { block, piece } => {
                let start = || call(Cow::default(), Cow::default(), ToolKind::Function, CallState::Open);
                if let BlockContent::ToolCall { arguments, .. } = &mut self.block(block, start).content {
                    arguments.push_str(&piece);
                }
            }
            StreamEvent::ToolCallComplete { block, id, name, whole } => {
                self.complete(block, id, name, whole);
            }
            StreamEvent::Usage(usage) => self.response.usage.update(usage),
            StreamEvent::Finished { reason, finish } => self.response.finish = Some((reason.into_owned(), finish)),
            StreamEvent::Error { kind, message, .. } => {
                self.response.error.get_or_insert((kind.into_owned(), message.into_owned()));
            }
            StreamEvent::Problem(problem) => self.response.problems.push(problem),
            StreamEvent::BlockEnded { .. }
            | StreamEvent::KeepAlive
            | StreamEvent::Framing { .. }
            | StreamEvent::Other { .. } => {}
        }
    }

    /// Returns the response collected so far.
    pub fn response(&self) -> &ModelResponse {
        &self.response
    }

    /// Returns the collected response.
    pub fn into_response(self) -> ModelResponse {
        self.response
    }

    fn block(&mut self, number: u32, start: impl FnOnce() -> BlockContent) -> &mut ResponseBlock {
        // Search from the end, because most events concern the last block.
        let at = self.numbers.iter().rposition(|known| *known == number).unwrap_or_else(|| {
            self.numbers.push(number);
            self.response.blocks.push(ResponseBlock { content: start(), opaque: Vec::new() });
            self.numbers.len() - 1
        });
        &mut self.response.blocks[at]
    }

    fn complete(&mut self, block: u32, said_id: Cow<'_, str>, said_name: Cow<'_, str>, whole: Option<Cow<'_, str>>) {
        let start = || call(Cow::default(), Cow::default(), ToolKind::Function, CallState::Open);
        let mut differs = false;
        if let BlockContent::ToolCall { id, name, arguments, state, .. } = &mut self.block(block, start).content {
            (*id, *name, *state) = (said_id.into_owned(), said_name.into_owned(), CallState::Complete);
            // Clients read the repeated arguments of a complete call, not the pieces.
            if let Some(whole) = whole.filter(|whole| *whole != **arguments) {
                differs = true;
                *arguments = whole.into_owned();
            }
        }
        let problem = StreamProblem::Contradiction { block };
        if differs && self.response.problems.last() != Some(&problem) {
            self.response.problems.push(problem);
        }
    }
}

fn call(id: Cow<'_, str>, name: Cow<'_, str>, kind: ToolKind, state: CallState) -> BlockContent {
    BlockContent::ToolCall { id: id.into_owned(), name: name.into_owned(), kind, arguments: String::new(), state }
}

/// Collects the response of a whole stream.
pub fn from_stream(api: Api, bytes: &[u8]) -> ModelResponse {
    let mut collector = Collector::default();
    let mut decoder: Decoder = api.decoder();
    decoder.feed(bytes, &mut |positioned| collector.push(positioned.event));
    decoder.end(&mut |positioned| collector.push(positioned.event));
    collector.into_response()
}

/// Reads the body of a response that was not streamed.
pub fn from_body(api: Api, bytes: &[u8]) -> Result<ModelResponse, ResponseBodyError> {
    // Let `serde_json` locate and describe the syntax error.
    let broken = || match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Err(source) => ResponseBodyError::NotJson { source },
        Ok(_) => ResponseBodyError::NotAResponse { api },
    };
    let body = std::str::from_utf8(bytes).map_err(|_| broken())?;
    let mut collector = Collector::default();
    let mut has_events = false;
    let walked = api.dialect().body_events(body, &mut |event| {
        has_events = true;
        collector.push(event);
    });
    walked.map_err(|_| broken())?;
    if has_events { Ok(collector.into_response()) } else { Err(ResponseBodyError::NotAResponse { api }) }
}

/// Returns `false` if a body cannot contain a tool call, so that it can be forwarded without decoding.
pub fn may_contain_tool_call(api: Api, bytes: &[u8]) -> bool {
    // A marker could be escaped, although no API does so.
    let escaped = memchr::memmem::find(bytes, br"\u00").is_some();
    escaped
        || api.dialect().tool_call_markers().iter().any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
}

/// The reason why a body is not a response.
#[derive(Debug, thiserror::Error)]
pub enum ResponseBodyError {
    #[error("the body is not JSON: {source}")]
    NotJson {
        /// Syntax error with its position.
        source: serde_json::Error,
    },
    /// The JSON is neither a response nor an error of the API.
    #[error("the body is neither a response nor an error of {api:?}")]
    NotAResponse { api: Api },
}

impl ResponseBodyError {
    /// Returns a hint on how to proceed.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => {
                "a stream is read with `from_stream`; a compressed body has to be decompressed first"
            }
            Self::NotAResponse { .. } => "see which API the request went to",
        }
    }
}
