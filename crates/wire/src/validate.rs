//! Validation: problems that would make the upstream reject a request, with repairs.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::dialect::{Dialect, GroupRole, ItemKind, MessageItem, MessageRole, SectionGroup};
use crate::json::{Document, Target};

/// The kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestProblemKind {
    /// No message is left.
    Empty,
    /// A call without a result.
    OrphanCall,
    /// A result without a call.
    OrphanResult,
    /// A message whose role is invalid at its position.
    RoleOrder,
    /// More cache breakpoints than the server accepts.
    TooManyBreakpoints,
    /// Arguments that are not valid JSON.
    BrokenArguments,
    /// The attribution block is not the first block.
    AttributionMoved,
    /// An empty text where the API requires content.
    EmptyText,
    /// A message with a role that the API does not know.
    UnknownRole,
    NoModel,
    /// A required setting is missing.
    Missing,
    /// A changed response form, between a stream and a single body, which the client does not expect.
    ResponseFormChanged,
}

/// A problem that would make the upstream reject the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestProblem {
    pub kind: RequestProblemKind,
    pub target: Target,
    /// Description for a person.
    pub message: String,
    /// Edits that would repair it. A reset of the request always does.
    pub repairs: Vec<Repair>,
}

impl RequestProblem {
    /// Reports an empty value, with the value to delete.
    pub(crate) fn empty(target: Target, gone: Target) -> Self {
        let message = "it is empty, which the model's API refuses".to_owned();
        Self { kind: RequestProblemKind::EmptyText, target, message, repairs: vec![Repair::Delete(gone)] }
    }
}

/// An edit that repairs a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    Delete(Target),
    Restore(Target),
    /// Moves a value before another.
    MoveBefore(Target, Target),
}

impl Repair {
    /// Returns the display name of the repair.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Delete(_) => "delete it",
            Self::Restore(_) => "restore what it belongs to",
            Self::MoveBefore(..) => "move it back",
        }
    }
}

/// Returns all problems of a body, in order of position.
pub fn validate(dialect: &dyn Dialect, body: &Document) -> Vec<RequestProblem> {
    let mut problems = Vec::new();
    let items = dialect.messages(body);
    let groups = dialect.groups(body);
    // References to content on the server cannot be checked.
    let remote = groups.iter().any(|group| group.role == GroupRole::Remote && body.is_present(group.target));
    if !remote && items.iter().all(|item| item.kind == ItemKind::Empty || item.role == MessageRole::System) {
        let target =
            groups.iter().find(|group| group.role == GroupRole::Message).map_or(body.root(), |group| group.target);
        problems.push(RequestProblem {
            kind: RequestProblemKind::Empty,
            target,
            message: "the request has no message left".to_owned(),
            repairs: deleted_messages(body, &groups).map(Repair::Restore).collect(),
        });
    }
    check_orphans(body, &items, remote, &mut problems);
    for item in &items {
        if let ItemKind::Call { arguments: Some(arguments), .. } = &item.kind
            && let Some(text) = body.text(*arguments).filter(|text| !text.trim().is_empty())
            && let Err(error) = Document::parse(text.as_bytes())
        {
            problems.push(RequestProblem {
                kind: RequestProblemKind::BrokenArguments,
                target: *arguments,
                message: format!("the arguments are not JSON: {error}"),
                repairs: Vec::new(),
            });
        }
    }
    if let Some(model) = body.member(body.root(), "model")
        && body.text(model).is_some_and(|name| name.trim().is_empty())
    {
        problems.push(RequestProblem {
            kind: RequestProblemKind::NoModel,
            target: model,
            message: "the model is missing".to_owned(),
            repairs: Vec::new(),
        });
    }
    check_required_settings(dialect, body, &groups, &mut problems);
    dialect.validate(body, &mut problems);
    problems
}

/// Reports deleted settings that the API requires. A setting that was never present is left to the server.
fn check_required_settings(
    dialect: &dyn Dialect,
    body: &Document,
    groups: &[SectionGroup],
    problems: &mut Vec<RequestProblem>,
) {
    let settings = groups.iter().filter(|group| group.role == GroupRole::Setting);
    for target in settings.map(|group| group.target).filter(|target| !body.is_present(*target)) {
        let name = body.path(target);
        if dialect.required().contains(&name.as_str()) {
            problems.push(RequestProblem {
                kind: RequestProblemKind::Missing,
                target,
                message: format!("the model API requires `{name}`"),
                repairs: vec![Repair::Restore(target)],
            });
        }
    }
}

