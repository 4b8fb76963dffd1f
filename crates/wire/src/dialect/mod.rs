//! Request formats of the model APIs, one file for each behind the trait [`Dialect`].
//!
//! To add a format, implement [`Dialect`] in a new file and add the type to [`ALL`]. A dialect recognizes its requests,
//! locates messages, tools and settings ([`Dialect::groups`]), splits them into sections ([`Dialect::project`]),
//! extracts the identity ([`Dialect::identity`]) and validates the request ([`Dialect::messages`] for the common rules,
//! [`Dialect::validate`] for its own). Edits, paths, undo, token counts and overrides build on these. The module
//! [`stream`](crate::stream) decodes the responses.

mod anthropic;
mod chat;
mod gemini;
mod head;
mod message;
mod project;
mod responses;

use std::borrow::Cow;

use serde::Serialize;

pub use head::RequestHead;
pub use message::{ItemKind, MessageItem, MessageRole};
pub use project::{GroupRole, Projection, SectionGroup};

use crate::json::{Document, JsonKind, Target};
use crate::stream::Api;
use crate::validate::RequestProblem;

/// All dialects, in the order in which they are tried.
pub const ALL: [&dyn Dialect; 4] =
    [&anthropic::AnthropicRequests, &chat::ChatRequests, &responses::ResponsesRequests, &gemini::GeminiRequests];

/// Returns the dialect of an API.
pub fn for_api(api: Api) -> &'static dyn Dialect {
    match api {
        Api::AnthropicMessages => &anthropic::AnthropicRequests,
        Api::OpenAiChat => &chat::ChatRequests,
        Api::OpenAiResponses => &responses::ResponsesRequests,
        Api::Gemini => &gemini::GeminiRequests,
    }
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestPurpose {
    /// A response in one piece.
    Response,
    Stream,
    CountTokens,
}

impl RequestPurpose {
    /// Determines the purpose from the common `stream` setting.
    fn from_stream_flag(body: &Document) -> Self {
        let streams = body.member(body.root(), "stream").is_some_and(|stream| body.is_true(stream));
        if streams { Self::Stream } else { Self::Response }
    }
}

/// The sender and limits that a request states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestIdentity {
    /// Name of the agent.
    pub agent: Option<String>,
    /// Id of the conversation.
    pub session: Option<String>,
    pub turn: Option<String>,
    pub model: Option<String>,
    /// Maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// Subagent that sent the request.
    pub subagent: Option<Subagent>,
}

/// A subagent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subagent {
    /// Id, if the agent reports one.
    pub id: Option<String>,
    /// Id of the parent agent.
    pub parent: Option<String>,
}

/// The request format of a model API.
pub trait Dialect: Sync + std::fmt::Debug {
    fn api(&self) -> Api;

    /// Returns the purpose if the request is of this format. Servers differ in their paths, so the body is examined
    /// too.
    fn recognise(&self, head: &RequestHead, body: &Document) -> Option<RequestPurpose>;

    /// Returns the groups of a body in display order: instructions, messages, tools, settings.
    fn groups(&self, body: &Document) -> Vec<SectionGroup>;

    /// Projects a group into sections.
    fn project(&self, body: &Document, group: &SectionGroup, projection: &mut Projection);

    /// Returns the identity that the request states.
    fn identity(&self, head: &RequestHead, body: &Document) -> RequestIdentity;

    /// Returns the message items in the common form, for validation and comparison.
    fn messages(&self, body: &Document) -> Vec<MessageItem>;

    /// Returns a user message to append, in the notation of this API.
    fn user_message(&self, body: &Document, text: &str) -> Option<AppendedMessage>;

    /// Reports violations of rules that only this API has.
    fn validate(&self, body: &Document, problems: &mut Vec<RequestProblem>);

    /// Returns the values with a cache breakpoint, in reading order.
    fn breakpoints(&self, _: &Document) -> Vec<Target> {
        Vec::new()
    }

    /// Returns the required settings.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the documented members of a body, in the order of the documentation.
    fn members(&self) -> &'static [&'static str];

    /// Returns the names of the members in the order in which the server reads them. A change invalidates the cache for
    /// all later members.
    fn reading_order(&self) -> &'static [&'static str];

    /// Returns the text of a tool result that can be truncated, if the section is one.
    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let _ = (body, section);
        None
    }
}

/// A message to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendedMessage {
    /// List to extend, or the single value in its place.
    pub to: Target,
    /// The message; if there is no list yet, a list of all messages.
    pub value: Vec<u8>,
}

impl AppendedMessage {
    /// Appends a message to a list. A single message in place of a list becomes a list of both.
    fn new(body: &Document, to: Target, single: impl FnOnce() -> Vec<u8>, message: Vec<u8>) -> Self {
        let value = if body.kind(to) == JsonKind::Array {
            message
        } else {
            [&b"["[..], &single(), b",", &message, b"]"].concat()
        };
        Self { to, value }
    }
}

/// Returns `content` if it is a string, else the longest `text` among its parts.
fn longest_text(body: &Document, content: Target) -> Option<Target> {
    if body.kind(content) == JsonKind::String {
        return Some(content);
    }
    let texts = body.children(content).filter_map(|part| body.member(part, "text"));
    texts.max_by_key(|text| body.raw(*text).len())
}

/// Converts a member's text to an owned string; empty text becomes `None`.
fn non_empty(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned).filter(|text| !text.is_empty())
}
