//! What would make a request invalid, found before it is sent: what, where, and how to mend it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::dialect::{Dialect, Group, GroupRole, Item, Role, Saying};
use crate::json::{Document, Target};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProblemKind {
    /// Nothing is left to send.
    Empty,
    /// A call that no result answers.
    OrphanCall,
    /// A result that answers no call.
    OrphanResult,
    /// Somebody speaks where the API wants somebody else to.
    RoleOrder,
    /// More places to keep than the server keeps.
    TooManyBreakpoints,
    /// Arguments that are not JSON.
    BrokenArguments,
    /// The block that says whose request it is, elsewhere than first.
    AttributionMoved,
    /// A text that says nothing, where the API wants one that does.
    EmptyText,
    /// A message by somebody whom the API does not know.
    UnknownRole,
    /// The model has no name.
    NoModel,
    /// Something is left out that the API wants.
    Missing,
    /// It asks for another form of answer than its client waits for.
    OtherAnswer,
}

/// Something that would make a request invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What sort.
    pub kind: ProblemKind,
    /// Where.
    pub target: Target,
    /// What it is, for a person.
    pub message: String,
    /// What would mend it. Resetting the request always would.
    pub repairs: Vec<Repair>,
}

impl Problem {
    /// Something that says nothing, and what to take out so that it is gone.
    pub(crate) fn empty(target: Target, gone: Target) -> Self {
        let message = "it is empty, which the model's API refuses".to_owned();
        Self { kind: ProblemKind::EmptyText, target, message, repairs: vec![Repair::Delete(gone)] }
    }
}

/// An edit that mends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Takes a value out.
    Delete(Target),
    /// Puts a value back.
    Restore(Target),
    /// Moves a value to before another.
    MoveBefore(Target, Target),
}

impl Repair {
    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delete(_) => "delete it",
            Self::Restore(_) => "restore what it belongs to",
            Self::MoveBefore(..) => "move it back",
        }
    }
}

/// Everything that would make a body invalid, in the order in which it comes.
pub fn validate(dialect: &dyn Dialect, body: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    let items = dialect.messages(body);
    let groups = dialect.groups(body);
    // What is not in the request cannot be checked against.
    let remote = groups.iter().any(|group| group.role == GroupRole::Remote && body.is_here(group.target));
    if !remote && items.iter().all(|item| item.saying == Saying::Nothing || item.role == Role::System) {
        let target =
            groups.iter().find(|group| group.role == GroupRole::Message).map_or(body.root(), |group| group.target);
        problems.push(Problem {
            kind: ProblemKind::Empty,
            target,
            message: "nothing is left that the model could answer".to_owned(),
            repairs: taken_out(body, &groups).map(Repair::Restore).collect(),
        });
    }
    orphans(body, &items, remote, &mut problems);
    for item in &items {
        if let Saying::Call { arguments: Some(arguments), .. } = &item.saying
            && let Some(text) = body.text(*arguments).filter(|text| !text.trim().is_empty())
            && let Err(error) = Document::parse(text.as_bytes())
        {
            problems.push(Problem {
                kind: ProblemKind::BrokenArguments,
                target: *arguments,
                message: format!("the arguments are not JSON: {error}"),
                repairs: Vec::new(),
            });
        }
    }
    if let Some(model) = body.member(body.root(), "model")
        && body.text(model).is_some_and(|name| name.trim().is_empty())
    {
        problems.push(Problem {
            kind: ProblemKind::NoModel,
            target: model,
            message: "no model is named".to_owned(),
            repairs: Vec::new(),
        });
    }
    missing(dialect, body, &groups, &mut problems);
    dialect.validate(body, &mut problems);
    problems
}

/// Settings that were taken out and that the API wants. What never was there is for the server to judge.
fn missing(dialect: &dyn Dialect, body: &Document, groups: &[Group], problems: &mut Vec<Problem>) {
    let settings = groups.iter().filter(|group| group.role == GroupRole::Setting);
    for target in settings.map(|group| group.target).filter(|target| !body.is_here(*target)) {
        let name = body.path(target);
        if dialect.required().contains(&name.as_str()) {
            problems.push(Problem {
                kind: ProblemKind::Missing,
                target,
                message: format!("the model's API wants `{name}`"),
                repairs: vec![Repair::Restore(target)],
            });
        }
    }
}

