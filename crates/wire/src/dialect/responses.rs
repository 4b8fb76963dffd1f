//! OpenAI Responses, as Codex speaks it.

use std::collections::BTreeSet;

use super::message::{Item, Role, Saying};
use super::project::{Group, GroupRole, Projection, Sort, grouped, part_label};
use super::{Appended, Dialect, Head, Marks, Purpose, owned};
use crate::json::{Document, Kind, Presence, Target, text};
use crate::section::{ContentKind, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{Problem, known_roles};

const ENCRYPTED: &str = "only the model can read it, and refuses it when it is changed; append a message instead";

/// OpenAI Responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Responses;

fn kind_of(body: &Document, item: Target) -> String {
    let kind = body.member_text(item, "type").unwrap_or_default();
    // A message need not say that it is one.
    if kind.is_empty() && body.member(item, "role").is_some() { "message".to_owned() } else { kind.into_owned() }
}

fn role_of(body: &Document, item: Target) -> Role {
    match body.member_text(item, "role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => Role::Other,
    }
}

impl Dialect for Responses {
    fn api(&self) -> Api {
        Api::OpenAiResponses
    }

    fn recognise(&self, head: &Head, body: &Document) -> Option<Purpose> {
        match head.route().rsplit_once("/responses")?.1 {
            "" => Some(Purpose::by_flag(body)),
            // A history that Codex has put together: what was taken out of it is not to come back by this way.
            "/compact" => Some(Purpose::Answer),
            "/input_tokens" => Some(Purpose::CountTokens),
            _ => None,
        }
    }

    fn groups(&self, body: &Document) -> Vec<Group> {
        grouped(body, |name, kind| match name {
            "instructions" if kind != Kind::Null => Sort::One(GroupRole::System),
            "previous_response_id" | "conversation" if kind != Kind::Null => Sort::One(GroupRole::Remote),
            "input" => Sort::Each(GroupRole::Message),
            "tools" => Sort::Each(GroupRole::Tool),
            _ => Sort::One(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &Group, projection: &mut Projection) {
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
                let section = section.fixed("they are kept on the server and are not in this request");
                projection.push(Section { deletable: true, deleted, leaf: Some(target), ..section });
            }
            GroupRole::Message if body.kind(target) == Kind::String => {
                let section = Section::new(target, NodeType::Message, SectionKind::User, "User").with_text(target);
                projection.push_text(body, Section { message_index: Some(0), deleted, ..section });
            }
            GroupRole::Message => item(body, group, projection),
            GroupRole::Tool => {
                let name = owned(body.member_text(target, "name")).or_else(|| owned(body.member_text(target, "type")));
                projection.push_tool(body, group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn marks(&self, head: &Head, body: &Document) -> Marks {
        let root = body.root();
        let metadata = body.member(root, "client_metadata");
        let said = |name: &str| metadata.and_then(|metadata| owned(body.member_text(metadata, name)));
        let turn = || {
            let text = head.header("x-codex-turn-metadata")?;
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            Some(value.get("turn_id")?.as_str()?.to_owned())
        };
        Marks {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned).or_else(|| said("session_id")),
            turn: turn().or_else(|| said("turn_id")),
            model: owned(body.member_text(root, "model")),
            most_output: body.member(root, "max_output_tokens").and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<Item> {
        let Some(input) = body.member(body.root(), "input") else { return Vec::new() };
        if body.kind(input) == Kind::String {
            let empty = body.text(input).is_none_or(|text| text.is_empty());
            let saying = if empty { Saying::Nothing } else { Saying::Content };
            return vec![Item { message: input, target: input, role: Role::User, saying }];
        }
        let answers = body.children(input).filter(|item| kind_of(body, *item).ends_with("_call_output"));
        let answered: BTreeSet<String> = answers.filter_map(|item| owned(body.member_text(item, "call_id"))).collect();
        let mut items = Vec::new();
        for item in body.children(input) {
            let kind = kind_of(body, item);
            let id = || body.member_text(item, "call_id").unwrap_or_default().into_owned();
            let (role, saying) = match kind.as_str() {
                "message" => {
                    let content = body.member(item, "content");
                    let empty = content.is_none_or(|content| match body.kind(content) {
                        Kind::String => body.text(content).is_none_or(|text| text.is_empty()),
                        _ => body.children(content).next().is_none(),
                    });
                    (role_of(body, item), if empty { Saying::Nothing } else { Saying::Content })
                }
                "reasoning" => (Role::Assistant, Saying::Sealed),
                "function_call" => {
                    (Role::Assistant, Saying::Call { id: id(), arguments: body.member(item, "arguments") })
                }
                "custom_tool_call" => (Role::Assistant, Saying::Call { id: id(), arguments: None }),
                // Some of these are answered by the server itself.
                kind if kind.ends_with("_call") && answered.contains(&id()) => {
                    (Role::Assistant, Saying::Call { id: id(), arguments: None })
                }
                kind if kind.ends_with("_call_output") => (Role::Tool, Saying::Result { id: id() }),
                _ => (Role::Other, Saying::Content),
            };
            items.push(Item { message: item, target: item, role, saying });
        }
        items
    }

    fn appended(&self, body: &Document, said: &str) -> Option<Appended> {
        let input = body.member(body.root(), "input")?;
        let message = |said: &[u8]| {
            let begin = br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"#;
            [&begin[..], said, b"}]}"].concat()
        };
        Some(Appended::new(body, input, || message(body.raw(input)), message(&text::encode(said))))
    }

    fn validate(&self, body: &Document, problems: &mut Vec<Problem>) {
        known_roles(body, &self.messages(body), "`user`, `assistant`, `system` and `developer`", problems);
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
        if body.kind(output) == Kind::String {
            return Some(output);
        }
        let texts = body.children(output).filter_map(|part| body.member(part, "text"));
        texts.max_by_key(|text| body.raw(*text).len())
    }
}

fn item(body: &Document, group: &Group, projection: &mut Projection) {
    let target = group.target;
    let kind = kind_of(body, target);
    let new = |node, kind, label: String| Section {
        message_index: Some(group.index),
        deletable: true,
        deleted: group.presence == Presence::Deleted,
        ..Section::new(target, node, kind, label)
    };
    let id = || owned(body.member_text(target, "call_id"));
    match kind.as_str() {
        "message" => {
            let (kind, label) = match role_of(body, target) {
                Role::System => (SectionKind::System, "Developer"),
                Role::User => (SectionKind::User, "User"),
                Role::Assistant => (SectionKind::Assistant, "Assistant"),
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
            let name = owned(body.member_text(target, "name"));
            let arguments = body.member(target, "arguments").or(body.member(target, "input"));
            let parent = new(NodeType::Message, SectionKind::Tool, String::new());
            projection.push_call(&parent, target, (id(), name), arguments, arguments, 0);
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
            if let Some(leaf) = output.filter(|output| body.kind(*output) == Kind::String) {
                projection.push_text(body, section.with_text(leaf));
            } else {
                projection.push(section.clone());
                parts(body, &section, output, projection);
            }
        }
        _ => projection.push(new(NodeType::Message, SectionKind::Other, kind.clone())),
    }
}

/// Shows what a message says.
fn parts(body: &Document, section: &Section, content: Option<Target>, projection: &mut Projection) {
    let Some(content) = content else { return };
    if body.kind(content) == Kind::String {
        let part = Section::new(content, NodeType::ContentPart, section.kind, part_label(0)).within(section);
        return projection.push_text(body, Section { content_index: Some(0), ..part.with_text(content) });
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
            None if kind.contains("image") => {
                let label = format!("Image #{}", index + 1);
                projection.push(Section { content: ContentKind::Image, label, ..new.fixed("it is a picture") });
            }
            None => projection.push(Section { label: format!("{kind} #{}", index + 1), ..new }),
        }
    }
}
