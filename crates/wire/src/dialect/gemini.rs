//! Gemini `generateContent`.

use super::message::{ItemKind, MessageItem, MessageRole};
use super::project::{GroupRole, MemberLayout, Projection, SectionGroup, ToolCallSection, group_members, part_label};
use super::{AppendedMessage, Dialect, RequestHead, RequestIdentity, RequestPurpose, non_empty};
use crate::json::{Document, JsonKind, Presence, Target, text};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{RequestProblem, check_first_role, check_roles};

const SIGNED: &str = "the model signed it and wants it back unchanged; append a message instead";

#[derive(Clone, Copy, Debug)]
pub(super) struct GeminiRequests;

/// Returns a member that has a camel case and a snake case name.
fn either(body: &Document, of: Target, names: [&str; 2]) -> Option<Target> {
    names.into_iter().find_map(|name| body.member(of, name))
}

fn parts(body: &Document, content: Target) -> Vec<Target> {
    body.member(content, "parts").map(|parts| listed(body, parts)).unwrap_or_default()
}

/// Returns the values of a list; a single value counts as a list of one.
fn listed(body: &Document, list: Target) -> Vec<Target> {
    match body.kind(list) {
        JsonKind::Array => body.children(list).collect(),
        JsonKind::Object => vec![list],
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

/// Returns the id that links a call to its response. A call or response without an id is identified by the tool's name,
/// the model turn, and the index among the calls of this tool in the turn.
fn call_id(body: &Document, of: Target, turn: usize, before: &mut Vec<String>) -> String {
    let name = body.member_text(of, "name").unwrap_or_default().into_owned();
    let count = before.iter().filter(|other| **other == name).count();
    let id = format!("{name} {turn}.{count}");
    before.push(name);
    id
}

/// Returns the stated id of a call.
fn own_id(body: &Document, of: Target) -> Option<String> {
    non_empty(body.member_text(of, "id"))
}

impl Dialect for GeminiRequests {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn recognise(&self, head: &RequestHead, _: &Document) -> Option<RequestPurpose> {
        let (_, method) = head.route().rsplit_once(':')?;
        match method {
            // Without `alt=sse` the stream is a single JSON array, which cannot carry keep-alives before the first
            // item.
            "streamGenerateContent" if head.path.contains("alt=sse") => Some(RequestPurpose::Stream),
            "streamGenerateContent" | "generateContent" => Some(RequestPurpose::Response),
            "countTokens" => Some(RequestPurpose::CountTokens),
            _ => None,
        }
    }

    fn groups(&self, body: &Document) -> Vec<SectionGroup> {
        group_members(body, |name, _| match name {
            "systemInstruction" | "system_instruction" => MemberLayout::Single(GroupRole::System),
            "contents" => MemberLayout::List(GroupRole::Message),
            "cachedContent" | "cached_content" => MemberLayout::Single(GroupRole::Remote),
            "tools" => MemberLayout::NestedLists(GroupRole::Tool, ["functionDeclarations", "function_declarations"]),
            _ => MemberLayout::Single(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &SectionGroup, projection: &mut Projection) {
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
                let section = section.fixed("it is stored on the server, outside of this request");
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
                let name = non_empty(body.member_text(target, "name")).or_else(|| non_empty(first()));
                projection.push_tool(group, name, body.member(target, "description"));
            }
            _ => projection.push_setting(body, group),
        }
    }

    fn identity(&self, head: &RequestHead, body: &Document) -> RequestIdentity {
        let model = head.route().rsplit_once("/models/").and_then(|(_, rest)| rest.rsplit_once(':'));
        let config = either(body, body.root(), ["generationConfig", "generation_config"]);
        let most = config.and_then(|config| either(body, config, ["maxOutputTokens", "max_output_tokens"]));
        RequestIdentity {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned),
            turn: None,
            model: model.map(|(model, _)| model.to_owned()),
            max_output_tokens: most.and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<MessageItem> {
        let mut items = Vec::new();
        let mut turn = 0;
        for message in body.member(body.root(), "contents").into_iter().flat_map(|list| listed(body, list)) {
            let role = match body.member_text(message, "role").as_deref() {
                Some("user") | None => MessageRole::User,
                Some("model") => MessageRole::Assistant,
                Some("function") => MessageRole::Tool,
                _ => MessageRole::Other,
            };
            turn += usize::from(role == MessageRole::Assistant);
            let (mut called, mut answered) = (Vec::new(), Vec::new());
            let parts = parts(body, message);
            if parts.is_empty() {
                items.push(MessageItem { message, target: message, role, kind: ItemKind::Empty });
            }
            for part in parts {
                let item_kind = if let Some(call) = call(body, part) {
                    ItemKind::Call { id: call_id(body, call, turn, &mut called), arguments: None }
                } else if let Some(answer) = answer(body, part) {
                    ItemKind::Result { id: call_id(body, answer, turn, &mut answered) }
                } else if is_signed(body, part) {
                    ItemKind::Sealed
                } else {
                    ItemKind::Content
                };
                items.push(MessageItem { message, target: part, role, kind: item_kind });
            }
        }
        items
    }

    fn user_message(&self, body: &Document, prompt: &str) -> Option<AppendedMessage> {
        let contents = body.member(body.root(), "contents")?;
        let message = [&br#"{"role":"user","parts":[{"text":"#[..], &text::encode(prompt), b"}]}"].concat();
        Some(AppendedMessage::new(body, contents, || body.value_bytes(contents), message))
    }

    fn validate(&self, body: &Document, problems: &mut Vec<RequestProblem>) {
        let items = self.messages(body);
        check_first_role(&items, problems);
        check_roles(body, &items, "`user`, `model` and `function`", problems);
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
        let texts = body.children(response).filter(|field| body.kind(*field) == JsonKind::String);
        texts.max_by_key(|text| body.raw(*text).len())
    }
}

/// Projects the parts of a message.
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
            let (id, name) = (own_id(body, called), non_empty(body.member_text(called, "name")));
            projection.push_call(section, ToolCallSection { target: part, id, name, arguments, index: calls });
            calls += 1;
            if let Some(section) = projection.sections.last_mut() {
                section.content_index = Some(index);
                if is_signed(body, part) {
                    section.editable = Editable::No(SIGNED);
                }
            }
        } else if let Some(answered) = answer(body, part) {
            let name = non_empty(body.member_text(answered, "name"));
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
            projection.push_image(new, index);
        } else {
            projection.push(new);
        }
    }
}
