//! Anthropic Messages.

use std::collections::BTreeMap;

use super::message::{ItemKind, MessageItem, MessageRole};
use super::project::{GroupRole, MemberLayout, Projection, SectionGroup, ToolCallSection, group_members, part_label};
use super::{AppendedMessage, Dialect, RequestHead, RequestIdentity, RequestPurpose, longest_text, non_empty};
use crate::json::{Document, JsonKind, Presence, Target, text};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{Repair, RequestProblem, RequestProblemKind, check_empty_texts, check_first_role, check_roles};

/// Maximum number of cache breakpoints that the server accepts.
const MAX_BREAKPOINTS: usize = 4;
const SIGNED: &str = "the model signed it together with what comes before it; append a message instead";

#[derive(Clone, Copy, Debug)]
pub(super) struct AnthropicRequests;

/// `true` for the attribution block of Claude Code, which must stay a block of its own in first place.
fn is_attribution(body: &Document, block: Target) -> bool {
    let text = body.member_text(block, "text").unwrap_or_default();
    text.starts_with("x-anthropic-billing-header") || text.starts_with("You are Claude Code")
}

/// Returns the attribution block, if the received instructions began with one; it may have been moved or deleted since.
fn attribution(body: &Document) -> Option<Target> {
    let received = body.as_received();
    let system =
        received.member(received.root(), "system").filter(|system| received.kind(*system) == JsonKind::Array)?;
    received.children(system).next().filter(|block| is_attribution(&received, *block))
}

fn is_call(kind: &str) -> bool {
    kind == "tool_use" || kind.ends_with("_tool_use")
}

fn is_result(kind: &str) -> bool {
    kind.ends_with("tool_result")
}

fn kind_of(body: &Document, part: Target) -> String {
    body.member_text(part, "type").unwrap_or_default().into_owned()
}

/// Returns the parts of a message; empty if its content is not a list.
fn parts(body: &Document, message: Target) -> Vec<Target> {
    match body.member(message, "content") {
        Some(content) if body.kind(content) == JsonKind::Array => body.children(content).collect(),
        _ => Vec::new(),
    }
}

impl Dialect for AnthropicRequests {
    fn api(&self) -> Api {
        Api::AnthropicMessages
    }

    fn recognise(&self, head: &RequestHead, body: &Document) -> Option<RequestPurpose> {
        if head.route().ends_with("/messages/count_tokens") {
            return Some(RequestPurpose::CountTokens);
        }
        // The version is missing if the upstream's base URL contains it.
        if !head.route().ends_with("/v1/messages") && head.route() != "/messages" {
            return None;
        }
        Some(RequestPurpose::from_stream_flag(body))
    }

