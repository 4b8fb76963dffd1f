//! Steps of the state machine, and their conversion to proposals.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sayso_review::{FileIntent, NewContent};
use sayso_testkit::hostile_inputs;

use crate::tree::{Entry, Tree};

/// Few names, so that steps affect the same files; `f` is also a directory.
pub(crate) const NAMES: [&str; 7] = ["a", "b", "d/a", "d/e/a", "d/e/b", "f", "f/a"];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Propose { changes: Vec<AgentStep>, session: usize },
    Write { name: usize, content: Vec<u8> },
    InsertLine { name: usize, at: Index, line: String },
    Remove { name: usize },
    Decide { which: Index, answer: AnswerKind },
    Undo { target: TargetKind, merge: bool },
    UndoAndRedo { target: TargetKind },
    Redo { target: TargetKind, merge: bool },
    Restart,
}

#[derive(Clone, Debug)]
pub(crate) enum AgentStep {
    Write {
        name: usize,
        text: String,
    },
    /// Replaces lines, for several hunks.
    Rewrite {
        name: usize,
        lines: Vec<(Index, String)>,
    },
    Edit {
        name: usize,
        at: Index,
        text: String,
    },
    Delete {
        name: usize,
    },
    Rename {
        name: usize,
        to: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum AnswerKind {
    Approve,
    Deny,
    /// Answers each file with everything, no part, or the hunks and parts with set bits.
    Some(Vec<(u8, u32)>),
    Edited(String),
}

#[derive(Clone, Debug)]
pub(crate) enum TargetKind {
    Last,
    Change(Index),
    Session(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let target = || {
        prop_oneof![
            2 => Just(TargetKind::Last),
            2 => any::<Index>().prop_map(TargetKind::Change),
            1 => (0..2usize).prop_map(TargetKind::Session),
        ]
    };
    prop_oneof![
        8 => (vec(agent_step(), 1..4), 0..2usize).prop_map(|(changes, session)| Step::Propose { changes, session }),
        2 => (name(), content()).prop_map(|(name, content)| Step::Write { name, content }),
        2 => (name(), any::<Index>(), "[xyz]{1,3}").prop_map(|(name, at, line)| Step::InsertLine { name, at, line }),
        1 => name().prop_map(|name| Step::Remove { name }),
        10 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Decide { which, answer }),
        2 => (target(), any::<bool>()).prop_map(|(target, merge)| Step::Undo { target, merge }),
        2 => target().prop_map(|target| Step::UndoAndRedo { target }),
        2 => (target(), any::<bool>()).prop_map(|(target, merge)| Step::Redo { target, merge }),
        1 => Just(Step::Restart),
    ]
}

fn agent_step() -> impl Strategy<Value = AgentStep> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), hostile_inputs::model_text()).prop_map(|(name, text)| AgentStep::Write { name, text }),
        4 => (name(), vec((any::<Index>(), "[abc]{0,3}"), 1..4)).prop_map(|(name, lines)| AgentStep::Rewrite { name, lines }),
        3 => (name(), any::<Index>(), "[abc\n]{0,5}").prop_map(|(name, at, text)| AgentStep::Edit { name, at, text }),
        1 => name().prop_map(|name| AgentStep::Delete { name }),
        2 => (name(), name()).prop_map(|(name, to)| AgentStep::Rename { name, to }),
    ]
}

fn answer() -> impl Strategy<Value = AnswerKind> {
    prop_oneof![
        4 => Just(AnswerKind::Approve),
        1 => Just(AnswerKind::Deny),
        4 => vec((any::<u8>(), any::<u32>()), 4).prop_map(AnswerKind::Some),
        1 => hostile_inputs::model_text().prop_map(AnswerKind::Edited),
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    // Long enough for several hunks.
    let lines = |count: usize| (0..count).map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    prop_oneof![
        3 => (10..40usize).prop_map(lines),
        4 => hostile_inputs::formatted_file(),
        1 => hostile_inputs::utf16_pair().prop_map(|(old, _)| old),
        1 => vec(any::<u8>(), 0..60),
    ]
}

pub(crate) fn intent(step: &AgentStep, tree: &Tree) -> Option<FileIntent> {
    let write = |name: usize, text: String| {
        FileIntent::Write(NewContent {
            path: NAMES[name].to_owned(),
            new_content: text,
            exact: false,
            executable: None,
            base_content: None,
        })
    };
    let text = |name: usize| match tree.get(NAMES[name]) {
        Some(Entry::File { bytes, .. }) => sayso_diff::plain_text(bytes).map(std::borrow::Cow::into_owned),
        _ => None,
    };
    Some(match step {
        AgentStep::Write { name, text } => write(*name, text.clone()),
        AgentStep::Rewrite { name, lines } => {
            let text = text(*name)?;
            let mut all: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            for (at, line) in lines {
                if !all.is_empty() {
                    let at = at.index(all.len());
                    all[at] = format!("{line}\n");
                }
            }
            write(*name, all.concat())
        }
        AgentStep::Edit { name, at, text: new } => {
            let text = text(*name)?;
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let old = if lines.is_empty() { "" } else { lines[at.index(lines.len())] };
            let (path, old_string, new_string) = (NAMES[*name].to_owned(), old.to_owned(), new.clone());
            FileIntent::Edit { path, old_string, new_string, replace_all: true }
        }
        AgentStep::Delete { name } => FileIntent::Delete { path: NAMES[*name].to_owned() },
        AgentStep::Rename { name, to } => {
            FileIntent::Rename { path: NAMES[*name].to_owned(), to: NAMES[*to].to_owned() }
        }
    })
}
