//! Checks of a proposal before it is submitted: grants, stale reads, and problems of its preview.

use sayso_diff::SectionPatch;
use sayso_review::{ErrorKind, FileIntent, FileState, Note, Observation, Preview, Problem, Proposal};

use crate::context::Context;
use crate::edit::nearest;
use crate::error::ToolError;
use crate::read_log::ReadState;
use crate::step::StepNote;

/// Previews a proposal without writing.
pub(crate) fn preview(proposal: &Proposal, context: &Context<'_>) -> Result<(Preview, Observation), ToolError> {
    let draft = proposal
        .draft(|path| context.workspace_path(path))
        .map_err(|error| ToolError::new(error.kind(), error.to_string()).hint(error.hint()))?;
    let observation = context.observe(draft.paths())?;
    Ok((draft.preview(&observation), observation))
}

/// Previews a proposal and fails if it cannot be applied, or if a file changed since the model read it. The person is asked
/// only for changes that can be made.
pub(crate) fn check(proposal: &Proposal, context: &Context<'_>) -> Result<Preview, ToolError> {
    let (preview, observation) = preview(proposal, context)?;
    if let Some(path) = stale_files(&observation, context).next() {
        return Err(stale(path));
    }
    let problems: Vec<String> = preview.problems().map(|(path, problem)| format!("`{path}`: {problem}")).collect();
    let Some((_, problem)) = preview.problems().next() else { return Ok(preview) };
    let mut message = format!("the change cannot be made: {}", problems.join("; "));
    if let Some(lines) = nearest_lines(proposal, &observation) {
        message.push_str(&lines);
    }
    Err(ToolError::new(problem.kind(), message).hint(remedy(problem)))
}

/// Returns the files that changed since the model read them.
pub(crate) fn stale_files<'o>(
    observation: &'o Observation,
    context: &Context<'_>,
) -> impl Iterator<Item = &'o sayso_review::WsPath> {
    observation.files.iter().filter_map(move |(path, file)| {
        let Ok(FileState::File { content, .. }) = &file.found else { return None };
        (context.read_state(&file.location, content.bytes()) == ReadState::Stale).then_some(path)
    })
}

pub(crate) fn stale(path: &sayso_review::WsPath) -> ToolError {
    ToolError::new(ErrorKind::Stale, format!("`{path}` changed since it was read; nothing was changed"))
        .hint("read it again with Read, then repeat the change on its current content")
}

fn remedy(problem: &Problem) -> &'static str {
    match problem {
        Problem::Blocked(_) => "choose another file, or ask the user to make this one writable",
        Problem::Exists => "read the file and edit it, or choose another name",
        Problem::Missing => "use List or Glob to see the files, or create the file with Write",
        Problem::NotText => "leave the file as it is, or replace it with a command",
        _ => "read the file with Read and repeat the change on its current content",
    }
}

/// Returns the lines nearest to the first patch chunk that does not match.
fn nearest_lines(proposal: &Proposal, observation: &Observation) -> Option<String> {
    let FileIntent::Patch { patch } = proposal.changes.first()? else { return None };
    let patch = SectionPatch::parse(std::str::from_utf8(patch.as_bytes()).ok()?);
    patch.sections.iter().find_map(|section| {
        let file = observation.files.values().find(|file| file.location.as_str() == section.path)?;
        let Ok(FileState::File { content, .. }) = &file.found else { return None };
        let text = sayso_diff::plain_text(content.bytes())?;
        let rejected = section.apply(Some(&text)).err()?;
        let sayso_diff::SectionAction::Update { chunks, .. } = &section.action else { return None };
        let chunk = chunks.get(rejected.first()?.chunk.checked_sub(1)?)?;
        let old: Vec<&str> = chunk
            .lines
            .iter()
            .filter(|line| line.kind != sayso_diff::LineKind::Add)
            .map(|line| line.text.as_str())
            .collect();
        nearest::describe(&text, &old)
    })
}

/// Returns the notes of a preview that the model should know: differences that were ignored to match its text.
pub(crate) fn match_notes(preview: &Preview) -> Vec<StepNote> {
    let mut notes = Vec::new();
    for file in preview.files() {
        for note in &file.notes {
            if matches!(note, Note::Loosened { .. } | Note::Ambiguous { .. } | Note::Moved { .. }) {
                notes.push(StepNote { path: file.path.clone(), note: None, text: note.to_string() });
            }
        }
    }
    notes
}