    fn groups(&self, body: &Document) -> Vec<SectionGroup> {
        group_members(body, |name, _| match name {
            "system" => MemberLayout::List(GroupRole::System),
            "messages" => MemberLayout::List(GroupRole::Message),
            "tools" => MemberLayout::List(GroupRole::Tool),
            _ => MemberLayout::Single(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &SectionGroup, projection: &mut Projection) {
        let target = group.target;
        let deleted = group.presence == Presence::Deleted;
        match group.role {
            GroupRole::System => {
                let label = if group.index == 0 {
                    "System prompt".to_owned()
                } else {
                    format!("System prompt #{}", group.index + 1)
                };
                let leaf =
                    if body.kind(target) == JsonKind::String { Some(target) } else { body.member(target, "text") };
                let mut section = Section {
                    deletable: true,
                    deleted,
                    ..Section::new(target, NodeType::Message, SectionKind::System, label)
                };
                if let Some(leaf) = leaf {
                    section = section.with_text(leaf);
                }
                if is_attribution(body, target) {
                    "Attribution".clone_into(&mut section.label);
                    section = section.fixed("it identifies the agent and must stay unchanged");
                    section.deletable = false;
                }
                projection.push_text(body, section.clone());
                if body.kind(target) == JsonKind::Object {
                    projection.push_fields(body, &section, target, &["type", "text"]);
                }
            }
            GroupRole::Message => message(body, group, projection),
            GroupRole::Tool => {
                let name = non_empty(body.member_text(target, "name"));
                projection.push_tool(group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn identity(&self, head: &RequestHead, body: &Document) -> RequestIdentity {
        let root = body.root();
        let user = body.member(root, "metadata").and_then(|metadata| non_empty(body.member_text(metadata, "user_id")));
        // Older versions of Claude Code state the session here.
        let session = user.as_deref().and_then(crate::conversation::session_from_user_id);
        RequestIdentity {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned).or(session),
            turn: None,
            model: non_empty(body.member_text(root, "model")),
            max_output_tokens: body.member(root, "max_tokens").and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<MessageItem> {
        let mut items = Vec::new();
        let Some(list) = body.member(body.root(), "messages") else { return items };
        for message in body.children(list) {
            let role = match body.member_text(message, "role").as_deref() {
                Some("user") => MessageRole::User,
                Some("assistant") => MessageRole::Assistant,
                Some("system") => MessageRole::System,
                _ => MessageRole::Other,
            };
            let item = |target, item_kind| MessageItem { message, target, role, kind: item_kind };
            let content = body.member(message, "content");
            let parts = parts(body, message);
            if parts.is_empty() {
                let empty = content.and_then(|content| body.text(content)).is_none_or(|text| text.trim().is_empty());
                items.push(item(content.unwrap_or(message), if empty { ItemKind::Empty } else { ItemKind::Content }));
            }
            for part in parts {
                let kind = kind_of(body, part);
                let id = |name: &str| body.member_text(part, name).unwrap_or_default().into_owned();
                let item_kind = match kind.as_str() {
                    // The server answers and checks its own tool calls within the same message.
                    "tool_use" => ItemKind::Call { id: id("id"), arguments: None },
                    "tool_result" => ItemKind::Result { id: id("tool_use_id") },
                    "thinking" | "redacted_thinking" => ItemKind::Sealed,
                    "text" if body.member_text(part, "text").is_none_or(|text| text.trim().is_empty()) => {
                        ItemKind::Empty
                    }
                    _ => ItemKind::Content,
                };
                items.push(item(part, item_kind));
            }
        }
        items
    }

    fn user_message(&self, body: &Document, prompt: &str) -> Option<AppendedMessage> {
        let list = body.member(body.root(), "messages")?;
        let prompt = text::encode(prompt);
        let value = [&br#"{"role":"user","content":[{"type":"text","text":"#[..], &prompt, b"}]}"].concat();
        Some(AppendedMessage { to: list, value })
    }

    fn validate(&self, body: &Document, problems: &mut Vec<RequestProblem>) {
        let items = self.messages(body);
        check_first_role(&items, problems);
        check_results_follow_calls(&items, problems);
        check_roles(body, &items, "`user`, `assistant` and `system`", problems);
        check_empty_texts(body, &items, problems);
        for block in body.member(body.root(), "system").into_iter().flat_map(|system| body.children(system)) {
            if body.member_text(block, "text").is_some_and(|text| text.trim().is_empty()) {
                problems.push(RequestProblem::empty(block, block));
            }
        }
        let breakpoints = self.breakpoints(body);
        for surplus in breakpoints.iter().skip(MAX_BREAKPOINTS) {
            problems.push(RequestProblem {
                kind: RequestProblemKind::TooManyBreakpoints,
                target: *surplus,
                message: format!("a request may have {MAX_BREAKPOINTS} cache breakpoints; this one exceeds the limit"),
                repairs: body.member(*surplus, "cache_control").map(Repair::Delete).into_iter().collect(),
            });
        }
        if let Some(block) = attribution(body) {
            let first = body.parent(block).and_then(|system| body.children(system).next());
            let is_present = body.is_present(block);
            if first != Some(block) || !is_present || !is_attribution(body, block) {
                let back =
                    first.filter(|first| is_present && *first != block).map(|first| Repair::MoveBefore(block, first));
                let restored = body.is_deleted(block).then_some(Repair::Restore(block));
                problems.push(RequestProblem {
                    kind: RequestProblemKind::AttributionMoved,
                    target: block,
                    message: "the agent's attribution block must stay first and unchanged".to_owned(),
                    repairs: back.into_iter().chain(restored).collect(),
                });
            }
        }
    }

    fn required(&self) -> &'static [&'static str] {
        &["model", "max_tokens"]
    }

    fn breakpoints(&self, body: &Document) -> Vec<Target> {
        let mut found = Vec::new();
        let mut look = |target: Target| {
            if body.kind(target) == JsonKind::Object && body.member(target, "cache_control").is_some() {
                found.push(target);
            }
        };
        for name in ["tools", "system"] {
            for target in body.member(body.root(), name).into_iter().flat_map(|list| body.children(list)) {
                look(target);
            }
        }
        for message in body.member(body.root(), "messages").into_iter().flat_map(|list| body.children(list)) {
            for part in parts(body, message) {
                for inner in parts(body, part) {
                    look(inner);
                }
                look(part);
            }
        }
        found
    }

    fn members(&self) -> &'static [&'static str] {
        &[
            "model",
            "messages",
            "max_tokens",
            "system",
            "tools",
            "tool_choice",
            "stream",
            "temperature",
            "top_p",
            "top_k",
            "stop_sequences",
            "metadata",
            "thinking",
            "service_tier",
            "container",
            "mcp_servers",
            "context_management",
            "output_config",
            "output_format",
            "betas",
            "anthropic_version",
            "speed",
            "inference_geo",
            "cache_control",
        ]
    }

    fn reading_order(&self) -> &'static [&'static str] {
        &["tools", "system", "messages"]
    }

    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let content = body.member(section, "content").filter(|_| is_result(&kind_of(body, section)))?;
        longest_text(body, content)
    }
}

/// Reports results that are not in the message directly after their call.
fn check_results_follow_calls(items: &[MessageItem], problems: &mut Vec<RequestProblem>) {
    let (mut number, mut last) = (0, None);
    let mut called: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        if last.replace(item.message) != Some(item.message) {
            number += 1;
        }
        if let ItemKind::Call { id, .. } = &item.kind {
            called.insert(id, number);
        }
        let ItemKind::Result { id } = &item.kind else { continue };
        if called.get(id.as_str()).is_some_and(|call| call + 1 != number) {
            problems.push(RequestProblem {
                kind: RequestProblemKind::RoleOrder,
                target: item.target,
                message: format!("the result of call `{id}` must be in the message directly after the call"),
                repairs: Vec::new(),
            });
        }
    }
}

fn message(body: &Document, group: &SectionGroup, projection: &mut Projection) {
    let target = group.target;
    let role = body.member_text(target, "role").unwrap_or_default().into_owned();
    let parts = parts(body, target);
    let answers = !parts.is_empty() && parts.iter().all(|part| is_result(&kind_of(body, *part)));
    let (kind, label) = match role.as_str() {
        "user" if answers => (SectionKind::Tool, "Tool results"),
        "user" => (SectionKind::User, "User"),
        "assistant" => (SectionKind::Assistant, "Assistant"),
        "system" => (SectionKind::System, "System"),
        _ => (SectionKind::Other, "Message"),
    };
    let section = Section {
        message_index: Some(group.index),
        deletable: true,
        deleted: group.presence == Presence::Deleted,
        ..Section::new(target, NodeType::Message, kind, label)
    };
    projection.push(section.clone());
    if let Some(content) = body.member(target, "content").filter(|content| body.kind(*content) == JsonKind::String) {
        projection.push_only_text(body, &section, content);
    }
    let mut calls = 0;
    for (index, part) in parts.into_iter().enumerate() {
        let shown = project_part(body, &section, part, (index, &mut calls), projection);
        if let Some(own) = projection.sections.iter().rev().find(|own| own.id == part.into()).cloned() {
            projection.push_fields(body, &own, part, shown);
        }
    }
    projection.push_fields(body, &section, target, &["role", "content"]);
}

/// Projects a part of a message. Returns the names of the members shown.
fn project_part(
    body: &Document,
    parent: &Section,
    part: Target,
    (index, calls): (usize, &mut usize),
    projection: &mut Projection,
) -> &'static [&'static str] {
    let kind = kind_of(body, part);
    let new = |kind, label: String| Section {
        content_index: Some(index),
        deletable: true,
        ..Section::new(part, NodeType::ContentPart, kind, label).within(parent)
    };
    match kind.as_str() {
        "text" => {
            let section = new(parent.kind, part_label(index));
            let leaf = body.member(part, "text");
            projection.push_text(body, leaf.map_or(section.clone(), |leaf| section.with_text(leaf)));
            &["type", "text"]
        }
        "thinking" => {
            let section = Section {
                leaf: body.member(part, "thinking"),
                content: ContentKind::Opaque,
                ..new(SectionKind::Assistant, "Thinking".to_owned()).fixed(SIGNED)
            };
            projection.push(section);
            &["type", "thinking", "signature"]
        }
        "redacted_thinking" => {
            let section = Section {
                content: ContentKind::Opaque,
                ..new(SectionKind::Assistant, "Thinking (hidden)".to_owned()).fixed("only the model can read it")
            };
            projection.push(section);
            &["type", "data"]
        }
        "image" => {
            projection.push_image(new(parent.kind, String::new()), index);
            &["type", "source"]
        }
        kind if is_call(kind) => {
            let id = non_empty(body.member_text(part, "id"));
            let name = non_empty(body.member_text(part, "name"));
            let input = body.member(part, "input");
            projection.push_call(parent, ToolCallSection { target: part, id, name, arguments: input, index: *calls });
            if let Some(section) = projection.sections.last_mut() {
                section.content_index = Some(index);
            }
            *calls += 1;
            &["type", "id", "name", "input"]
        }
        kind if is_result(kind) => {
            let id = non_empty(body.member_text(part, "tool_use_id"));
            let (label, name) = projection.result_label(id.as_deref());
            let content = body.member(part, "content");
            let tool = Some(Invocation { id, name, arguments: None });
            let section = Section { tool, ..new(SectionKind::Tool, label) };
            if let Some(leaf) = content.filter(|content| body.kind(*content) == JsonKind::String) {
                projection.push_text(body, section.with_text(leaf));
            } else {
                projection.push(section.clone());
                for (inner_index, inner) in parts(body, part).into_iter().enumerate() {
                    let mut none = 0;
                    project_part(body, &section, inner, (inner_index, &mut none), projection);
                }
            }
            &["type", "tool_use_id", "content"]
        }
        kind => {
            let label = if kind.is_empty() { part_label(index) } else { format!("{kind} #{}", index + 1) };
            projection.push(Section { editable: Editable::InParts, ..new(parent.kind, label) });
            &["type", "source"]
        }
    }
}
