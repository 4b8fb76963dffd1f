//! What a person makes of a request that waits: edits, and how it ends.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::edit_request_request::{Pin, Redo, Reset, Set, Shrink, Undo};
use sayso_api::proto::oneof::edit_place::Place as Where;
use sayso_api::proto::oneof::edit_request_request::Edit;
use sayso_review::ErrorKind;
use sayso_wire::{Head, ModelRequest};

use super::show::{change, meaning, problems};
use super::{Asking, print};
use crate::cli::{At, Later, RequestCommand};
use crate::failure::Failure;
use crate::output::say;
use crate::propose::edit::{Left, keep, open};
use crate::visible::visible;

/// Paths that are named where one is not there.
const NEAR: usize = 5;
/// Characters that they begin with as well.
const ALIKE: usize = 4;

pub(super) fn run(asking: &Asking<'_>, command: &RequestCommand) -> Result<ExitCode, Failure> {
    match command {
        RequestCommand::Edit { id, edits, later } => return set(asking, *id, edits, later),
        RequestCommand::Resume { id, revision } => return resume(asking, *id, *revision),
        RequestCommand::Cancel(one) => return cancel(asking, one.id),
        RequestCommand::Delete(at) => {
            let place = place(&at.path);
            make(asking, at.id, vec![Edit::Delete(Box::new(place))], &at.later)
        }
        RequestCommand::Restore(at) => {
            let place = deleted(asking, at)?;
            make(asking, at.id, vec![Edit::Restore(Box::new(place))], &at.later)
        }
        RequestCommand::Append { id, text } => only(asking, *id, Edit::Append(text.clone())),
        RequestCommand::Shrink { at, keep_head, keep_tail } => {
            let (keep_head, keep_tail) = (*keep_head, *keep_tail);
            let shrink = Shrink { at: Some(place(&at.path)).into(), keep_head, keep_tail, ..Default::default() };
            make(asking, at.id, vec![shrink.into()], &at.later)
        }
        RequestCommand::Pin(at) => {
            let pin = Pin { at: Some(place(&at.path)).into(), ..Default::default() };
            make(asking, at.id, vec![pin.into()], &at.later)
        }
        RequestCommand::Unpin(at) => make(asking, at.id, vec![Edit::Unpin(Box::new(place(&at.path)))], &at.later),
        RequestCommand::Repair { id, number } => {
            let repair = repair(asking, *id, *number)?;
            only(asking, *id, repair.into())
        }
        RequestCommand::Undo(one) => only(asking, one.id, Undo::default().into()),
        RequestCommand::Redo(one) => only(asking, one.id, Redo::default().into()),
        RequestCommand::Reset(one) => only(asking, one.id, Reset::default().into()),
        _ => return Ok(ExitCode::SUCCESS),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// A place as it was typed: a section's id, or a path.
fn place(text: &str) -> proto::EditPlace {
    let is_id = text.parse::<sayso_wire::SectionId>().is_ok();
    let place = if is_id { Where::Section(text.to_owned()) } else { Where::Path(text.to_owned()) };
    proto::EditPlace { place: Some(place), ..Default::default() }
}

fn only(asking: &Asking<'_>, id: u64, edit: Edit) -> Result<(), Failure> {
    make(asking, id, vec![edit], &Later { from_now_on: None })
}

fn make(asking: &Asking<'_>, id: u64, edits: Vec<Edit>, later: &Later) -> Result<(), Failure> {
    make_seen(asking, id, edits, later, None)
}

/// Makes edits, one after the other, and tells what all of them led to; only if the request is still at a revision, where one is named.
fn make_seen(
    asking: &Asking<'_>,
    id: u64,
    edits: Vec<Edit>,
    later: &Later,
    mut revision: Option<u64>,
) -> Result<(), Failure> {
    let scope = later.from_now_on.map(|choice| asking.scope(choice)).transpose()?.unwrap_or_default();
    let mut last: Option<proto::EditRequestResponse> = None;
    let mut made = Vec::new();
    for edit in edits {
        let verb = verb(&edit);
        let request = proto::EditRequestRequest {
            request: id,
            edit: Some(edit),
            from_now_on: scope.into(),
            revision,
            ..Default::default()
        };
        match asking.connected.block(asking.connected.client().edit_request(request)) {
            Ok(mut answer) => {
                for name in &answer.unknown_members {
                    say(&format!(
                        "note: the API does not know `{}`, and may reject the request; `sayso request undo {id}` takes the edit back",
                        visible(name)
                    ));
                }
                revision = revision.map(|_| answer.revision);
                made.push((if answer.added { "Added" } else { verb }, answer.path.clone(), answer.tokens_saved_here));
                if let Some(before) = last.take() {
                    // Each was saved by itself, and the first has switched the mode.
                    answer.saved += before.saved;
                    answer.removed += before.removed;
                    if before.switched_to.as_known().is_some_and(|mode| mode != proto::RequestMode::Unspecified) {
                        answer.switched_to = before.switched_to;
                        answer.switched_in = before.switched_in;
                    }
                }
                last = Some(answer);
            }
            Err(failure) => {
                near(asking, id, &failure);
                if !made.is_empty() {
                    let paths: Vec<_> = made.iter().map(|(_, path, _)| visible(path)).collect();
                    say(&format!("note: what came before it was edited: {}", paths.join(", ")));
                }
                return Err(failure);
            }
        }
    }
    let Some(answer) = last else {
        // Left as it was in the editor.
        asking.json(&proto::EditRequestResponse::default())?;
        return Ok(());
    };
    if asking.json(&answer)? {
        return Ok(());
    }
    let mut text = String::new();
    for (verb, path, fewer) in &made {
        let path = match (*verb, path.as_str()) {
            (RESET, _) => String::new(),
            // Of more than one value at once.
            (UNDO | REDO, "") => " all".to_owned(),
            (_, path) => format!(" {}", visible(path)),
        };
        let fewer = match fewer {
            0 => String::new(),
            fewer => format!("; {}", change(*fewer)),
        };
        text.push_str(&format!("{verb}{path} in request {id}{fewer}.\n"));
    }
    text.push_str(&format!("revision: {}\n", answer.revision));
    text.push_str(&meaning(answer.consequences.as_option()));
    if answer.saved == 0 && answer.removed == 0 && later.from_now_on.is_some() {
        text.push_str("saved: nothing, as no edit is left that could be\n");
    }
    text.push_str(&saved(answer.saved, answer.removed));
    text.push_str(&switched(answer.switched_to.as_known(), answer.switched_in.as_known()));
    text.push_str(&problems(id, &answer.problems));
    print(&text)
}

/// How many edits were saved or are no longer, and what that changed.
fn saved(count: u64, removed: u64) -> String {
    let mut text = match count {
        0 => String::new(),
        1 => "saved: 1 edit, applied to every turn from now on that is not sent normally\n".to_owned(),
        count => format!("saved: {count} edits, applied to every turn from now on that is not sent normally\n"),
    };
    text.push_str(&match removed {
        0 => String::new(),
        1 => "removed: 1 saved edit, which was taken back here\n".to_owned(),
        removed => format!("removed: {removed} saved edits, which were taken back here\n"),
    });
    text
}

/// The mode that was switched to because edits were saved, and where.
pub(super) fn switched(to: Option<proto::RequestMode>, within: Option<proto::OverrideScope>) -> String {
    let Some(mode) = to.and_then(Option::<sayso_review::RequestMode>::from) else { return String::new() };
    let label = mode.label();
    match within.unwrap_or_default() {
        proto::OverrideScope::Workspace => format!("mode: {label} in all sessions of this workspace from now on\n"),
        proto::OverrideScope::Global => format!(
            "mode: {label} in all sessions of this workspace from now on; other workspaces follow when their engine starts next\n"
        ),
        proto::OverrideScope::Session | proto::OverrideScope::Unspecified => {
            format!("mode: {label} in this session from now on\n")
        }
    }
}

const RESET: &str = "Took back all edits";
const UNDO: &str = "Took back the edit of";
const REDO: &str = "Made again the edit of";

/// What was done, for a person.
fn verb(edit: &Edit) -> &'static str {
    match edit {
        Edit::Set(_) | Edit::SetJson(_) | Edit::Patch(_) => "Edited",
        Edit::Delete(_) => "Left out",
        Edit::Restore(_) => "Put back",
        Edit::Append(_) => "Added",
        Edit::Shrink(_) => "Shrank",
        Edit::Repair(_) => "Mended",
        Edit::Pin(_) => "Pinned",
        Edit::Unpin(_) => "Unpinned",
        Edit::Undo(_) => UNDO,
        Edit::Redo(_) => REDO,
        Edit::Reset(_) => RESET,
    }
}

/// Names paths that are there, where one is not.
fn near(asking: &Asking<'_>, id: u64, failure: &Failure) {
    let message = failure.message();
    let Some(path) = message.strip_prefix("nothing is at `").and_then(|rest| rest.split('`').next()) else { return };
    let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
    let Ok(shown) = asking.connected.block(asking.connected.client().show_request(request)) else { return };
    let alike = |other: &str| path.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let mut paths: Vec<&str> = shown.sections.iter().map(|section| section.raw_path.as_str()).collect();
    paths.retain(|other| alike(other) >= ALIKE);
    paths.sort_by_key(|other| std::cmp::Reverse(alike(other)));
    paths.dedup();
    let named: Vec<String> = paths.iter().take(NEAR).map(|path| format!("`{}`", visible(path))).collect();
    if !named.is_empty() {
        say(&format!("note: there is {}", named.join(", ")));
    }
}

/// The section that was left out at a path: what comes after it has the same path by now.
fn deleted(asking: &Asking<'_>, at: &At) -> Result<proto::EditPlace, Failure> {
    let request = proto::ShowRequestRequest { request: at.id, content_limit: Some(0), ..Default::default() };
    let shown = asking.connected.block(asking.connected.client().show_request(request))?;
    let gone: Vec<&proto::Section> = shown.sections.iter().filter(|section| section.deleted).collect();
    let named = |sections: &[&proto::Section]| {
        let name = |section: &&proto::Section| format!("`{}` ({})", visible(&section.raw_path), section.id);
        sections.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let found: Vec<&proto::Section> =
        gone.iter().filter(|section| section.raw_path == at.path || section.id == at.path).copied().collect();
    match found.as_slice() {
        [section] => Ok(place(&section.id)),
        [_, _, ..] => Err(Failure::bad_input(format!("several sections were left out at `{}`", visible(&at.path)))
            .hint(format!("give the id of the one that is meant: {}", named(&found)))),
        [] if gone.is_empty() || !shown.summary.as_option().is_some_and(|summary| summary.waiting) => {
            Ok(place(&at.path))
        }
        [] => Err(Failure::bad_input(format!("nothing was left out at `{}`", visible(&at.path)))
            .hint(format!("left out are: {}", named(&gone)))),
    }
}

/// The repair with a number, as they are counted over all problems.
fn repair(asking: &Asking<'_>, id: u64, number: usize) -> Result<proto::Repair, Failure> {
    let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
    let shown = asking.connected.block(asking.connected.client().show_request(request))?;
    let mut repairs = shown.problems.into_iter().flat_map(|problem| problem.repairs);
    number.checked_sub(1).and_then(|place| repairs.nth(place)).ok_or_else(|| {
        Failure::bad_input(format!("request {id} has no repair {number}"))
            .hint(format!("`sayso request show {id}` lists what is wrong and how to mend it"))
    })
}

/// Where the path ends and the value begins.
fn split(text: &str) -> Option<(&str, &str, bool)> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '=' if !quoted => {
                let (path, value) = (&text[..at], &text[at + 1..]);
                return Some(match path.strip_suffix(':') {
                    Some(path) => (path, value, true),
                    None => (path, value, false),
                });
            }
            _ => {}
        }
    }
    None
}

