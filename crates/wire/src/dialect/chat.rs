//! OpenAI Chat Completions and compatible APIs.

use super::message::{ItemKind, MessageItem, MessageRole};
use super::project::{GroupRole, MemberLayout, Projection, SectionGroup, ToolCallSection, group_members, part_label};
use super::{AppendedMessage, Dialect, RequestHead, RequestIdentity, RequestPurpose, longest_text, non_empty};
use crate::json::{Document, JsonKind, Presence, Target, text};
use crate::section::{Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{RequestProblem, RequestProblemKind};

#[derive(Clone, Copy, Debug)]
pub(super) struct ChatRequests;

fn role_of(body: &Document, message: Target) -> MessageRole {
    match body.member_text(message, "role").as_deref() {
        Some("system" | "developer") => MessageRole::System,
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("tool" | "function") => MessageRole::Tool,
        _ => MessageRole::Other,
    }
}

fn list(body: &Document, of: Target, name: &str) -> Vec<Target> {
    let found = body.member(of, name).filter(|list| body.kind(*list) == JsonKind::Array);
    found.into_iter().flat_map(|list| body.children(list)).collect()
}

impl Dialect for ChatRequests {
    fn api(&self) -> Api {
        Api::OpenAiChat
    }

    fn recognise(&self, head: &RequestHead, body: &Document) -> Option<RequestPurpose> {
        if !head.route().ends_with("/chat/completions") {
            return None;
        }
        Some(RequestPurpose::from_stream_flag(body))
    }

    fn groups(&self, body: &Document) -> Vec<SectionGroup> {
        group_members(body, |name, _| match name {
            "messages" => MemberLayout::List(GroupRole::Message),
            "tools" | "functions" => MemberLayout::List(GroupRole::Tool),
            "prediction" => MemberLayout::Single(GroupRole::Prediction),
            _ => MemberLayout::Single(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &SectionGroup, projection: &mut Projection) {
        let target = group.target;
        match group.role {
            GroupRole::Message => message(body, group, projection),
            GroupRole::Tool => {
                let inside = body.member(target, "function").or(body.member(target, "custom")).unwrap_or(target);
                let name = non_empty(body.member_text(inside, "name"));
                projection.push_tool(group, name, body.member(inside, "description"));
            }
            GroupRole::Prediction => {
                let section = Section {
                    deletable: true,
                    deleted: group.presence == Presence::Deleted,
                    ..Section::new(target, NodeType::Message, SectionKind::Prediction, "Prediction")
                };
                if let Some(leaf) =
                    body.member(target, "content").filter(|content| body.kind(*content) == JsonKind::String)
                {
                    projection.push_text(body, section.with_text(leaf));
                } else {
                    projection.push(section.clone());
                    parts(body, &section, target, projection);
                }
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn identity(&self, head: &RequestHead, body: &Document) -> RequestIdentity {
        let root = body.root();
        let most = body.member(root, "max_completion_tokens").or(body.member(root, "max_tokens"));
        RequestIdentity {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned),
            turn: None,
            model: non_empty(body.member_text(root, "model")),
            max_output_tokens: most.and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<MessageItem> {
        let mut items = Vec::new();
        for message in list(body, body.root(), "messages") {
            let role = role_of(body, message);
            let item = |target, item_kind| MessageItem { message, target, role, kind: item_kind };
            let calls = list(body, message, "tool_calls");
            let content = body.member(message, "content");
            let parts = list(body, message, "content");
            let text = content.and_then(|content| body.text(content)).is_some_and(|text| !text.is_empty());
            // Results of legacy functions have no call id.
            if let (MessageRole::Tool, Some(id)) = (role, non_empty(body.member_text(message, "tool_call_id"))) {
                items.push(item(message, ItemKind::Result { id }));
            } else if text || !parts.is_empty() {
                items.push(item(content.unwrap_or(message), ItemKind::Content));
            } else if calls.is_empty() && body.member(message, "function_call").is_none() {
                items.push(item(message, ItemKind::Empty));
            }
            for call in calls {
                let id = body.member_text(call, "id").unwrap_or_default().into_owned();
                let function = body.member(call, "function");
                let arguments = function.and_then(|function| body.member(function, "arguments"));
                items.push(item(call, ItemKind::Call { id, arguments }));
            }
        }
        items
    }

    fn user_message(&self, body: &Document, prompt: &str) -> Option<AppendedMessage> {
        let list = body.member(body.root(), "messages")?;
        let value = [&br#"{"role":"user","content":"#[..], &text::encode(prompt), b"}"].concat();
        Some(AppendedMessage { to: list, value })
    }

    fn validate(&self, body: &Document, problems: &mut Vec<RequestProblem>) {
        // Only other results may follow a call before its result.
        let items = self.messages(body);
        let results =
            |id: &str| items.iter().any(|item| matches!(&item.kind, ItemKind::Result { id: own } if own == id));
        let mut open: Vec<&str> = Vec::new();
        let mut from = None;
        for item in &items {
            match &item.kind {
                ItemKind::Call { id, .. } if results(id) => {
                    open.push(id);
                    from = Some(item.message);
                }
                ItemKind::Result { id } => open.retain(|own| own != id),
                _ if !open.is_empty() && Some(item.message) != from => {
                    problems.push(RequestProblem {
                        kind: RequestProblemKind::RoleOrder,
                        target: item.message,
                        message: format!("it separates call `{}` from its result", open[0]),
                        repairs: Vec::new(),
                    });
                    open.clear();
                }
                _ => {}
            }
        }
    }

    fn required(&self) -> &'static [&'static str] {
        &["model"]
    }

    fn members(&self) -> &'static [&'static str] {
        &[
            "model",
            "messages",
            "tools",
            "tool_choice",
            "stream",
            "stream_options",
            "temperature",
            "top_p",
            "n",
            "stop",
            "max_tokens",
            "max_completion_tokens",
            "presence_penalty",
            "frequency_penalty",
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "response_format",
            "seed",
            "user",
            "parallel_tool_calls",
            "functions",
            "function_call",
            "audio",
            "modalities",
            "prediction",
            "reasoning_effort",
            "metadata",
            "store",
            "service_tier",
            "web_search_options",
            "verbosity",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
        ]
    }

    fn reading_order(&self) -> &'static [&'static str] {
        &["tools", "functions", "messages"]
    }

    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let content = body.member(section, "content").filter(|_| role_of(body, section) == MessageRole::Tool)?;
        longest_text(body, content)
    }
}

fn message(body: &Document, group: &SectionGroup, projection: &mut Projection) {
    let target = group.target;
    let id = non_empty(body.member_text(target, "tool_call_id"));
    let role = role_of(body, target);
    let mut tool = None;
    let (kind, label) = match role {
        MessageRole::System => (SectionKind::System, "System".to_owned()),
        MessageRole::User => (SectionKind::User, "User".to_owned()),
        MessageRole::Assistant => (SectionKind::Assistant, "Assistant".to_owned()),
        MessageRole::Tool => {
            let (label, name) = projection.result_label(id.as_deref());
            tool = Some(Invocation { id, name, arguments: None });
            (SectionKind::Tool, label)
        }
        MessageRole::Other => (SectionKind::Other, "Message".to_owned()),
    };
    let section = Section {
        message_index: Some(group.index),
        tool,
        deletable: true,
        deleted: group.presence == Presence::Deleted,
        ..Section::new(target, NodeType::Message, kind, label)
    };
    projection.push(section.clone());
    parts(body, &section, target, projection);
    for (index, call) in list(body, target, "tool_calls").into_iter().enumerate() {
        let function = body.member(call, "function").or(body.member(call, "custom"));
        let inside = |name| function.and_then(|function| body.member(function, name));
        let name = inside("name").and_then(|name| non_empty(body.text(name)));
        let arguments = inside("arguments").or(inside("input"));
        let id = non_empty(body.member_text(call, "id"));
        projection.push_call(&section, ToolCallSection { target: call, id, name, arguments, index });
    }
    projection.push_fields(body, &section, target, &["role", "content", "tool_calls"]);
}

/// Projects the content of a message.
fn parts(body: &Document, section: &Section, message: Target, projection: &mut Projection) {
    let Some(content) = body.member(message, "content") else { return };
    if body.kind(content) == JsonKind::String {
        return projection.push_only_text(body, section, content);
    }
    for (index, part) in list(body, message, "content").into_iter().enumerate() {
        let kind = body.member_text(part, "type").unwrap_or_default().into_owned();
        let new = Section {
            content_index: Some(index),
            deletable: true,
            ..Section::new(part, NodeType::ContentPart, section.kind, part_label(index)).within(section)
        };
        match (kind.as_str(), body.member(part, "text").or(body.member(part, "refusal"))) {
            ("text" | "refusal", Some(leaf)) => projection.push_text(body, new.with_text(leaf)),
            ("image_url", _) => projection.push_image(new, index),
            (kind, _) => projection.push(Section { label: format!("{kind} #{}", index + 1), ..new }),
        }
    }
}
