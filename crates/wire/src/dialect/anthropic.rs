//! Anthropic Messages.

use std::collections::BTreeMap;

use super::message::{Item, Role, Saying};
use super::project::{Group, GroupRole, Projection, Sort, grouped, part_label};
use super::{Appended, Dialect, Head, Marks, Purpose, owned};
use crate::json::{Document, Kind, Presence, Target, text};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{Problem, ProblemKind, Repair, begins_with_user, known_roles, no_empty_texts};

/// The server keeps the beginning of a request up to this many places.
const MOST_BREAKPOINTS: usize = 4;
const SIGNED: &str = "the model signed it together with what comes before it; append a message instead";

/// Anthropic Messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anthropic;

/// Whether a text is what Claude Code says of itself first, which has to stay first and by itself.
fn is_attribution(body: &Document, block: Target) -> bool {
    let text = body.member_text(block, "text").unwrap_or_default();
    text.starts_with("x-anthropic-billing-header") || text.starts_with("You are Claude Code")
}

/// The first block of the instructions as they came, if it was such a text: it may have been moved or removed since.
fn attribution(body: &Document) -> Option<Target> {
    let came = body.as_came();
    let system = came.member(came.root(), "system").filter(|system| came.kind(*system) == Kind::Array)?;
    came.children(system).next().filter(|block| is_attribution(&came, *block))
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

/// The parts of a message, if it has any.
fn parts(body: &Document, message: Target) -> Vec<Target> {
    match body.member(message, "content") {
        Some(content) if body.kind(content) == Kind::Array => body.children(content).collect(),
        _ => Vec::new(),
    }
}

impl Dialect for Anthropic {
    fn api(&self) -> Api {
        Api::AnthropicMessages
    }

    fn recognise(&self, head: &Head, body: &Document) -> Option<Purpose> {
        if head.route().ends_with("/messages/count_tokens") {
            return Some(Purpose::CountTokens);
        }
        // Without the version where the upstream's own address has it.
        if !head.route().ends_with("/v1/messages") && head.route() != "/messages" {
            return None;
        }
        Some(Purpose::by_flag(body))
    }

    fn groups(&self, body: &Document) -> Vec<Group> {
        grouped(body, |name, _| match name {
            "system" => Sort::Each(GroupRole::System),
            "messages" => Sort::Each(GroupRole::Message),
            "tools" => Sort::Each(GroupRole::Tool),
            _ => Sort::One(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &Group, projection: &mut Projection) {
        let target = group.target;
        let deleted = group.presence == Presence::Deleted;
        match group.role {
            GroupRole::System => {
                let label = if group.index == 0 {
                    "System prompt".to_owned()
                } else {
                    format!("System prompt #{}", group.index + 1)
                };
                let leaf = if body.kind(target) == Kind::String { Some(target) } else { body.member(target, "text") };
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
                    section = section.fixed("it says whose request this is, and has to stay as it is");
                    section.deletable = false;
                }
                projection.push_text(body, section.clone());
                if body.kind(target) == Kind::Object {
                    projection.push_fields(body, &section, target, &["type", "text"]);
                }
            }
            GroupRole::Message => message(body, group, projection),
            GroupRole::Tool => {
                let name = owned(body.member_text(target, "name"));
                projection.push_tool(body, group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn marks(&self, head: &Head, body: &Document) -> Marks {
        let root = body.root();
        let user = body.member(root, "metadata").and_then(|metadata| owned(body.member_text(metadata, "user_id")));
        // Older versions of Claude Code say it there.
        let session = user.as_deref().and_then(crate::conversation::session_of_user);
        Marks {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned).or(session),
            turn: None,
            model: owned(body.member_text(root, "model")),
            most_output: body.member(root, "max_tokens").and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<Item> {
        let mut items = Vec::new();
        let Some(list) = body.member(body.root(), "messages") else { return items };
        for message in body.children(list) {
            let role = match body.member_text(message, "role").as_deref() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some("system") => Role::System,
                _ => Role::Other,
            };
            let item = |target, saying| Item { message, target, role, saying };
            let content = body.member(message, "content");
            let parts = parts(body, message);
            if parts.is_empty() {
                let empty = content.and_then(|content| body.text(content)).is_none_or(|text| text.trim().is_empty());
                items.push(item(content.unwrap_or(message), if empty { Saying::Nothing } else { Saying::Content }));
            }
            for part in parts {
                let kind = kind_of(body, part);
                let id = |name: &str| body.member_text(part, name).unwrap_or_default().into_owned();
                let saying = match kind.as_str() {
                    // Those that run on the server are answered in the same message, and checked there.
                    "tool_use" => Saying::Call { id: id("id"), arguments: None },
                    "tool_result" => Saying::Result { id: id("tool_use_id") },
                    "thinking" | "redacted_thinking" => Saying::Sealed,
                    "text" if body.member_text(part, "text").is_none_or(|text| text.trim().is_empty()) => {
                        Saying::Nothing
                    }
                    _ => Saying::Content,
                };
                items.push(item(part, saying));
            }
        }
        items
    }

    fn appended(&self, body: &Document, said: &str) -> Option<Appended> {
        let list = body.member(body.root(), "messages")?;
        let said = text::encode(said);
        let value = [&br#"{"role":"user","content":[{"type":"text","text":"#[..], &said, b"}]}"].concat();
        Some(Appended { to: list, value })
    }

    fn validate(&self, body: &Document, problems: &mut Vec<Problem>) {
        let items = self.messages(body);
        begins_with_user(&items, problems);
        answered_at_once(&items, problems);
        known_roles(body, &items, "`user`, `assistant` and `system`", problems);
        no_empty_texts(body, &items, problems);
        for block in body.member(body.root(), "system").into_iter().flat_map(|system| body.children(system)) {
            if body.member_text(block, "text").is_some_and(|text| text.trim().is_empty()) {
                problems.push(Problem::empty(block, block));
            }
        }
        let breakpoints = self.breakpoints(body);
        for surplus in breakpoints.iter().skip(MOST_BREAKPOINTS) {
            problems.push(Problem {
                kind: ProblemKind::TooManyBreakpoints,
                target: *surplus,
                message: format!("a request may have {MOST_BREAKPOINTS} cache breakpoints, and this is one more"),
                repairs: body.member(*surplus, "cache_control").map(Repair::Delete).into_iter().collect(),
            });
        }
        if let Some(block) = attribution(body) {
            let first = body.parent(block).and_then(|system| body.children(system).next());
            let here = body.is_here(block);
            if first != Some(block) || !here || !is_attribution(body, block) {
                let back = first.filter(|first| here && *first != block).map(|first| Repair::MoveBefore(block, first));
                let restored = body.is_deleted(block).then_some(Repair::Restore(block));
                problems.push(Problem {
                    kind: ProblemKind::AttributionMoved,
                    target: block,
                    message: "the agent's attribution block has to stay first, and as it is".to_owned(),
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
            if body.kind(target) == Kind::Object && body.member(target, "cache_control").is_some() {
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
        if body.kind(content) == Kind::String {
            return Some(content);
        }
        let texts = body.children(content).filter_map(|part| body.member(part, "text"));
        texts.max_by_key(|text| body.raw(*text).len())
    }
}

/// A result has to be in the message right after its call.
fn answered_at_once(items: &[Item], problems: &mut Vec<Problem>) {
    let (mut number, mut last) = (0, None);
    let mut called: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        if last.replace(item.message) != Some(item.message) {
            number += 1;
        }
        if let Saying::Call { id, .. } = &item.saying {
            called.insert(id, number);
        }
        let Saying::Result { id } = &item.saying else { continue };
        if called.get(id.as_str()).is_some_and(|call| call + 1 != number) {
            problems.push(Problem {
                kind: ProblemKind::RoleOrder,
                target: item.target,
                message: format!("the result of call `{id}` has to be in the message right after the call"),
                repairs: Vec::new(),
            });
        }
    }
}

fn message(body: &Document, group: &Group, projection: &mut Projection) {
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
    if let Some(content) = body.member(target, "content").filter(|content| body.kind(*content) == Kind::String) {
        let part = Section::new(content, NodeType::ContentPart, kind, part_label(0)).within(&section);
        projection.push_text(body, Section { content_index: Some(0), ..part.with_text(content) });
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

/// Shows a part of a message, and says which of its fields are shown by that.
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
            let section = new(parent.kind, format!("Image #{}", index + 1)).fixed("it is a picture");
            projection.push(Section { content: ContentKind::Image, ..section });
            &["type", "source"]
        }
        kind if is_call(kind) => {
            let id = owned(body.member_text(part, "id"));
            let name = owned(body.member_text(part, "name"));
            let input = body.member(part, "input");
            projection.push_call(parent, part, (id, name), input, input, *calls);
            if let Some(section) = projection.sections.last_mut() {
                section.content_index = Some(index);
            }
            *calls += 1;
            &["type", "id", "name", "input"]
        }
        kind if is_result(kind) => {
            let id = owned(body.member_text(part, "tool_use_id"));
            let (label, name) = projection.result_label(id.as_deref());
            let content = body.member(part, "content");
            let tool = Some(Invocation { id, name, arguments: None });
            let section = Section { tool, ..new(SectionKind::Tool, label) };
            if let Some(leaf) = content.filter(|content| body.kind(*content) == Kind::String) {
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