/// Messages by somebody whom the API does not know.
pub(crate) fn known_roles(body: &Document, items: &[Item], known: &str, problems: &mut Vec<Problem>) {
    let mut last = None;
    for item in items.iter().filter(|item| item.role == Role::Other) {
        // What has no role is something else than a message.
        let Some(role) = body.member(item.message, "role") else { continue };
        if last.replace(item.message) != Some(item.message) {
            problems.push(Problem {
                kind: ProblemKind::UnknownRole,
                target: role,
                message: format!("nobody is called `{}` here; there are {known}", body.text(role).unwrap_or_default()),
                repairs: Vec::new(),
            });
        }
    }
}

/// Texts that say nothing, beside others that do. The model may be left to go on from nothing at the end.
pub(crate) fn no_empty_texts(body: &Document, items: &[Item], problems: &mut Vec<Problem>) {
    if problems.iter().any(|problem| problem.kind == ProblemKind::Empty) {
        return;
    }
    let last = items.last().filter(|last| last.role == Role::Assistant).map(|last| last.message);
    for item in items.iter().filter(|item| item.saying == Saying::Nothing && Some(item.message) != last) {
        problems.push(Problem::empty(item.target, smallest(body, item, items)));
    }
}

/// Messages that were taken out.
fn taken_out<'b>(body: &'b Document, groups: &'b [Group]) -> impl Iterator<Item = Target> + 'b {
    let messages = groups.iter().filter(|group| group.role == GroupRole::Message);
    messages.map(|group| group.target).filter(|target| !body.is_here(*target))
}

/// Calls and results that have lost each other.
fn orphans(body: &Document, items: &[Item], remote: bool, problems: &mut Vec<Problem>) {
    let mut called = BTreeSet::new();
    for item in items {
        match &item.saying {
            Saying::Call { id, .. } => {
                called.insert(id.as_str());
            }
            Saying::Result { id } if !called.contains(id.as_str()) && !remote => problems.push(Problem {
                kind: ProblemKind::OrphanResult,
                target: item.target,
                message: format!("the result of call `{id}` answers no call before it"),
                repairs: vec![Repair::Delete(smallest(body, item, items))],
            }),
            _ => {}
        }
    }
    let answered: BTreeSet<&str> = items
        .iter()
        .filter_map(|item| match &item.saying {
            Saying::Result { id } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    for item in items {
        if let Saying::Call { id, .. } = &item.saying
            && !answered.contains(id.as_str())
        {
            problems.push(Problem {
                kind: ProblemKind::OrphanCall,
                target: item.target,
                message: format!("no result answers call `{id}`"),
                repairs: vec![Repair::Delete(smallest(body, item, items))],
            });
        }
    }
}

/// What to take out so that an item is gone and no empty message stays behind.
fn smallest(body: &Document, item: &Item, items: &[Item]) -> Target {
    let alone = items.iter().filter(|other| other.message == item.message).count() == 1;
    if alone || item.target == item.message {
        return item.message;
    }
    // Nor an empty list, which some servers refuse.
    let list = body.parent(item.target).filter(|list| *list != item.message && body.children(*list).count() == 1);
    list.unwrap_or(item.target)
}

/// A conversation that does not begin with the user.
pub(crate) fn begins_with_user(items: &[Item], problems: &mut Vec<Problem>) {
    let Some(first) = items.iter().find(|item| item.role != Role::System) else { return };
    // One whom the API does not know is a problem of its own.
    if !matches!(first.role, Role::User | Role::Tool | Role::Other) {
        problems.push(Problem {
            kind: ProblemKind::RoleOrder,
            target: first.message,
            message: "the first message has to be the user's".to_owned(),
            repairs: vec![Repair::Delete(first.message)],
        });
    }
}
