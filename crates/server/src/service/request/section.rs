//! Sections, problems and edit impacts as messages.

use sayso_api::proto;
use sayso_api::proto::section;
use sayso_wire::json::Target;
use sayso_wire::tokens::{TokenCounter, Tokens};
use sayso_wire::{EditImpact, Editable, ModelRequest, Override, Repair, RequestProblem, Section};

use super::mask::CredentialMask;

/// Overrides of a request.
#[derive(Debug, Default)]
pub(super) struct RequestOverrides {
    /// All overrides that apply to its session.
    pub(super) edits: Vec<Override>,
    /// Paths, as saved, of the applied ones.
    pub(super) applied: Vec<String>,
}

impl RequestOverrides {
    /// The applied override of a section: the narrowest of several.
    pub(super) fn of(&self, request: &ModelRequest, section: &Section) -> Option<section::AppliedOverride> {
        let edited = section.deleted || request.is_edited(section.leaf.unwrap_or(section.id.target));
        if self.applied.is_empty() || !edited {
            return None;
        }
        let is_applied = |edit: &&Override| {
            let has_content = match &edit.content {
                Some(content) => !section.deleted && *request.content(section) == **content,
                None => section.deleted,
            };
            has_content && edit.anchor.node == section.node && self.applied.contains(&edit.anchor.path)
        };
        let edit = self.edits.iter().filter(is_applied).max_by_key(|edit| edit.scope)?;
        Some(section::AppliedOverride {
            scope: proto::OverrideScope::from(edit.scope).into(),
            saved_ms: edit.updated_at,
            ..Default::default()
        })
    }
}

/// Truncates a text to a number of bytes, at a character boundary.
fn truncated(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit.min(text.len()))].to_owned()
}

/// Builds the message of a section. `limit` is in bytes and applies to each text.
pub(super) fn section(
    request: &ModelRequest,
    section: &Section,
    counter: &mut TokenCounter,
    total: Tokens,
    limit: usize,
    (overrides, mask): (&RequestOverrides, &CredentialMask),
) -> proto::Section {
    let content = request.content(section);
    let raw_path = request.raw_path(section);
    let target = section.leaf.unwrap_or(section.id.target);
    // A tag section is a part of a text, so the cached count of the text does not apply.
    let own = match (&section.range, section.deleted) {
        (_, true) => Tokens::ZERO,
        (Some(_), false) => counter.count_bytes(request.tokenizer(), content.as_bytes()),
        (None, false) => request.tokens(counter, section.id.target),
    };
    #[expect(clippy::cast_precision_loss, reason = "a share is shown in percent")]
    let share = if total.count == 0 { 0.0 } else { own.count as f64 / total.count as f64 };
    let (editable, read_only_reason) = match section.editable {
        Editable::Yes => (section::Editable::Yes, None),
        Editable::InParts => (section::Editable::InParts, None),
        Editable::No(reason) => (section::Editable::No, Some(reason.to_owned())),
    };
    let index = |index: Option<usize>| index.and_then(|index| u32::try_from(index).ok());
    let tool = section.tool.as_ref().map(|tool| section::Invocation {
        id: tool.id.clone(),
        name: tool.name.clone(),
        arguments: tool
            .arguments
            .and_then(|target| arguments(request, target))
            .map(|text| truncated(&mask.mask(&text), limit)),
        ..Default::default()
    });
    proto::Section {
        id: section.id.to_string(),
        parent: section.parent.map(|parent| parent.to_string()),
        node: section::NodeType::from(section.node).into(),
        kind: section::Kind::from(section.kind).into(),
        label: section.label.clone(),
        raw_path: raw_path.clone(),
        content_kind: section::ContentKind::from(section.content).into(),
        content: truncated(&mask.mask_at(&raw_path, &content), limit),
        content_size: content.len() as u64,
        tokens: Some(own.into()).into(),
        share,
        editable: editable.into(),
        read_only_reason,
        deletable: section.deletable,
        deleted: section.deleted,
        pinned: request.is_pinned(section.id),
        collapsed: section.collapsed,
        edited: request.is_edited(target),
        applied_override: overrides.of(request, section).into(),
        tool: tool.into(),
        message_index: index(section.message_index),
        content_index: index(section.content_index),
        tool_call_index: index(section.tool_call_index),
        ..Default::default()
    }
}

fn arguments(request: &ModelRequest, target: Target) -> Option<String> {
    let document = request.document().filter(|document| document.contains(target))?;
    let text = document.text(target).map(std::borrow::Cow::into_owned);
    Some(text.unwrap_or_else(|| String::from_utf8_lossy(&document.value_bytes(target)).into_owned()))
}

fn path(request: &ModelRequest, target: Target) -> String {
    request.document().filter(|document| document.contains(target)).map(|body| body.path(target)).unwrap_or_default()
}

/// Problems of a request with its edits.
pub(super) fn problems(request: &ModelRequest) -> Vec<proto::RequestProblem> {
    let blocking = request.blocking_problems();
    let is_blocking = |problem: &RequestProblem| {
        blocking.iter().any(|other| other.kind == problem.kind && other.target == problem.target)
    };
    let message = |problem: &RequestProblem| proto::RequestProblem {
        kind: serde_json::to_value(problem.kind)
            .ok()
            .and_then(|name| Some(name.as_str()?.to_owned()))
            .unwrap_or_default(),
        path: path(request, problem.target),
        message: problem.message.clone(),
        blocking: is_blocking(problem),
        repairs: problem.repairs.iter().map(|found| repair(request, *found)).collect(),
        ..Default::default()
    };
    request.problems().iter().map(message).collect()
}

fn repair(request: &ModelRequest, repair: Repair) -> proto::Repair {
    let (Repair::Delete(target) | Repair::Restore(target) | Repair::MoveBefore(target, _)) = repair;
    proto::Repair { name: repair.label().to_owned(), path: path(request, target), ..repair.into() }
}

pub(super) fn edit_impact(request: &ModelRequest, impact: &EditImpact) -> proto::EditImpact {
    let paths = |targets: &[Target]| targets.iter().map(|target| path(request, *target)).collect();
    proto::EditImpact {
        before: Some(impact.before.into()).into(),
        after: Some(impact.after.into()).into(),
        reread: Some(impact.reread.into()).into(),
        breakpoints_lost: paths(&impact.breakpoints_lost),
        sealed_after: paths(&impact.sealed_after),
        alternative: impact.alternative().map(str::to_owned),
        ..Default::default()
    }
}
