//! Tests of the pure review flow through its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod action;
mod agent_message;
mod decide;
mod draft;
mod events;
mod object;
mod ordering;
mod reverse;

use sayso_review::{
    Answer, Decider, FileAnswer, FileMode, FileState, HunkId, Observation, ObservedFile, Preview, Proposal, Verdict,
    WsPath,
};

pub(crate) fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

pub(crate) fn file(text: &str) -> FileState {
    FileState::file(text, FileMode::PLAIN)
}

pub(crate) fn observed(at: &str, state: FileState) -> (WsPath, ObservedFile) {
    let location = path(at);
    (location.clone(), ObservedFile { location, found: Ok(state), link: None, facts: Vec::new() })
}

/// Previews a proposal, given as JSON or a patch.
pub(crate) fn preview(files: &[(&str, &str)], proposal: &str) -> Preview {
    let proposal = Proposal::parse(proposal.as_bytes()).unwrap();
    let draft = proposal.draft(WsPath::parse).unwrap();
    let mut observation = Observation { umask: 0o022, ..Observation::default() };
    for path in draft.paths() {
        observation.files.extend([observed(path.as_str(), FileState::Absent)]);
    }
    for (path, text) in files {
        observation.files.extend([observed(path, file(text))]);
    }
    draft.preview(&observation)
}

/// Returns a proposal to write whole files.
pub(crate) fn write(files: &[(&str, &str)]) -> String {
    let change =
        |(path, text): &(&str, &str)| serde_json::json!({ "operation": "write", "path": path, "content": text });
    serde_json::Value::Array(files.iter().map(change).collect()).to_string()
}

pub(crate) fn verdict(preview: &Preview, answer: Answer) -> Verdict {
    Verdict { preview: preview.hash(), answer, comments: Vec::new(), message: None, by: Decider::PERSON }
}

pub(crate) fn about_files(answers: &[(&str, FileAnswer)]) -> Answer {
    Answer::Files { files: answers.iter().map(|(name, answer)| (path(name), answer.clone())).collect(), reason: None }
}

pub(crate) fn hunks(ids: &[&str]) -> FileAnswer {
    FileAnswer::Hunks { hunks: ids.iter().map(|id| id.parse::<HunkId>().unwrap()).collect() }
}

/// Returns thirty lines, the given ones changed.
pub(crate) fn lines(changed: &[usize]) -> String {
    let line =
        |number: usize| if changed.contains(&number) { format!("{number} changed\n") } else { format!("{number}\n") };
    (1..=30).map(line).collect()
}
