//! Edits of a held request, and its end.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::request::{EditEffects, EditOptions};
use sayso_present::escape::escape_unprintable;
use sayso_present::path_match::similar_paths;
use sayso_present::request::{
    Assignment, EditKindText, MadeEdit, deleted_section, edit_target, new_mode_text, nth_repair, problems_text,
    render_edits, saved_edits_text, turn_edits_text,
};
use sayso_review::ErrorKind;
use sayso_wire::{Edit, ModelRequest, RequestHead, ShrinkLimits};

use super::{RequestCommandContext, print_suggestions, suggest_paths};
use crate::cli::{RequestCommand, SaveOptions};
use crate::error::CliError;
use crate::output::{print, say};
use crate::propose::editor::{self, EditorResult};

pub(super) fn run(context: &RequestCommandContext<'_>, command: &RequestCommand) -> Result<ExitCode, CliError> {
    let (id, edit, save) = match command {
        RequestCommand::Edit { id, edits, save } => return set(context, *id, edits, save),
        RequestCommand::Resume { id, revision } => return resume(context, *id, *revision),
        RequestCommand::Cancel(given) => return cancel(context, given.id),
        RequestCommand::Delete(at) => (at.id, Edit::Delete { at: edit_target(&at.path) }, Some(&at.save)),
        RequestCommand::Restore(at) => {
            let target = deleted_section(&context.outline(at.id)?, &at.path)?;
            (at.id, Edit::Restore { at: target }, Some(&at.save))
        }
        RequestCommand::Append { id, text } => (*id, Edit::Append { text: text.clone() }, None),
        RequestCommand::Shrink { at, keep_head, keep_tail } => {
            let default = ShrinkLimits::default();
            let keep = ShrinkLimits {
                head: keep_head.map_or(default.head, bytes),
                tail: keep_tail.map_or(default.tail, bytes),
            };
            (at.id, Edit::Shrink { at: edit_target(&at.path), keep }, Some(&at.save))
        }
        RequestCommand::Pin(at) => (at.id, Edit::Pin { at: edit_target(&at.path), before: None }, Some(&at.save)),
        RequestCommand::Unpin(at) => (at.id, Edit::Unpin { at: edit_target(&at.path) }, Some(&at.save)),
        RequestCommand::Repair { id, number } => {
            (*id, Edit::Repair(nth_repair(&context.outline(*id)?, *number)?), None)
        }
        RequestCommand::Undo(given) => (given.id, Edit::Undo, None),
        RequestCommand::Redo(given) => (given.id, Edit::Redo, None),
        RequestCommand::Reset(given) => (given.id, Edit::Reset, None),
        _ => return Ok(ExitCode::SUCCESS),
    };
    apply(context, id, vec![edit], save.unwrap_or(&SaveOptions { from_now_on: None }), None)?;
    Ok(ExitCode::SUCCESS)
}

