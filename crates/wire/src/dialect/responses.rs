//! OpenAI Responses, the format that Codex uses.

use std::collections::BTreeSet;

use super::message::{ItemKind, MessageItem, MessageRole};
use super::project::{GroupRole, MemberLayout, Projection, SectionGroup, ToolCallSection, group_members, part_label};
use super::{AppendedMessage, Dialect, RequestHead, RequestIdentity, RequestPurpose, longest_text, non_empty};
use crate::json::{Document, JsonKind, Presence, Target, text};
use crate::section::{ContentKind, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{RequestProblem, check_roles};

const ENCRYPTED: &str = "only the model can read it, and refuses it when it is changed; append a message instead";

#[derive(Clone, Copy, Debug)]
pub(super) struct ResponsesRequests;

fn kind_of(body: &Document, item: Target) -> String {
    let kind = body.member_text(item, "type").unwrap_or_default();
    // A message may omit its type.
    if kind.is_empty() && body.member(item, "role").is_some() { "message".to_owned() } else { kind.into_owned() }
}

fn role_of(body: &Document, item: Target) -> MessageRole {
    match body.member_text(item, "role").as_deref() {
        Some("system" | "developer") => MessageRole::System,
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => MessageRole::Other,
    }
}

impl Dialect for ResponsesRequests {
    fn api(&self) -> Api {
        Api::OpenAiResponses
    }

    fn recognise(&self, head: &RequestHead, body: &Document) -> Option<RequestPurpose> {
        match head.route().rsplit_once("/responses")?.1 {
            "" => Some(RequestPurpose::from_stream_flag(body)),
            // Codex sends a history that it composed for compaction. A section deleted earlier must not return this
            // way.
            "/compact" => Some(RequestPurpose::Response),
            "/input_tokens" => Some(RequestPurpose::CountTokens),
            _ => None,
        }
    }

    fn groups(&self, body: &Document) -> Vec<SectionGroup> {
        group_members(body, |name, kind| match name {
            "instructions" if kind != JsonKind::Null => MemberLayout::Single(GroupRole::System),
            "previous_response_id" | "conversation" if kind != JsonKind::Null => {
                MemberLayout::Single(GroupRole::Remote)
            }
            "input" => MemberLayout::List(GroupRole::Message),
            "tools" => MemberLayout::List(GroupRole::Tool),
            _ => MemberLayout::Single(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &SectionGroup, projection: &mut Projection) {
        let target = group.target;
        let deleted = group.presence == Presence::Deleted;
        match group.role {
            GroupRole::System => {
                let section = Section::new(target, NodeType::Message, SectionKind::System, "Instructions");
                projection.push_text(body, Section { deletable: true, deleted, ..section.with_text(target) });
            }
            GroupRole::Remote => {
                let section =
                    Section::new(target, NodeType::Remote, SectionKind::History, "Earlier items on the server");
                let section = section.fixed("they are stored on the server, outside of this request");
                projection.push(Section { deletable: true, deleted, leaf: Some(target), ..section });
            }
            GroupRole::Message if body.kind(target) == JsonKind::String => {
                let section = Section::new(target, NodeType::Message, SectionKind::User, "User").with_text(target);
                projection.push_text(body, Section { message_index: Some(0), deleted, ..section });
            }
            GroupRole::Message => item(body, group, projection),
            GroupRole::Tool => {
                let name =
                    non_empty(body.member_text(target, "name")).or_else(|| non_empty(body.member_text(target, "type")));
                projection.push_tool(group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn identity(&self, head: &RequestHead, body: &Document) -> RequestIdentity {
        let root = body.root();
        let metadata = body.member(root, "client_metadata");
        let meta = |name: &str| metadata.and_then(|metadata| non_empty(body.member_text(metadata, name)));
        let turn = || {
            let text = head.header("x-codex-turn-metadata")?;
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            Some(value.get("turn_id")?.as_str()?.to_owned())
        };
        RequestIdentity {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned).or_else(|| meta("session_id")),
            turn: turn().or_else(|| meta("turn_id")),
            model: non_empty(body.member_text(root, "model")),
            max_output_tokens: body.member(root, "max_output_tokens").and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<MessageItem> {
        let Some(input) = body.member(body.root(), "input") else { return Vec::new() };
        if body.kind(input) == JsonKind::String {
            let empty = body.text(input).is_none_or(|text| text.is_empty());
            let kind = if empty { ItemKind::Empty } else { ItemKind::Content };
            return vec![MessageItem { message: input, target: input, role: MessageRole::User, kind }];
        }
        let answers = body.children(input).filter(|item| kind_of(body, *item).ends_with("_call_output"));
        let answered: BTreeSet<String> =
            answers.filter_map(|item| non_empty(body.member_text(item, "call_id"))).collect();
        let mut items = Vec::new();
        for item in body.children(input) {
            let kind = kind_of(body, item);
            let id = || body.member_text(item, "call_id").unwrap_or_default().into_owned();
            let (role, item_kind) = match kind.as_str() {
                "message" => {
                    let content = body.member(item, "content");
                    let empty = content.is_none_or(|content| match body.kind(content) {
                        JsonKind::String => body.text(content).is_none_or(|text| text.is_empty()),
                        _ => body.children(content).next().is_none(),
                    });
                    (role_of(body, item), if empty { ItemKind::Empty } else { ItemKind::Content })
                }
                "reasoning" => (MessageRole::Assistant, ItemKind::Sealed),
                "function_call" => {
                    (MessageRole::Assistant, ItemKind::Call { id: id(), arguments: body.member(item, "arguments") })
                }
                "custom_tool_call" => (MessageRole::Assistant, ItemKind::Call { id: id(), arguments: None }),
                // The server answers some of these calls itself.
                kind if kind.ends_with("_call") && answered.contains(&id()) => {
                    (MessageRole::Assistant, ItemKind::Call { id: id(), arguments: None })
                }
                kind if kind.ends_with("_call_output") => (MessageRole::Tool, ItemKind::Result { id: id() }),
                _ => (MessageRole::Other, ItemKind::Content),
            };
            items.push(MessageItem { message: item, target: item, role, kind: item_kind });
        }
        items
    }

    fn user_message(&self, body: &Document, prompt: &str) -> Option<AppendedMessage> {
        let input = body.member(body.root(), "input")?;
        let message = |prompt: &[u8]| {
            let begin = br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"#;
            [&begin[..], prompt, b"}]}"].concat()
        };
        Some(AppendedMessage::new(body, input, || message(body.raw(input)), message(&text::encode(prompt))))
    }

    fn validate(&self, body: &Document, problems: &mut Vec<RequestProblem>) {
        check_roles(body, &self.messages(body), "`user`, `assistant`, `system` and `developer`", problems);
    }

    fn required(&self) -> &'static [&'static str] {
        &["model"]
    }

    fn members(&self) -> &'static [&'static str] {
        &[
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "stream",
            "stream_options",
            "temperature",
            "top_p",
            "top_logprobs",
            "max_output_tokens",
            "max_tool_calls",
            "parallel_tool_calls",
            "previous_response_id",
            "conversation",
            "reasoning",
            "text",
            "truncation",
            "metadata",
            "client_metadata",
            "store",
            "include",
            "background",
            "prompt",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "user",
            "context_management",
        ]
    }

    fn reading_order(&self) -> &'static [&'static str] {
        &["previous_response_id", "instructions", "tools", "input"]
    }

    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let output = body.member(section, "output").filter(|_| kind_of(body, section).ends_with("_output"))?;
        longest_text(body, output)
    }
}

fn item(body: &Document, group: &SectionGroup, projection: &mut Projection) {
    let target = group.target;
    let kind = kind_of(body, target);
    let new = |node, kind, label: String| Section {
        message_index: Some(group.index),
        deletable: true,
        deleted: group.presence == Presence::Deleted,
        ..Section::new(target, node, kind, label)
    };
    let id = || non_empty(body.member_text(target, "call_id"));
    match kind.as_str() {
        "message" => {
            let (kind, label) = match role_of(body, target) {
                MessageRole::System => (SectionKind::System, "Developer"),
                MessageRole::User => (SectionKind::User, "User"),
                MessageRole::Assistant => (SectionKind::Assistant, "Assistant"),
                _ => (SectionKind::Other, "Message"),
            };
            let section = new(NodeType::Message, kind, label.to_owned());
            projection.push(section.clone());
            parts(body, &section, body.member(target, "content"), projection);
            projection.push_fields(body, &section, target, &["type", "role", "content"]);
        }
        "reasoning" => {
            let section = new(NodeType::Message, SectionKind::Assistant, "Reasoning".to_owned()).fixed(ENCRYPTED);
            let section = Section { content: ContentKind::Opaque, ..section };
            projection.push(section.clone());
            parts(body, &section, body.member(target, "summary"), projection);
        }
        "function_call" | "custom_tool_call" => {
            let name = non_empty(body.member_text(target, "name"));
            let arguments = body.member(target, "arguments").or(body.member(target, "input"));
            let parent = new(NodeType::Message, SectionKind::Tool, String::new());
            projection.push_call(&parent, ToolCallSection { target, id: id(), name, arguments, index: 0 });
            if let Some(section) = projection.sections.last_mut() {
                section.parent = None;
                section.deleted = group.presence == Presence::Deleted;
            }
        }
        "function_call_output" | "custom_tool_call_output" => {
            let (id, output) = (id(), body.member(target, "output"));
            let (label, name) = projection.result_label(id.as_deref());
            let tool = Some(Invocation { id, name, arguments: None });
            let section = Section { tool, ..new(NodeType::Message, SectionKind::Tool, label) };
            if let Some(leaf) = output.filter(|output| body.kind(*output) == JsonKind::String) {
                projection.push_text(body, section.with_text(leaf));
            } else {
                projection.push(section.clone());
                parts(body, &section, output, projection);
            }
        }
        _ => projection.push(new(NodeType::Message, SectionKind::Other, kind.clone())),
    }
}

/// Projects the content of a message.
fn parts(body: &Document, section: &Section, content: Option<Target>, projection: &mut Projection) {
    let Some(content) = content else { return };
    if body.kind(content) == JsonKind::String {
        return projection.push_only_text(body, section, content);
    }
    for (index, part) in body.children(content).enumerate() {
        let new = Section {
            content_index: Some(index),
            deletable: !matches!(section.content, ContentKind::Opaque),
            ..Section::new(part, NodeType::ContentPart, section.kind, part_label(index)).within(section)
        };
        let kind = body.member_text(part, "type").unwrap_or_default().into_owned();
        match body.member(part, "text") {
            Some(leaf) if section.content == ContentKind::Opaque => {
                projection.push_text(body, new.with_text(leaf).fixed(ENCRYPTED));
            }
            Some(leaf) => projection.push_text(body, new.with_text(leaf)),
            None if kind.contains("image") => projection.push_image(new, index),
            None => projection.push(Section { label: format!("{kind} #{}", index + 1), ..new }),
        }
    }
}
