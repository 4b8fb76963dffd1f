//! Gemini's generateContent.

use super::message::{Item, Role, Saying};
use super::project::{Group, GroupRole, Projection, Sort, grouped, part_label};
use super::{Appended, Dialect, Head, Marks, Purpose, owned};
use crate::json::{Document, Kind, Presence, Target, text};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{Problem, begins_with_user, known_roles};

const SIGNED: &str = "the model signed it and wants it back unchanged; append a message instead";

/// Gemini's generateContent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemini;

/// A member that is written in one of two ways.
fn either(body: &Document, of: Target, names: [&str; 2]) -> Option<Target> {
    names.into_iter().find_map(|name| body.member(of, name))
}

fn parts(body: &Document, content: Target) -> Vec<Target> {
    body.member(content, "parts").map(|parts| listed(body, parts)).unwrap_or_default()
}

/// The values of a list; a single one may stand in the place of a list.
fn listed(body: &Document, list: Target) -> Vec<Target> {
    match body.kind(list) {
        Kind::Array => body.children(list).collect(),
        Kind::Object => vec![list],
        _ => Vec::new(),
    }
}

fn call(body: &Document, part: Target) -> Option<Target> {
    either(body, part, ["functionCall", "function_call"])
}

fn answer(body: &Document, part: Target) -> Option<Target> {
    either(body, part, ["functionResponse", "function_response"])
}

fn is_signed(body: &Document, part: Target) -> bool {
    either(body, part, ["thoughtSignature", "thought_signature"]).is_some()
}

/// The name by which a call and its answer know each other: one of them may have an id where the other has none, so that it is the
/// tool's, with which message of the model called it, and how often it had done so before in that message.
fn call_id(body: &Document, of: Target, turn: usize, before: &mut Vec<String>) -> String {
    let name = body.member_text(of, "name").unwrap_or_default().into_owned();
    let count = before.iter().filter(|other| **other == name).count();
    let id = format!("{name} {turn}.{count}");
    before.push(name);
    id
}

/// The name of a call itself, if it has one.
fn own_id(body: &Document, of: Target) -> Option<String> {
    owned(body.member_text(of, "id"))
}

impl Dialect for Gemini {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn recognise(&self, head: &Head, _: &Document) -> Option<Purpose> {
        let (_, method) = head.route().rsplit_once(':')?;
        match method {
            // Without events it is one JSON array, in which nothing can be said before the model does.
            "streamGenerateContent" if head.path.contains("alt=sse") => Some(Purpose::Stream),
            "streamGenerateContent" | "generateContent" => Some(Purpose::Answer),
            "countTokens" => Some(Purpose::CountTokens),
            _ => None,
        }
    }

