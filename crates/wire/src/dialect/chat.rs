//! OpenAI Chat Completions, and all who speak like it.

use super::message::{Item, Role, Saying};
use super::project::{Group, GroupRole, Projection, Sort, grouped, part_label};
use super::{Appended, Dialect, Head, Marks, Purpose, owned};
use crate::json::{Document, Kind, Presence, Target, text};
use crate::section::{ContentKind, Invocation, NodeType, Section, SectionKind};
use crate::stream::Api;
use crate::validate::{Problem, ProblemKind};

/// OpenAI Chat Completions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chat;

fn role_of(body: &Document, message: Target) -> Role {
    match body.member_text(message, "role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::Other,
    }
}

fn list(body: &Document, of: Target, name: &str) -> Vec<Target> {
    let found = body.member(of, name).filter(|list| body.kind(*list) == Kind::Array);
    found.into_iter().flat_map(|list| body.children(list)).collect()
}

impl Dialect for Chat {
    fn api(&self) -> Api {
        Api::OpenAiChat
    }

    fn recognise(&self, head: &Head, body: &Document) -> Option<Purpose> {
        if !head.route().ends_with("/chat/completions") {
            return None;
        }
        Some(Purpose::by_flag(body))
    }

    fn groups(&self, body: &Document) -> Vec<Group> {
        grouped(body, |name, _| match name {
            "messages" => Sort::Each(GroupRole::Message),
            "tools" | "functions" => Sort::Each(GroupRole::Tool),
            "prediction" => Sort::One(GroupRole::Prediction),
            _ => Sort::One(GroupRole::Setting),
        })
    }

    fn project(&self, body: &Document, group: &Group, projection: &mut Projection) {
        let target = group.target;
        match group.role {
            GroupRole::Message => message(body, group, projection),
            GroupRole::Tool => {
                let inside = body.member(target, "function").or(body.member(target, "custom")).unwrap_or(target);
                let name = owned(body.member_text(inside, "name"));
                projection.push_tool(body, group, name, body.member(inside, "description"));
            }
            GroupRole::Prediction => {
                let section = Section {
                    deletable: true,
                    deleted: group.presence == Presence::Deleted,
                    ..Section::new(target, NodeType::Message, SectionKind::Prediction, "Prediction")
                };
                if let Some(leaf) = body.member(target, "content").filter(|content| body.kind(*content) == Kind::String)
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

    fn marks(&self, head: &Head, body: &Document) -> Marks {
        let root = body.root();
        let most = body.member(root, "max_completion_tokens").or(body.member(root, "max_tokens"));
        Marks {
            agent: head.agent().map(str::to_owned),
            session: head.session().map(str::to_owned),
            turn: None,
            model: owned(body.member_text(root, "model")),
            most_output: most.and_then(|most| body.number(most)),
            subagent: head.subagent(),
        }
    }

    fn messages(&self, body: &Document) -> Vec<Item> {
        let mut items = Vec::new();
        for message in list(body, body.root(), "messages") {
            let role = role_of(body, message);
            let item = |target, saying| Item { message, target, role, saying };
            let calls = list(body, message, "tool_calls");
            let content = body.member(message, "content");
            let parts = list(body, message, "content");
            let text = content.and_then(|content| body.text(content)).is_some_and(|text| !text.is_empty());
            // Results of the functions of old have no call's name.
            if let (Role::Tool, Some(id)) = (role, owned(body.member_text(message, "tool_call_id"))) {
                items.push(item(message, Saying::Result { id }));
            } else if text || !parts.is_empty() {
                items.push(item(content.unwrap_or(message), Saying::Content));
            } else if calls.is_empty() && body.member(message, "function_call").is_none() {
                items.push(item(message, Saying::Nothing));
            }
            for call in calls {
                let id = body.member_text(call, "id").unwrap_or_default().into_owned();
                let function = body.member(call, "function");
                let arguments = function.and_then(|function| body.member(function, "arguments"));
                items.push(item(call, Saying::Call { id, arguments }));
            }
        }
        items
    }

    fn appended(&self, body: &Document, said: &str) -> Option<Appended> {
        let list = body.member(body.root(), "messages")?;
        let value = [&br#"{"role":"user","content":"#[..], &text::encode(said), b"}"].concat();
        Some(Appended { to: list, value })
    }

    fn validate(&self, body: &Document, problems: &mut Vec<Problem>) {
        // Nothing may come between a call and its result but other results.
        let items = self.messages(body);
        let results =
            |id: &str| items.iter().any(|item| matches!(&item.saying, Saying::Result { id: own } if own == id));
        let mut open: Vec<&str> = Vec::new();
        let mut from = None;
        for item in &items {
            match &item.saying {
                Saying::Call { id, .. } if results(id) => {
                    open.push(id);
                    from = Some(item.message);
                }
                Saying::Result { id } => open.retain(|own| own != id),
                _ if !open.is_empty() && Some(item.message) != from => {
                    problems.push(Problem {
                        kind: ProblemKind::RoleOrder,
                        target: item.message,
                        message: format!("it comes between call `{}` and its result", open[0]),
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
        let content = body.member(section, "content").filter(|_| role_of(body, section) == Role::Tool)?;
        if body.kind(content) == Kind::String {
            return Some(content);
        }
        let texts = body.children(content).filter_map(|part| body.member(part, "text"));
        texts.max_by_key(|text| body.raw(*text).len())
    }
}

fn message(body: &Document, group: &Group, projection: &mut Projection) {
    let target = group.target;
    let id = owned(body.member_text(target, "tool_call_id"));
    let role = role_of(body, target);
    let mut tool = None;
    let (kind, label) = match role {
        Role::System => (SectionKind::System, "System".to_owned()),
        Role::User => (SectionKind::User, "User".to_owned()),
        Role::Assistant => (SectionKind::Assistant, "Assistant".to_owned()),
        Role::Tool => {
            let (label, name) = projection.result_label(id.as_deref());
            tool = Some(Invocation { id, name, arguments: None });
            (SectionKind::Tool, label)
        }
        Role::Other => (SectionKind::Other, "Message".to_owned()),
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
        let name = inside("name").and_then(|name| owned(body.text(name)));
        let arguments = inside("arguments").or(inside("input"));
        let id = owned(body.member_text(call, "id"));
        projection.push_call(&section, call, (id, name), arguments, arguments, index);
    }
    projection.push_fields(body, &section, target, &["role", "content", "tool_calls"]);
}

/// Shows what a message says.
fn parts(body: &Document, section: &Section, message: Target, projection: &mut Projection) {
    let Some(content) = body.member(message, "content") else { return };
    if body.kind(content) == Kind::String {
        let part = Section::new(content, NodeType::ContentPart, section.kind, part_label(0)).within(section);
        return projection.push_text(body, Section { content_index: Some(0), ..part.with_text(content) });
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
            ("image_url", _) => {
                let label = format!("Image #{}", index + 1);
                projection.push(Section { content: ContentKind::Image, label, ..new.fixed("it is a picture") });
            }
            (kind, _) => projection.push(Section { label: format!("{kind} #{}", index + 1), ..new }),
        }
    }
}
