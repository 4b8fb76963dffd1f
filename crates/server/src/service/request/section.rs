//! Sections, problems and consequences as they are sent.

use sayso_api::proto;
use sayso_api::proto::section;
use sayso_wire::json::Target;
use sayso_wire::tokens::{Exactness, TokenCounter, Tokens};
use sayso_wire::{
    Consequences, ContentKind, Editable, ModelRequest, NodeType, Override, Problem, Repair, Section, SectionKind,
};

use super::veil::Veil;

/// What saved edits there are, and which of them were applied to a request.
#[derive(Debug, Default)]
pub(super) struct SavedHere {
    /// Those that count for its session.
    pub(super) edits: Vec<Override>,
    /// Where some of them were applied: where they were made.
    pub(super) applied: Vec<String>,
}

impl SavedHere {
    /// The saved edit that made a section what it is; of several, the narrowest.
    pub(super) fn of(&self, request: &ModelRequest, section: &Section) -> Option<section::Saved> {
        let edited = section.deleted || request.is_edited(section.leaf.unwrap_or(section.id.target));
        if self.applied.is_empty() || !edited {
            return None;
        }
        let made = |edit: &&Override| {
            let same = match &edit.content {
                Some(content) => !section.deleted && *request.content(section) == **content,
                None => section.deleted,
            };
            same && edit.anchor.node == section.node && self.applied.contains(&edit.anchor.path)
        };
        let edit = self.edits.iter().filter(made).max_by_key(|edit| edit.scope)?;
        Some(section::Saved {
            scope: super::scope_message(edit.scope).into(),
            saved_ms: edit.updated_at,
            ..Default::default()
        })
    }
}

pub(super) fn tokens(tokens: Tokens) -> proto::Tokens {
    proto::Tokens { count: tokens.count, exact: tokens.exactness == Exactness::Exact, ..Default::default() }
}

/// As much of a text as is wanted, cut at a character.
fn cut(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit.min(text.len()))].to_owned()
}

/// A section as it is sent.
pub(super) fn section(
    request: &ModelRequest,
    section: &Section,
    counter: &mut TokenCounter,
    total: Tokens,
    limit: usize,
    (saved, veil): (&SavedHere, &Veil),
) -> proto::Section {
    let content = request.content(section);
    let raw_path = request.raw_path(section);
    let target = section.leaf.unwrap_or(section.id.target);
    // A tag is a piece of a text that is counted as a whole.
    let own = match (&section.range, section.deleted) {
        (_, true) => Tokens::ZERO,
        (Some(_), false) => counter.count_bytes(request.tokenizer(), content.as_bytes()),
        (None, false) => request.tokens(counter, section.id.target),
    };
    #[expect(clippy::cast_precision_loss, reason = "a share is shown in percent")]
    let share = if total.count == 0 { 0.0 } else { own.count as f64 / total.count as f64 };
    let (editable, why) = match section.editable {
        Editable::Yes => (section::Editable::Yes, None),
        Editable::InParts => (section::Editable::InParts, None),
        Editable::No(why) => (section::Editable::No, Some(why.to_owned())),
    };
    let index = |index: Option<usize>| index.and_then(|index| u32::try_from(index).ok());
    let tool = section.tool.as_ref().map(|tool| section::Invocation {
        id: tool.id.clone(),
        name: tool.name.clone(),
        arguments: tool
            .arguments
            .and_then(|target| arguments(request, target))
            .map(|text| cut(&veil.hide(&text), limit)),
        ..Default::default()
    });
    proto::Section {
        id: section.id.to_string(),
        parent: section.parent.map(|parent| parent.to_string()),
        node: node(section.node).into(),
        kind: kind(section.kind).into(),
        label: section.label.clone(),
        raw_path: raw_path.clone(),
        content_kind: content_kind(section.content).into(),
        content: cut(&veil.hide_at(&raw_path, &content), limit),
        content_size: content.len() as u64,
        tokens: tokens(own).into(),
        share,
        editable: editable.into(),
        fixed_because: why,
        deletable: section.deletable,
        deleted: section.deleted,
        pinned: request.is_pinned(section.id),
        collapsed: request.is_collapsed(section.id),
        edited: request.is_edited(target),
        saved: saved.of(request, section).into(),
        tool: tool.into(),
        message_index: index(section.message_index),
        content_index: index(section.content_index),
        tool_call_index: index(section.tool_call_index),
        ..Default::default()
    }
}