/// A number of bytes to keep. One that exceeds the machine's range keeps all.
fn bytes(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Applies edits one after the other, and reports their combined result. With a revision, fails if the request has another one.
fn apply(
    context: &RequestCommandContext<'_>,
    id: u64,
    edits: Vec<Edit>,
    save: &SaveOptions,
    mut revision: Option<u64>,
) -> Result<(), CliError> {
    let scope = save.from_now_on.map(|choice| context.scope(choice)).transpose()?;
    let mut combined: Option<EditEffects> = None;
    let mut made: Vec<MadeEdit> = Vec::new();
    for edit in edits {
        let kind = EditKindText::from(&edit);
        let options = EditOptions { save_scope: scope, revision };
        match context.engine.wait(context.engine.client().edit_request(id, &edit, options)) {
            Ok(result) => {
                for name in &result.unknown_members {
                    say(&format!(
                        "note: the API does not know `{}`, and may reject the request; `sayso request undo {id}` takes the edit back",
                        escape_unprintable(name)
                    ));
                }
                revision = revision.map(|_| result.revision);
                made.push(MadeEdit::new(kind, &result));
                combined = Some(combine(combined, result));
            }
            Err(error) => {
                suggest_paths(&error);
                if !made.is_empty() {
                    let paths: Vec<_> = made.iter().map(|edit| escape_unprintable(&edit.path)).collect();
                    say(&format!("note: what came before it was edited: {}", paths.join(", ")));
                }
                return Err(error.into());
            }
        }
    }
    let Some(result) = combined else {
        // No value was changed in the editor.
        context.print_json_of(proto::EditRequestResponse::default)?;
        return Ok(());
    };
    if context.print_json_of(|| proto::EditRequestResponse::from(&result))? {
        return Ok(());
    }
    print(&render_edits(id, &made, &result, save.from_now_on.is_some()))
}

/// Combines the results of two edits. Counts add up, and the first edit has switched the mode.
fn combine(before: Option<EditEffects>, mut result: EditEffects) -> EditEffects {
    let Some(before) = before else { return result };
    result.saved += before.saved;
    result.removed += before.removed;
    result.switched = before.switched.or(result.switched);
    result
}

/// Sets values, or opens them in an editor.
fn set(
    context: &RequestCommandContext<'_>,
    id: u64,
    edits: &[String],
    save: &SaveOptions,
) -> Result<ExitCode, CliError> {
    let (mut made, mut revision, mut written) = (Vec::new(), None, Vec::new());
    for text in edits {
        let assignment = Assignment::parse(text);
        let (path, value) = match assignment.value {
            Some(_) if assignment.path.is_empty() => {
                return Err(CliError::invalid_input(format!("there is no path before the `=` in `{text}`"))
                    .hint(format!("`sayso request show {id}` names the paths")));
            }
            Some(value) => (assignment.path.to_owned(), value.to_owned()),
            None => {
                let Some(edited) = edit_value(context, id, text)? else { continue };
                // All values are written for the revision that was shown first.
                revision.get_or_insert(edited.revision);
                written.push(edited.value.clone());
                (edited.path, edited.value)
            }
        };
        let at = edit_target(&path);
        made.push(if assignment.is_json { Edit::SetJson { at, value } } else { Edit::Set { at, value } });
    }
    apply(context, id, made, save, revision).inspect_err(|_| {
        for saved in written.iter().map(|text| editor::save(text)) {
            match saved {
                Ok(path) => say(&format!("note: what you wrote is kept in {}", path.display())),
                Err(error) => say(&format!("note: what you wrote could not be kept: {error}")),
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A value that a person has edited.
struct EditedValue {
    path: String,
    value: String,
    /// The revision that was shown in the editor.
    revision: u64,
}

/// Opens a value in the person's editor. `None` if it is unchanged.
fn edit_value(context: &RequestCommandContext<'_>, id: u64, given: &str) -> Result<Option<EditedValue>, CliError> {
    let shown = context.outline(id)?;
    let summary = shown.summary;
    if !summary.held {
        let message = format!("request {id} is not paused; only a paused request can be edited");
        return Err(
            CliError::invalid_input(message).hint("have the next one wait with `sayso request mode pause-next`")
        );
    }
    let path = shown
        .sections
        .iter()
        .find(|section| section.id.to_string() == given)
        .map_or(given, |section| &section.raw_path);
    let received = summary.record.received;
    let body = context.engine.block(context.engine.client().exact_request_body(id))?;
    let head = RequestHead { path: received.path, headers: received.headers };
    let request = ModelRequest::new(id.to_string(), head, body);
    let target = request.resolve(path).map_err(|error| {
        print_suggestions(
            similar_paths(path, shown.sections.iter().map(|section| section.raw_path.as_str())).into_iter(),
        );
        CliError::invalid_input(error.to_string()).optional_hint(error.hint())
    })?;
    let leaf = request.section(target.into()).and_then(|section| section.leaf).unwrap_or(target);
    let Some(document) = request.document() else { return Ok(None) };
    let (name, before) = match document.text(leaf) {
        Some(text) => ("value.md", text.into_owned()),
        None => ("value.json", String::from_utf8_lossy(&document.value_bytes(leaf)).into_owned()),
    };
    let edited = match editor::open(name, before.as_bytes())? {
        EditorResult::Edited(edited) => edited,
        EditorResult::Unchanged => {
            say("Nothing was edited.");
            return Ok(None);
        }
        EditorResult::Failed(reason) => return Err(CliError::invalid_input(reason)),
    };
    let mut value = String::from_utf8(edited).map_err(|_| {
        CliError::invalid_input(format!("the edited value of `{}` is not UTF-8", escape_unprintable(path)))
    })?;
    // Editors end a file with a line break.
    if !before.ends_with('\n') && value.ends_with('\n') {
        value.pop();
    }
    if value == before {
        say("Nothing was edited.");
        return Ok(None);
    }
    Ok(Some(EditedValue { path: document.path(leaf), value, revision: summary.record.edits }))
}

fn resume(context: &RequestCommandContext<'_>, id: u64, revision: Option<u64>) -> Result<ExitCode, CliError> {
    let resumed = match context.engine.block(context.engine.client().resume_request(id, revision)) {
        Ok(resumed) => resumed,
        Err(error) => {
            if error.kind() == ErrorKind::Conflict
                && !context.common.json
                && let Ok(shown) = context.outline(id)
            {
                say(problems_text(id, &shown.problems).trim_end());
            }
            return Err(error);
        }
    };
    if !context.print_json_of(|| proto::ResumeRequestResponse::from(&resumed))? {
        print(&format!(
            "Request {id} goes on.\n{}{}{}",
            saved_edits_text(resumed.saved, resumed.removed),
            new_mode_text(resumed.switched),
            turn_edits_text(resumed.turn_edits),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cancel(context: &RequestCommandContext<'_>, id: u64) -> Result<ExitCode, CliError> {
    context.engine.block(context.engine.client().cancel_request(id))?;
    if !context.print_json_of(proto::CancelRequestResponse::default)? {
        print(&format!(
            "Request {id} has ended; its agent is told `Request canceled before sending`, for the next 30 seconds also if it sends the same again.\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