    fn groups(&self, body: &Document) -> Vec<Group> {
        grouped(body, |name, _| match name {
            "systemInstruction" | "system_instruction" => Sort::One(GroupRole::System),
            "contents" => Sort::Each(GroupRole::Message),
            "cachedContent" | "cached_content" => Sort::One(GroupRole::Remote),
            "tools" => Sort::Within(GroupRole::Tool, ["functionDeclarations", "function_declarations"]),
            _ => Sort::One(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &Group, projection: &mut Projection) {
        let target = group.target;
        let new = |kind, label: &str| Section {
            deletable: true,
            deleted: group.presence == Presence::Deleted,
            ..Section::new(target, NodeType::Message, kind, label)
        };
        match group.role {
            GroupRole::System => {
                let section = new(SectionKind::System, "System instruction");
                projection.push(section.clone());
                content(body, &section, projection);
            }
            GroupRole::Remote => {
                let section =
                    Section::new(target, NodeType::Remote, SectionKind::History, "Content cached on the server");
                let section = section.fixed("it is kept on the server and is not in this request");
                let deleted = group.presence == Presence::Deleted;
                projection.push(Section { deletable: true, deleted, leaf: Some(target), ..section });
            }
            GroupRole::Message => {
                let own = parts(body, target);
                let answers = !own.is_empty() && own.iter().all(|part| answer(body, *part).is_some());
                let (kind, label) = match body.member_text(target, "role").as_deref() {
                    Some("model") => (SectionKind::Assistant, "Model"),
                    _ if answers => (SectionKind::Tool, "Tool results"),
                    Some("user") | None => (SectionKind::User, "User"),
                    Some("function") => (SectionKind::Tool, "Tool results"),
                    Some("system") => (SectionKind::System, "System"),
                    _ => (SectionKind::Other, "Message"),
                };
                let section = Section { message_index: Some(group.index), ..new(kind, label) };
                projection.push(section.clone());
                content(body, &section, projection);
            }
            GroupRole::Tool => {
                let first = || body.children(target).next().and_then(|member| body.key(member));
                let name = owned(body.member_text(target, "name")).or_else(|| owned(first()));
                projection.push_tool(body, group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn marks(&self, head: &Head, body: &Document) -> Marks {
        let model = head.route().rsplit_once("/models/").and_then(|(_, rest)| rest.rsplit_once(':'));
        let config = either(body, body.root(), ["generationConfig", "generation_config"]);
        let most = config.and_then(|config| either(body, config, ["maxOutputTokens", "max_output_tokens"]));
        Marks {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned),
            turn: None,
            model: model.map(|(model, _)| model.to_owned()),
            most_output: most.and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<Item> {
        let mut items = Vec::new();
        let mut turn = 0;
        for message in body.member(body.root(), "contents").into_iter().flat_map(|list| listed(body, list)) {
            let role = match body.member_text(message, "role").as_deref() {
                Some("user") | None => Role::User,
                Some("model") => Role::Assistant,
                Some("function") => Role::Tool,
                _ => Role::Other,
            };
            turn += usize::from(role == Role::Assistant);
            let (mut called, mut answered) = (Vec::new(), Vec::new());
            let parts = parts(body, message);
            if parts.is_empty() {
                items.push(Item { message, target: message, role, saying: Saying::Nothing });
            }
            for part in parts {
                let saying = if let Some(call) = call(body, part) {
                    Saying::Call { id: call_id(body, call, turn, &mut called), arguments: None }
                } else if let Some(answer) = answer(body, part) {
                    Saying::Result { id: call_id(body, answer, turn, &mut answered) }
                } else if is_signed(body, part) {
                    Saying::Sealed
                } else {
                    Saying::Content
                };
                items.push(Item { message, target: part, role, saying });
            }
        }
        items
    }

    fn appended(&self, body: &Document, said: &str) -> Option<Appended> {
        let contents = body.member(body.root(), "contents")?;
        let message = [&br#"{"role":"user","parts":[{"text":"#[..], &text::encode(said), b"}]}"].concat();
        Some(Appended::new(body, contents, || body.value_bytes(contents), message))
    }

    fn validate(&self, body: &Document, problems: &mut Vec<Problem>) {
        let items = self.messages(body);
        begins_with_user(&items, problems);
        known_roles(body, &items, "`user`, `model` and `function`", problems);
    }

    fn members(&self) -> &'static [&'static str] {
        &[
            "contents",
            "systemInstruction",
            "system_instruction",
            "tools",
            "toolConfig",
            "tool_config",
            "generationConfig",
            "generation_config",
            "safetySettings",
            "safety_settings",
            "cachedContent",
            "cached_content",
            "labels",
            "model",
            "store",
            "serviceTier",
        ]
    }

    fn reading_order(&self) -> &'static [&'static str] {
        &["cachedContent", "cached_content", "systemInstruction", "system_instruction", "tools", "contents"]
    }

    fn result_text(&self, body: &Document, section: Target) -> Option<Target> {
        let response = body.member(answer(body, section)?, "response")?;
        let texts = body.children(response).filter(|field| body.kind(*field) == Kind::String);
        texts.max_by_key(|text| body.raw(*text).len())
    }
}

/// Shows the parts of a message.
fn content(body: &Document, section: &Section, projection: &mut Projection) {
    let mut calls = 0;
    for (index, part) in parts(body, section.id.target).into_iter().enumerate() {
        let new = Section {
            content_index: Some(index),
            deletable: true,
            ..Section::new(part, NodeType::ContentPart, section.kind, part_label(index)).within(section)
        };
        if let Some(called) = call(body, part) {
            let arguments = body.member(called, "args");
            let (id, name) = (own_id(body, called), owned(body.member_text(called, "name")));
            projection.push_call(section, part, (id, name), arguments, arguments, calls);
            calls += 1;
            if let Some(section) = projection.sections.last_mut() {
                section.content_index = Some(index);
                if is_signed(body, part) {
                    section.editable = Editable::No(SIGNED);
                }
            }
        } else if let Some(answered) = answer(body, part) {
            let name = owned(body.member_text(answered, "name"));
            let label = format!("Tool result · {}", name.as_deref().unwrap_or("of no call"));
            let leaf = body.member(answered, "response");
            let tool = Some(Invocation { id: own_id(body, answered), name, arguments: None });
            let editable = if leaf.is_some() { Editable::Yes } else { Editable::InParts };
            projection.push(Section { tool, leaf, label, editable, kind: SectionKind::Tool, ..new });
        } else if let Some(leaf) = body.member(part, "text") {
            let thought = body.member(part, "thought").is_some_and(|thought| body.is_true(thought));
            let text = new.with_text(leaf);
            if thought || is_signed(body, part) {
                let label = if thought { "Thinking".to_owned() } else { text.label.clone() };
                projection.push(Section { content: ContentKind::Opaque, label, ..text.fixed(SIGNED) });
            } else {
                projection.push_text(body, text);
            }
        } else if either(body, part, ["inlineData", "inline_data"]).or(body.member(part, "fileData")).is_some() {
            let label = format!("Image #{}", index + 1);
            projection.push(Section { content: ContentKind::Image, label, ..new.fixed("it is a picture") });
        } else {
            projection.push(new);
        }
    }
}
