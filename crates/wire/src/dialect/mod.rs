//! The APIs of models' makers: each one file behind one trait.
//!
//! To add one: write a file with a type that implements [`Dialect`], and add it to [`ALL`]. A dialect says which requests are its own,
//! which values of a body are messages, tools and settings ([`Dialect::groups`]), what is in a message ([`Dialect::project`]),
//! whose request it is ([`Dialect::marks`]) and what would make it invalid ([`Dialect::messages`] for what all have in common,
//! [`Dialect::validate`] for the rest). Everything else, edits, paths, undo, tokens, overrides, follows from these.
//! The half that decodes answers is in [`stream`](crate::stream).

mod anthropic;
mod chat;
mod gemini;
mod head;
mod message;
mod project;
mod responses;

use std::borrow::Cow;

use serde::Serialize;

pub use head::Head;
pub use message::{Item, Role, Saying};
pub use project::{Group, GroupRole, Projection};

use crate::json::{Document, Kind, Target};
use crate::stream::Api;
use crate::validate::Problem;

/// All dialects, in the order in which they are tried.
pub const ALL: [&dyn Dialect; 4] = [&anthropic::Anthropic, &chat::Chat, &responses::Responses, &gemini::Gemini];

/// The dialect of an API.
pub fn of(api: Api) -> &'static dyn Dialect {
    match api {
        Api::AnthropicMessages => &anthropic::Anthropic,
        Api::OpenAiChat => &chat::Chat,
        Api::OpenAiResponses => &responses::Responses,
        Api::Gemini => &gemini::Gemini,
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// An answer of the model, in one piece.
    Answer,
    /// An answer of the model, as it comes.
    Stream,
    /// How many tokens it would have.
    CountTokens,
}

impl Purpose {
    /// By the setting that most have for it.
    fn by_flag(body: &Document) -> Self {
        let streams = body.member(body.root(), "stream").is_some_and(|stream| body.is_true(stream));
        if streams { Self::Stream } else { Self::Answer }
    }
}

/// Whose request it is and what it may use, as far as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Marks {
    /// The agent, by what it calls itself.
    pub agent: Option<String>,
    /// The conversation.
    pub session: Option<String>,
    /// The turn.
    pub turn: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens that the answer may have.
    pub most_output: Option<u64>,
    /// The subagent whose request it is.
    pub subagent: Option<Subagent>,
}

/// A part of an agent that works on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subagent {
    /// Its name, if it has one.
    pub id: Option<String>,
    /// Whose part it is.
    pub parent: Option<String>,
}

/// An API of a model's maker, as far as requests go.
pub trait Dialect: Sync + std::fmt::Debug {
    /// Which one.
    fn api(&self) -> Api;

    /// What a request is for, if it is of this API: by its path and, where paths differ from server to server, by its body.
    fn recognise(&self, head: &Head, body: &Document) -> Option<Purpose>;

    /// The values of a body that are sections of their own: instructions, messages, tools, settings, in the order in which a person
    /// reads them.
    fn groups(&self, body: &Document) -> Vec<Group>;

    /// What is in one of them.
    fn project(&self, body: &Document, group: &Group, projection: &mut Projection);

    /// Whose request it is.
    fn marks(&self, head: &Head, body: &Document) -> Marks;

    /// What is said in it, by whom, in a form that all dialects share, for validation and for comparing conversations.
    fn messages(&self, body: &Document) -> Vec<Item>;

    /// A message of the user that is to be added at the end, as this API writes it.
    fn appended(&self, body: &Document, text: &str) -> Option<Appended>;

    /// What this API alone demands.
    fn validate(&self, body: &Document, problems: &mut Vec<Problem>);

    /// The values after which the server may keep what came before for the next request, in the order in which it reads them.
    fn breakpoints(&self, _: &Document) -> Vec<Target> {
        Vec::new()
    }

    /// The settings that it does not do without.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// The members of a body that the API documents, in the order of its documentation.
    fn members(&self) -> &'static [&'static str];

    /// The order in which the server reads a request, as the names of its parts: what comes after a change is read anew.
    fn reading_order(&self) -> &'static [&'static str];

    /// The text of a tool's result that can be shrunk, if a section is one.
    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let _ = (body, section);
        None
    }
}

/// A message that is to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The list that it is added to, or what stands in the place of one.
    pub to: Target,
    /// The message; all messages, if there is no list yet.
    pub value: Vec<u8>,
}

impl Appended {
    /// A message for a list; for a single message in the place of one, a list of both.
    fn new(body: &Document, to: Target, single: impl FnOnce() -> Vec<u8>, message: Vec<u8>) -> Self {
        let value =
            if body.kind(to) == Kind::Array { message } else { [&b"["[..], &single(), b",", &message, b"]"].concat() };
        Self { to, value }
    }
}

/// The text of a member, owned.
fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned).filter(|text| !text.is_empty())
}
