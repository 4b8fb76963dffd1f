//! One test binary for the pure flow, over its public types only.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod action;
mod decide;
mod draft;
mod events;
mod object;
mod ordering;
mod reverse;
mod told;

use sayso_review::{
    Answer, Decider, FileAnswer, FileMode, FileState, HunkId, Preview, Proposal, Seen, Sight, Verdict, WsPath,
};

pub(crate) fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

pub(crate) fn file(text: &str) -> FileState {
    FileState::file(text, FileMode::PLAIN)
}

pub(crate) fn seen(at: &str, state: FileState) -> (WsPath, Seen) {
    let location = path(at);
    (location.clone(), Seen { location, found: Ok(state), link: None, facts: Vec::new() })
}

/// What a proposal, as JSON or a patch, would make of some files.
pub(crate) fn preview(files: &[(&str, &str)], proposal: &str) -> Preview {
    let proposal = Proposal::parse(proposal.as_bytes()).unwrap();
    let draft = proposal.draft(WsPath::parse).unwrap();
    let mut sight = Sight { umask: 0o022, ..Sight::default() };
    for path in draft.paths() {
        sight.files.extend([seen(path.as_str(), FileState::Absent)]);
    }
    for (path, text) in files {
        sight.files.extend([seen(path, file(text))]);
    }
    draft.preview(&sight)
}

/// A proposal to write whole files.
pub(crate) fn write(files: &[(&str, &str)]) -> String {
    let change =
        |(path, text): &(&str, &str)| serde_json::json!({ "operation": "write", "path": path, "content": text });
    serde_json::Value::Array(files.iter().map(change).collect()).to_string()
}

pub(crate) fn verdict(preview: &Preview, answer: Answer) -> Verdict {
    Verdict { preview: preview.hash(), answer, comments: Vec::new(), by: Decider::Person }
}

pub(crate) fn about_files(answers: &[(&str, FileAnswer)]) -> Answer {
    Answer::Files { files: answers.iter().map(|(name, answer)| (path(name), answer.clone())).collect(), reason: None }
}

pub(crate) fn hunks(ids: &[&str]) -> FileAnswer {
    FileAnswer::Hunks { hunks: ids.iter().map(|id| id.parse::<HunkId>().unwrap()).collect() }
}

/// Thirty lines, some of them changed.
pub(crate) fn lines(changed: &[usize]) -> String {
    let line =
        |number: usize| if changed.contains(&number) { format!("{number} changed\n") } else { format!("{number}\n") };
    (1..=30).map(line).collect()
}
