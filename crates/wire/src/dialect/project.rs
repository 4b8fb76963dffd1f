//! Projection of request bodies into sections, shared by all dialects.

use std::collections::BTreeMap;

use crate::json::{Document, JsonKind, Presence, Target};
use crate::section::{ContentKind, Editable, Invocation, NodeType, Section, SectionId, SectionKind};
use crate::tags::tags;

/// The role of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupRole {
    System,
    /// A reference to content on the server.
    Remote,
    Message,
    Prediction,
    Tool,
    Setting,
}

/// A value of a body that is displayed as a group of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionGroup {
    pub target: Target,
    pub role: GroupRole,
    /// Presence in the body.
    pub presence: Presence,
    /// Current index among the groups of its role.
    pub index: usize,
}

/// Sections under construction.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    pub sections: Vec<Section>,
    /// Names of the called tools by call id, for the labels of their results.
    pub calls: BTreeMap<String, String>,
}

/// A tool call, as input of [`Projection::push_call`].
pub(super) struct ToolCallSection {
    pub(super) target: Target,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Target>,
    /// Index among the calls of the message.
    pub(super) index: usize,
}

/// The layout of a top-level member.
pub(super) enum MemberLayout {
    Single(GroupRole),
    /// A list with one group for each element. A value that is not a list is a single group.
    List(GroupRole),
    /// A list of objects, each with a nested list under one of these names. Every element of a nested list is a group.
    NestedLists(GroupRole, [&'static str; 2]),
}

/// Returns the groups of a body in display order.
pub(super) fn group_members(body: &Document, sort: impl Fn(&str, JsonKind) -> MemberLayout) -> Vec<SectionGroup> {
    let mut groups = Vec::new();
    for child in body.all_children(body.root()) {
        let (target, presence, kind) = (child.value, child.presence, body.kind(child.value));
        let list = kind == JsonKind::Array && presence == Presence::Present;
        match sort(&body.key(target).unwrap_or_default(), kind) {
            MemberLayout::List(role) if list => push_elements(body, target, role, &mut groups),
            MemberLayout::NestedLists(role, names) if list => {
                for element in body.all_children(target) {
                    let inner = names.into_iter().find_map(|name| body.member(element.value, name));
                    match inner.filter(|_| element.presence == Presence::Present) {
                        Some(inner) => push_elements(body, inner, role, &mut groups),
                        None => {
                            groups.push(SectionGroup {
                                target: element.value,
                                role,
                                presence: element.presence,
                                index: 0,
                            });
                        }
                    }
                }
            }
            MemberLayout::Single(role) | MemberLayout::List(role) | MemberLayout::NestedLists(role, _) => {
                groups.push(SectionGroup { target, role, presence, index: 0 });
            }
        }
    }
    groups.sort_by_key(|group| group.role);
    groups
}

/// Adds a group for each element of a list, including deleted ones.
fn push_elements(body: &Document, list: Target, role: GroupRole, groups: &mut Vec<SectionGroup>) {
    let mut index = 0;
    for child in body.all_children(list) {
        groups.push(SectionGroup { target: child.value, role, presence: child.presence, index });
        index += usize::from(child.presence == Presence::Present);
    }
}

/// `true` for tags in which agents put their own context.
fn is_context(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "attachment",
        "environment",
        "reminder",
        "context",
        "instructions",
        "file",
        "selection",
        "workspace",
        "datetime",
        "local-command",
    ];
    WORDS.iter().any(|word| name.contains(word))
}

/// `true` if a text in JSON notation is white space only.
fn is_blank(raw: &[u8]) -> bool {
    let mut rest = raw.trim_ascii();
    while let Some(after) = [b"\\n", b"\\r", b"\\t"].iter().find_map(|escape| rest.strip_prefix(*escape)) {
        rest = after.trim_ascii();
    }
    rest.is_empty()
}

impl Projection {
    pub(super) fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Adds a section with the text of a leaf, and below it one section for each tag in the text.
    pub(super) fn push_text(&mut self, body: &Document, mut section: Section) {
        let Some(leaf) = section.leaf.filter(|leaf| body.kind(*leaf) == JsonKind::String) else {
            return self.push(section);
        };
        let raw = body.raw(leaf);
        let raw = &raw[1..raw.len() - 1];
        let found = tags(raw);
        let wholly = found.first().is_some_and(|tag| {
            tag.depth == 0
                && is_context(tag.name)
                && is_blank(&raw[..tag.whole.start])
                && is_blank(&raw[tag.whole.end..])
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

    /// Adds the other fields of a message, except the members in `shown`.
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
    pub(super) fn push_tool(&mut self, group: &SectionGroup, name: Option<String>, description: Option<Target>) {
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
    }

    pub(super) fn push_setting(&mut self, body: &Document, group: &SectionGroup) {
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

    /// Adds a tool call within a message.
    pub(super) fn push_call(&mut self, parent: &Section, call: ToolCallSection) {
        let ToolCallSection { target, id, name, arguments, index } = call;
        if let (Some(id), Some(name)) = (&id, &name) {
            self.calls.insert(id.clone(), name.clone());
        }
        let label = format!("Tool call · {}", name.as_deref().or(id.as_deref()).unwrap_or("unnamed"));
        self.push(Section {
            leaf: arguments,
            editable: if arguments.is_some() { Editable::Yes } else { Editable::InParts },
            deletable: true,
            tool: Some(Invocation { id, name, arguments }),
            tool_call_index: Some(index),
            ..Section::new(target, NodeType::ToolCall, SectionKind::Tool, label).within(parent)
        });
    }

    /// Adds the text of a message whose content is a single string.
    pub(super) fn push_only_text(&mut self, body: &Document, message: &Section, content: Target) {
        let part = Section::new(content, NodeType::ContentPart, message.kind, part_label(0)).within(message);
        self.push_text(body, Section { content_index: Some(0), ..part.with_text(content) });
    }

    /// Adds a message part that is an image.
    pub(super) fn push_image(&mut self, part: Section, index: usize) {
        let label = format!("Image #{}", index + 1);
        self.push(Section { content: ContentKind::Image, label, ..part.fixed("it is an image") });
    }

    /// Returns the label of a tool result, with the name of the tool.
    pub(super) fn result_label(&self, id: Option<&str>) -> (String, Option<String>) {
        let name = id.and_then(|id| self.calls.get(id)).cloned();
        let label = format!("Tool result · {}", name.as_deref().or(id).unwrap_or("of no call"));
        (label, name)
    }
}

/// Returns the label of a message part.
pub(super) fn part_label(index: usize) -> String {
    format!("Content #{}", index + 1)
}
