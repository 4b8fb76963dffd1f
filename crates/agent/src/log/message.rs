//! The content of a conversation, independent of a dialect.

use sayso_review::TokenUsage;
use sayso_wire::stream::collect::{BlockContent, CallState};
use sayso_wire::stream::{Api, ModelResponse, OpaqueKind, ToolKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::settings::dialect_name;

/// A prompt of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
}

impl Prompt {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A file whose content is part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedFile {
    pub path: String,
    pub text: String,
}

/// An image in a prompt or a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageData {
    /// Such as `image/png`.
    pub media_type: String,
    /// Content in base64.
    pub base64: String,
}

/// A message of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Dialect and model that wrote it. Signed content is valid for them only.
    #[serde(with = "dialect_name")]
    pub dialect: Api,
    pub model: String,
    pub blocks: Vec<AssistantBlock>,
    #[serde(default)]
    pub completeness: Completeness,
    #[serde(default)]
    pub usage: TokenUsage,
    /// Number of the request in the engine's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
}

/// The completeness of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    #[default]
    Complete,
    /// It was interrupted, or its stream broke off.
    Partial,
}

/// A block of a message of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum AssistantBlock {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signatures: Vec<SignedData>,
    },
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signatures: Vec<SignedData>,
    },
    ToolCall(ToolCallBlock),
}

/// A tool call with complete arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallBlock {
    /// Unique in the session.
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub kind: CallKind,
    /// JSON text of a function's arguments, or the text input of a custom tool, as received.
    pub arguments: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<SignedData>,
}

/// The form of a call's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    #[default]
    Function,
    /// Free text, for OpenAI only.
    Custom,
}

/// Data that only the API can interpret, to be sent back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedData {
    pub kind: SignatureKind,
    pub data: String,
}

/// The kind of [`SignedData`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureKind {
    Signature,
    Encrypted,
    Redacted,
}

/// The result of a tool call, as the model receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedResult {
    pub call: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
    /// The change that the call became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
}

impl ToolCallBlock {
    /// Returns the arguments as JSON. A custom tool's text becomes the argument `input`. Empty text is an empty object.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        match self.kind {
            CallKind::Custom => Ok(serde_json::json!({ "input": self.arguments })),
            CallKind::Function if self.arguments.trim().is_empty() => Ok(Value::Object(serde_json::Map::new())),
            CallKind::Function => serde_json::from_str(&self.arguments),
        }
    }

    /// Returns the arguments as a JSON object for a request. Broken arguments become `{"invalid_arguments": …}`, because an API
    /// rejects the whole request otherwise.
    pub(crate) fn object(&self) -> Value {
        match self.value() {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) | Err(_) => serde_json::json!({ "invalid_arguments": self.arguments }),
        }
    }
}

impl AssistantMessage {
    /// Returns the calls of the message.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.blocks.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the last text.
    pub fn last_text(&self) -> &str {
        let texts = self.blocks.iter().rev().filter_map(|block| match block {
            AssistantBlock::Text { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        });
        texts.take(1).next().unwrap_or_default()
    }

    /// Converts a response. Calls with incomplete arguments are left out.
    pub(crate) fn from_response(dialect: Api, model: &str, response: &ModelResponse, request: Option<u64>) -> Self {
        let has_finished = response.finish.is_some() && response.error.is_none();
        let blocks = response.blocks.iter().filter_map(|block| {
            let signatures: Vec<SignedData> = block
                .opaque
                .iter()
                .map(|(kind, data)| SignedData { kind: (*kind).into(), data: data.clone() })
                .collect();
            Some(match &block.content {
                BlockContent::Text(text) if text.is_empty() && signatures.is_empty() => return None,
                BlockContent::Text(text) => AssistantBlock::Text { text: text.clone(), signatures },
                BlockContent::Thinking(text) if text.is_empty() && signatures.is_empty() => return None,
                BlockContent::Thinking(text) => AssistantBlock::Thinking { text: text.clone(), signatures },
                BlockContent::ToolCall { state: CallState::Open, .. } => return None,
                BlockContent::ToolCall { id, name, kind, arguments, .. } => AssistantBlock::ToolCall(ToolCallBlock {
                    id: id.clone(),
                    name: name.clone(),
                    kind: if *kind == ToolKind::Custom { CallKind::Custom } else { CallKind::Function },
                    arguments: arguments.clone(),
                    signatures,
                }),
            })
        });
        Self {
            dialect,
            model: model.to_owned(),
            blocks: blocks.collect(),
            completeness: if has_finished { Completeness::Complete } else { Completeness::Partial },
            usage: usage_of(response),
            request,
        }
    }
}

fn usage_of(response: &ModelResponse) -> TokenUsage {
    let usage = response.usage;
    TokenUsage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_written: usage.cache_written,
        reasoning: usage.reasoning,
    }
}

impl From<OpaqueKind> for SignatureKind {
    fn from(kind: OpaqueKind) -> Self {
        match kind {
            OpaqueKind::Signature => Self::Signature,
            OpaqueKind::Encrypted => Self::Encrypted,
            OpaqueKind::Redacted => Self::Redacted,
        }
    }
}