/// Reports messages with a role that the API does not know.
pub(crate) fn check_roles(body: &Document, items: &[MessageItem], known: &str, problems: &mut Vec<RequestProblem>) {
    let mut last = None;
    for item in items.iter().filter(|item| item.role == MessageRole::Other) {
        // An item without a role is not a message.
        let Some(role) = body.member(item.message, "role") else { continue };
        if last.replace(item.message) != Some(item.message) {
            problems.push(RequestProblem {
                kind: RequestProblemKind::UnknownRole,
                target: role,
                message: format!("unknown role `{}`; known roles are {known}", body.text(role).unwrap_or_default()),
                repairs: Vec::new(),
            });
        }
    }
}

/// Reports empty texts. The last assistant message may be empty, so that the model continues from it.
pub(crate) fn check_empty_texts(body: &Document, items: &[MessageItem], problems: &mut Vec<RequestProblem>) {
    if problems.iter().any(|problem| problem.kind == RequestProblemKind::Empty) {
        return;
    }
    let last = items.last().filter(|last| last.role == MessageRole::Assistant).map(|last| last.message);
    for item in items.iter().filter(|item| item.kind == ItemKind::Empty && Some(item.message) != last) {
        problems.push(RequestProblem::empty(item.target, deletion_target(body, item, items)));
    }
}

/// Returns the deleted messages.
fn deleted_messages<'b>(body: &'b Document, groups: &'b [SectionGroup]) -> impl Iterator<Item = Target> + 'b {
    let messages = groups.iter().filter(|group| group.role == GroupRole::Message);
    messages.map(|group| group.target).filter(|target| !body.is_present(*target))
}

/// Reports calls without results, and results without calls.
fn check_orphans(body: &Document, items: &[MessageItem], remote: bool, problems: &mut Vec<RequestProblem>) {
    let mut called = BTreeSet::new();
    for item in items {
        match &item.kind {
            ItemKind::Call { id, .. } => {
                called.insert(id.as_str());
            }
            ItemKind::Result { id } if !called.contains(id.as_str()) && !remote => problems.push(RequestProblem {
                kind: RequestProblemKind::OrphanResult,
                target: item.target,
                message: format!("the result of call `{id}` has no preceding call"),
                repairs: vec![Repair::Delete(deletion_target(body, item, items))],
            }),
            _ => {}
        }
    }
    let answered: BTreeSet<&str> = items
        .iter()
        .filter_map(|item| match &item.kind {
            ItemKind::Result { id } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    for item in items {
        if let ItemKind::Call { id, .. } = &item.kind
            && !answered.contains(id.as_str())
        {
            problems.push(RequestProblem {
                kind: RequestProblemKind::OrphanCall,
                target: item.target,
                message: format!("call `{id}` has no result"),
                repairs: vec![Repair::Delete(deletion_target(body, item, items))],
            });
        }
    }
}

/// Returns the value whose deletion removes an item without leaving an empty message.
fn deletion_target(body: &Document, item: &MessageItem, items: &[MessageItem]) -> Target {
    let alone = items.iter().filter(|other| other.message == item.message).count() == 1;
    if alone || item.target == item.message {
        return item.message;
    }
    // Some servers reject an empty list too.
    let list = body.parent(item.target).filter(|list| *list != item.message && body.children(*list).count() == 1);
    list.unwrap_or(item.target)
}

/// Reports a conversation that does not begin with a user message.
pub(crate) fn check_first_role(items: &[MessageItem], problems: &mut Vec<RequestProblem>) {
    let Some(first) = items.iter().find(|item| item.role != MessageRole::System) else { return };
    // An unknown role is reported separately.
    if !matches!(first.role, MessageRole::User | MessageRole::Tool | MessageRole::Other) {
        problems.push(RequestProblem {
            kind: RequestProblemKind::RoleOrder,
            target: first.message,
            message: "the first message must be the user's".to_owned(),
            repairs: vec![Repair::Delete(first.message)],
        });
    }
}
