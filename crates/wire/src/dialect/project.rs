//! What dialects have in common when they show what is in a request.

use std::collections::BTreeMap;

use crate::json::{Document, Kind, Presence, Target};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionId, SectionKind};
use crate::tags::tags;

/// What a value of a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupRole {
    /// Instructions.
    System,
    /// What lives on the server.
    Remote,
    /// A message.
    Message,
    /// What the answer is expected to be.
    Prediction,
    /// The description of a tool.
    Tool,
    /// A setting.
    Setting,
}

/// A value of a body that is a section of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The value.
    pub target: Target,
    /// What it is.
    pub role: GroupRole,
    /// Whether it was taken out.
    pub presence: Presence,
    /// Which of its kind it is, as they are counted now.
    pub index: usize,
}

/// Sections in the making.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// What is made.
    pub sections: Vec<Section>,
    /// Which tool a call is of, for the label of its result.
    pub calls: BTreeMap<String, String>,
}

/// What a member of a body is.
pub(super) enum Sort {
    /// One group.
    One(GroupRole),
    /// A list with a group for each element. What should be a list and is none is one group.
    Each(GroupRole),
    /// A list of objects of which each has a list under one of these names, with a group for each element of that.
    Within(GroupRole, [&'static str; 2]),
}

/// The groups of a body, in the order in which a person reads them.
pub(super) fn grouped(body: &Document, sort: impl Fn(&str, Kind) -> Sort) -> Vec<Group> {
    let mut groups = Vec::new();
    for child in body.all_children(body.root()) {
        let (target, presence, kind) = (child.value, child.presence, body.kind(child.value));
        let list = kind == Kind::Array && presence == Presence::Here;
        match sort(&body.key(target).unwrap_or_default(), kind) {
            Sort::Each(role) if list => each(body, target, role, &mut groups),
            Sort::Within(role, names) if list => {
                for element in body.all_children(target) {
                    let inner = names.into_iter().find_map(|name| body.member(element.value, name));
                    match inner.filter(|_| element.presence == Presence::Here) {
                        Some(inner) => each(body, inner, role, &mut groups),
                        None => {
                            groups.push(Group { target: element.value, role, presence: element.presence, index: 0 });
                        }
                    }
                }
            }
            Sort::One(role) | Sort::Each(role) | Sort::Within(role, _) => {
                groups.push(Group { target, role, presence, index: 0 });
            }
        }
    }
    groups.sort_by_key(|group| group.role);
    groups
}

/// One group for each element of a list, also for those that were taken out.
fn each(body: &Document, list: Target, role: GroupRole, groups: &mut Vec<Group>) {
    let mut index = 0;
    for child in body.all_children(list) {
        groups.push(Group { target: child.value, role, presence: child.presence, index });
        index += usize::from(child.presence == Presence::Here);
    }
}

/// Tags in which agents put what the user did not say.
fn is_context(name: &str) -> bool {
    let known = ["attachment", "environment", "reminder", "context", "instructions", "file", "selection", "workspace"];
    known.iter().any(|word| name.contains(word))
}

impl Projection {
    /// Adds a section.
    pub(super) fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Adds a section that has the text of a leaf, and below it what is between tags.
    pub(super) fn push_text(&mut self, body: &Document, mut section: Section) {
        let Some(leaf) = section.leaf.filter(|leaf| body.kind(*leaf) == Kind::String) else {
            return self.push(section);
        };
        let raw = body.raw(leaf);
        let raw = &raw[1..raw.len() - 1];
        let found = tags(raw);
        let wholly = found.first().is_some_and(|tag| {
            let trim = |bytes: &[u8]| bytes.trim_ascii().is_empty() || bytes == b"\\n";
            tag.depth == 0 && is_context(tag.name) && trim(&raw[..tag.whole.start]) && trim(&raw[tag.whole.end..])
        });
        if wholly && section.kind == SectionKind::User {
            section.kind = SectionKind::Context;
        }
        let fixed = section.editable;
        let mut open: Vec<SectionId> = vec![section.id];
        let (kind, message_index, content_index) = (section.kind, section.message_index, section.content_index);
        let (target, deleted) = (section.id.target, section.deleted);
        self.push(section);
        for (number, tag) in found.iter().enumerate() {
            open.truncate(tag.depth as usize + 1);
            let id = SectionId { target, tag: Some(number as u32) };
            let kind = if kind == SectionKind::User && is_context(tag.name) { SectionKind::Context } else { kind };
            self.push(Section {
                id,
                parent: open.last().copied(),
                content: ContentKind::Text,
                leaf: Some(leaf),
                range: Some(tag.inner.clone()),
                editable: fixed,
                deletable: fixed == Editable::Yes,
                deleted,
                message_index,
                content_index,
                ..Section::new(target, NodeType::Tag, kind, format!("<{}>", tag.name))
            });
            open.push(id);
        }
    }

    /// Adds the other fields of a message, those that are neither shown nor named here.
    pub(super) fn push_fields(&mut self, body: &Document, parent: &Section, of: Target, shown: &[&str]) {
        for field in body.children(of) {
            let Some(key) = body.key(field) else { continue };
            if shown.contains(&key.as_ref()) {
                continue;
            }
            let breakpoint = key == "cache_control";
            let label = if breakpoint { "Cache breakpoint".to_owned() } else { key.into_owned() };
            let leaf = Some(field).filter(|field| body.kind(*field).is_leaf());
            self.push(Section {
                leaf,
                content: if breakpoint { ContentKind::CacheBreakpoint } else { ContentKind::Other },
                editable: if leaf.is_some() { Editable::Yes } else { Editable::InParts },
                deletable: true,
                content_index: parent.content_index,
                ..Section::new(field, NodeType::Metadata, SectionKind::Other, label).within(parent)
            });
        }
    }

    /// Adds the description of a tool.
    pub(super) fn push_tool(
        &mut self,
        body: &Document,
        group: &Group,
        name: Option<String>,
        description: Option<Target>,
    ) {
        let label = format!("Tool · {}", name.as_deref().unwrap_or("unnamed"));
        self.push(Section {
            leaf: description,
            content: ContentKind::Text,
            editable: if description.is_some() { Editable::Yes } else { Editable::InParts },
            tool: Some(Invocation { id: None, name, arguments: None }),
            deletable: true,
            deleted: group.presence == Presence::Deleted,
            collapsed: true,
            ..Section::new(group.target, NodeType::ToolSchema, SectionKind::Tool, label)
        });
        let _ = body;
    }

    /// Adds a setting.
    pub(super) fn push_setting(&mut self, body: &Document, group: &Group) {
        let leaf = Some(group.target).filter(|target| body.kind(*target).is_leaf());
        let label = body.key(group.target).unwrap_or_default().into_owned();
        self.push(Section {
            leaf,
            editable: if leaf.is_some() { Editable::Yes } else { Editable::InParts },
            deletable: true,
            deleted: group.presence == Presence::Deleted,
            collapsed: true,
            ..Section::new(group.target, NodeType::RequestOption, SectionKind::Other, label)
        });
    }

    /// A call of a tool within a message.
    pub(super) fn push_call(
        &mut self,
        parent: &Section,
        target: Target,
        (id, name): (Option<String>, Option<String>),
        arguments: Option<Target>,
        leaf: Option<Target>,
        index: usize,
    ) {
        if let (Some(id), Some(name)) = (&id, &name) {
            self.calls.insert(id.clone(), name.clone());
        }
        let label = format!("Tool call · {}", name.as_deref().or(id.as_deref()).unwrap_or("unnamed"));
        self.push(Section {
            leaf,
            editable: if leaf.is_some() { Editable::Yes } else { Editable::InParts },
            deletable: true,
            tool: Some(Invocation { id, name, arguments }),
            tool_call_index: Some(index),
            ..Section::new(target, NodeType::ToolCall, SectionKind::Tool, label).within(parent)
        });
    }

    /// The label of a tool's result.
    pub(super) fn result_label(&self, id: Option<&str>) -> (String, Option<String>) {
        let name = id.and_then(|id| self.calls.get(id)).cloned();
        let label = format!("Tool result · {}", name.as_deref().or(id).unwrap_or("of no call"));
        (label, name)
    }
}

/// The label of a part of a message.
pub(super) fn part_label(index: usize) -> String {
    format!("Content #{}", index + 1)
}
