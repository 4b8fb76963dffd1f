//! The system prompt: instructions of the scenario and of the project.

use crate::host::{Host, ReadProblem};
use crate::scenario::Scenario;

/// Files with instructions for agents, at the root of a workspace.
const PROJECT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Maximum size of a file with instructions, in bytes.
const MAX_FILE_BYTES: usize = 48 * 1024;

const GENERAL: &str = "Paths in tool calls are relative to the root of the workspace.";

const DELEGATED: &str = "You are a subagent: another agent delegated a task to you. Your last message is returned to it as the \
                         result, so end with all facts that it needs. Nobody reads your messages before that.";

/// Builds the system prompt. It depends on the scenario and the files of the workspace only.
pub(crate) async fn build(host: &dyn Host, session: &str, scenario: &Scenario, is_delegated: Delegated) -> String {
    let mut prompt = format!("{}\n\n{GENERAL}", scenario.prompt.trim_end());
    if is_delegated == Delegated::Yes {
        prompt.push_str("\n\n");
        prompt.push_str(DELEGATED);
    }
    let mut seen: Option<String> = None;
    for path in PROJECT_FILES {
        let text = match host.read_file(session, path).await {
            Ok(file) => file.text,
            Err(ReadProblem::Missing { .. }) => continue,
            Err(problem) => {
                prompt.push_str(&format!("\n\nThe instructions in {path} could not be read: {problem}."));
                continue;
            }
        };
        // One of the files is often a link to the other.
        if text.trim().is_empty() || seen.as_ref() == Some(&text) {
            continue;
        }
        let (shown, cut) = cut(&text, MAX_FILE_BYTES);
        prompt.push_str(&format!("\n\nInstructions of the project, from {path}:\n\n{}", shown.trim_end()));
        if cut {
            prompt.push_str(&format!("\n\n({path} is longer. Read it for the rest.)"));
        }
        seen = Some(text);
    }
    prompt
}

/// The kind of session that a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delegated {
    Yes,
    No,
}

/// Cuts a text at a character boundary.
fn cut(text: &str, limit: usize) -> (&str, bool) {
    if text.len() <= limit {
        return (text, false);
    }
    (&text[..text.floor_char_boundary(limit)], true)
}