fn arguments(request: &ModelRequest, target: Target) -> Option<String> {
    let document = request.document().filter(|document| document.knows(target))?;
    let text = document.text(target).map(std::borrow::Cow::into_owned);
    Some(text.unwrap_or_else(|| String::from_utf8_lossy(&document.value_bytes(target)).into_owned()))
}

pub(super) fn node(node: NodeType) -> section::NodeType {
    match node {
        NodeType::Message => section::NodeType::Message,
        NodeType::ContentPart => section::NodeType::ContentPart,
        NodeType::ToolCall => section::NodeType::ToolCall,
        NodeType::Metadata => section::NodeType::Metadata,
        NodeType::Tag => section::NodeType::Tag,
        NodeType::ToolSchema => section::NodeType::ToolSchema,
        NodeType::RequestOption => section::NodeType::RequestOption,
        NodeType::Remote => section::NodeType::Remote,
        NodeType::Raw => section::NodeType::Raw,
    }
}

pub(super) fn kind(kind: SectionKind) -> section::Kind {
    match kind {
        SectionKind::System => section::Kind::System,
        SectionKind::User => section::Kind::User,
        SectionKind::Assistant => section::Kind::Assistant,
        SectionKind::Context => section::Kind::Context,
        SectionKind::Tool => section::Kind::Tool,
        SectionKind::History => section::Kind::History,
        SectionKind::Prediction => section::Kind::Prediction,
        SectionKind::Other => section::Kind::Other,
    }
}

fn content_kind(kind: ContentKind) -> section::ContentKind {
    match kind {
        ContentKind::Text => section::ContentKind::Text,
        ContentKind::Image => section::ContentKind::Image,
        ContentKind::Opaque => section::ContentKind::Opaque,
        ContentKind::CacheBreakpoint => section::ContentKind::CacheBreakpoint,
        ContentKind::Other => section::ContentKind::Other,
    }
}

fn path(request: &ModelRequest, target: Target) -> String {
    request.document().filter(|document| document.knows(target)).map(|body| body.path(target)).unwrap_or_default()
}

/// What is wrong with a request, as it would be sent.
pub(super) fn problems(request: &ModelRequest) -> Vec<proto::RequestProblem> {
    let blocking = request.blocking();
    let blocks =
        |problem: &Problem| blocking.iter().any(|one| one.kind == problem.kind && one.target == problem.target);
    let message = |problem: &Problem| proto::RequestProblem {
        kind: serde_json::to_value(problem.kind)
            .ok()
            .and_then(|name| Some(name.as_str()?.to_owned()))
            .unwrap_or_default(),
        path: path(request, problem.target),
        message: problem.message.clone(),
        blocks: blocks(problem),
        repairs: problem.repairs.iter().map(|mend| repair(request, mend)).collect(),
        ..Default::default()
    };
    request.problems().iter().map(message).collect()
}

fn repair(request: &ModelRequest, repair: &Repair) -> proto::Repair {
    use proto::oneof::repair::Repair as Choice;
    let (target, choice) = match repair {
        Repair::Delete(target) => (*target, Choice::Delete(target.to_string())),
        Repair::Restore(target) => (*target, Choice::Restore(target.to_string())),
        Repair::MoveBefore(target, before) => {
            let moved =
                proto::repair::Move { what: target.to_string(), before: before.to_string(), ..Default::default() };
            (*target, Choice::Move(Box::new(moved)))
        }
    };
    let (name, path) = (repair.name().to_owned(), path(request, target));
    proto::Repair { name, path, repair: Some(choice), ..Default::default() }
}

/// What the edits of a request mean.
pub(super) fn consequences(request: &ModelRequest, found: &Consequences) -> proto::RequestConsequences {
    let paths = |targets: &[Target]| targets.iter().map(|target| path(request, *target)).collect();
    proto::RequestConsequences {
        before: tokens(found.before).into(),
        after: tokens(found.after).into(),
        reread: tokens(found.reread).into(),
        breakpoints_lost: paths(&found.breakpoints_lost),
        sealed_after: paths(&found.sealed_after),
        alternative: found.alternative().map(str::to_owned),
        ..Default::default()
    }
}