fn set(asking: &Asking<'_>, id: u64, edits: &[String], later: &Later) -> Result<ExitCode, Failure> {
    let (mut made, mut revision, mut written) = (Vec::new(), None, Vec::new());
    for text in edits {
        let (path, value, json) = match split(text) {
            Some(("", ..)) => {
                return Err(Failure::bad_input(format!("there is no path before the `=` in `{text}`"))
                    .hint(format!("`sayso request show {id}` names the paths")));
            }
            Some((path, value, json)) => (path.to_owned(), value.to_owned(), json),
            None => match opened(asking, id, text)? {
                Some(Opened { path, value, seen }) => {
                    // What was seen first is what all of it was written for.
                    revision.get_or_insert(seen);
                    written.push(value.clone());
                    (path, value, false)
                }
                None => continue,
            },
        };
        let set = Set { at: Some(place(&path)).into(), value, ..Default::default() };
        made.push(if json { Edit::SetJson(Box::new(set)) } else { Edit::Set(Box::new(set)) });
    }
    make_seen(asking, id, made, later, revision).inspect_err(|_| {
        for kept in written.iter().map(|text| keep(text)) {
            match kept {
                Ok(path) => say(&format!("note: what you wrote is kept in {}", path.display())),
                Err(error) => say(&format!("note: what you wrote could not be kept: {error}")),
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A value as a person left it in their editor.
struct Opened {
    path: String,
    value: String,
    /// The revision that it was of.
    seen: u64,
}

/// A value as the person leaves it in their editor, and where it is; `None` if nothing is to be done.
fn opened(asking: &Asking<'_>, id: u64, at: &str) -> Result<Option<Opened>, Failure> {
    let client = asking.connected.client();
    let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
    let shown = asking.connected.block(client.show_request(request))?;
    let summary = shown.summary.into_option().unwrap_or_default();
    if !summary.waiting {
        let message = format!("request {id} does not wait, and only one that does can be edited");
        return Err(Failure::bad_input(message).hint("have the next one wait with `sayso request mode pause-next`"));
    }
    // By its id a section is found wherever it is now.
    let path = shown.sections.iter().find(|section| section.id == at).map_or(at, |section| &section.raw_path);
    let seen = summary.seen.into_option().unwrap_or_default();
    let headers = seen.headers.into_iter().map(|header| (header.name, header.value)).collect();
    let body = asking.connected.block(client.exact_request_body(id))?;
    let parsed = ModelRequest::new(id.to_string(), Head { path: seen.path, headers }, body);
    let refused = |error: sayso_wire::EditError| {
        let failure = Failure::bad_input(error.to_string());
        error.hint().map_or(failure, |hint| Failure::bad_input(error.to_string()).hint(hint))
    };
    let target = parsed.at(path).map_err(refused).inspect_err(|failure| near(asking, id, failure))?;
    let leaf = parsed.section(target.into()).and_then(|section| section.leaf).unwrap_or(target);
    let Some(document) = parsed.document() else { return Ok(None) };
    let text = document.text(leaf).map(std::borrow::Cow::into_owned);
    let (name, before) = match text {
        Some(text) => ("value.md", text),
        None => ("value.json", String::from_utf8_lossy(&document.value_bytes(leaf)).into_owned()),
    };
    let edited = match open(name, before.as_bytes())? {
        Left::Edited(edited) => edited,
        Left::AsItWas => {
            say("Nothing was edited.");
            return Ok(None);
        }
        Left::Failed(why) => return Err(Failure::bad_input(why)),
    };
    let mut edited = String::from_utf8(edited)
        .map_err(|_| Failure::bad_input(format!("what was edited of `{}` is not UTF-8", visible(path))))?;
    // Editors end what they write with a line break.
    if !before.ends_with('\n') && edited.ends_with('\n') {
        edited.pop();
    }
    if edited == before {
        say("Nothing was edited.");
        return Ok(None);
    }
    Ok(Some(Opened { path: document.path(leaf), value: edited, seen: summary.revision }))
}

fn resume(asking: &Asking<'_>, id: u64, revision: Option<u64>) -> Result<ExitCode, Failure> {
    let client = asking.connected.client();
    let request = proto::ResumeRequestRequest { request: id, revision, ..Default::default() };
    let answer = match asking.connected.block(client.resume_request(request)) {
        Ok(answer) => answer,
        Err(failure) => {
            // What is wrong is told with what would mend it.
            if matches!(&failure, Failure::Told { kind: ErrorKind::Conflict, .. }) && !asking.place.json {
                let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
                if let Ok(shown) = asking.connected.block(client.show_request(request)) {
                    say(problems(id, &shown.problems).trim_end());
                }
            }
            return Err(failure);
        }
    };
    if !asking.json(&answer)? {
        print(&format!(
            "Request {id} goes on.\n{}{}{}",
            saved(answer.saved, answer.removed),
            switched(answer.switched_to.as_known(), answer.switched_in.as_known()),
            turn_edits(answer.turn_edits),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long edits last that were not saved.
fn turn_edits(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "1 edit stays for the rest of this turn: it is made again in each following request.\n\
              To keep an edit for good, make it with `sayso request edit … --from-now-on`.\n"
            .to_owned(),
        count => format!(
            "{count} edits stay for the rest of this turn: they are made again in each following request.\n\
             To keep an edit for good, make it with `sayso request edit … --from-now-on`.\n"
        ),
    }
}

fn cancel(asking: &Asking<'_>, id: u64) -> Result<ExitCode, Failure> {
    let request = proto::CancelRequestRequest { request: id, ..Default::default() };
    let answer = asking.connected.block(asking.connected.client().cancel_request(request))?;
    if !asking.json(&answer)? {
        print(&format!(
            "Request {id} has ended; its agent is told `Request canceled before sending`, for the next 30 seconds also if it sends the same again.\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_at_the_first_sign_outside_of_quotes() {
        assert_eq!(split("model=a=b"), Some(("model", "a=b", false)));
        assert_eq!(split("stop:=[1]"), Some(("stop", "[1]", true)));
        assert_eq!(split(r#"metadata["a=\"b"].c=d"#), Some((r#"metadata["a=\"b"].c"#, "d", false)));
        assert_eq!(split("messages[0].content"), None);
        assert_eq!(split("text="), Some(("text", "", false)));
    }
}
