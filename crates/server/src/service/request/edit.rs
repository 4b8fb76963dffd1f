//! Edits of held requests.

use sayso_api::convert::BadMessage;
use sayso_api::convert::field::{count, oneof};
use sayso_api::error::ErrorData;
use sayso_api::proto;
use sayso_api::proto::edit_request_request::{Pin, Set, Shrink};
use sayso_api::proto::oneof::edit_request_request::Edit as Choice;
use sayso_api::proto::oneof::edit_target::Target as TargetChoice;
use sayso_api::proto::oneof::repair::Repair as RepairChoice;
use sayso_proxy::interceptor::{
    ApplyScope, Edit, EditRequestError, EditTarget, ExpectedRevision, Interceptor, RequestView,
};
use sayso_review::RequestId;
use sayso_wire::json::PathError;
use sayso_wire::{EditError, Repair, SectionId, ShrinkLimits};

use super::scope_message;
use super::section::{edit_impact, problems};
use crate::failure::Failure;
use crate::host::{Host, now};

/// Paths in the error for a path that does not exist.
const MAX_SIMILAR_PATHS: usize = 5;
/// Leading characters that a similar path has in common.
const MIN_COMMON_CHARACTERS: usize = 4;

pub(super) fn edit(host: &Host, asked: proto::EditRequestRequest) -> Result<proto::EditRequestResponse, Failure> {
    host.refresh_if_readable();
    let request = asked.request;
    let edit = read(oneof(asked.edit, "edit")?)?;
    let apply_to = super::scope(asked.save_scope, "save_scope")?.map_or(ApplyScope::ThisRequest, ApplyScope::FromNowOn);
    super::require_known(host, request)?;
    let interceptor = &host.proxy.interceptor;
    let expected = asked.revision.map_or(ExpectedRevision::Any, ExpectedRevision::Exactly);
    let edited = interceptor.edit_expecting(request, &edit, expected, apply_to, now());
    let edited = edited.map_err(|error| failure(interceptor, request, error))?;
    // If another surface has resumed it meanwhile, this is the forwarded request.
    let (impact, problems) = interceptor.view(request, |RequestView { request, .. }| {
        (edited.impact.as_ref().map(|impact| edit_impact(request, impact)), problems(request))
    })?;
    let tokens_saved = edited.impact.as_ref().map_or(0, |impact| {
        let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        tokens(impact.before.count) - tokens(impact.after.count)
    });
    Ok(proto::EditRequestResponse {
        revision: edited.revision,
        path: edited.path,
        tokens_saved,
        tokens_saved_here: edited.tokens_saved,
        added: edited.added,
        unknown_members: edited.unknown_members,
        impact: impact.into(),
        problems: problems.into_iter().filter(|problem| problem.blocking).collect(),
        saved: edited.captured.saved as u64,
        removed: edited.captured.removed as u64,
        new_mode: edited.switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
        new_mode_scope: edited.switched.map(|to| scope_message(to.scope)).unwrap_or_default().into(),
        ..Default::default()
    })
}

/// Adds similar paths to the error for a path that does not exist.
fn failure(interceptor: &Interceptor, request: RequestId, error: EditRequestError) -> Failure {
    let path = match &error {
        EditRequestError::Edit(EditError::NoSuchPath(PathError::NotFound { path, .. })) => path.clone(),
        _ => return error.into(),
    };
    let known = interceptor.view(request, |RequestView { request, .. }| {
        request.sections().map(|section| request.raw_path(section)).collect()
    });
    let similar = similar_paths(&path, known.unwrap_or_default());
    Failure::from(error).data(ErrorData::PathNotFound { path, similar })
}

/// Paths that share the longest start with `path`, best match first.
fn similar_paths(path: &str, known: Vec<String>) -> Vec<String> {
    let common = |other: &str| path.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let mut similar: Vec<String> = known.into_iter().filter(|other| common(other) >= MIN_COMMON_CHARACTERS).collect();
    similar.sort_by_key(|other| std::cmp::Reverse(common(other)));
    similar.dedup();
    similar.truncate(MAX_SIMILAR_PATHS);
    similar
}

/// Converts an edit. Errors name the field.
fn read(choice: Choice) -> Result<Edit, BadMessage> {
    Ok(match choice {
        Choice::Set(set) => {
            let (at, value) = read_set(*set, "set")?;
            Edit::Set { at, value }
        }
        Choice::SetJson(set) => {
            let (at, value) = read_set(*set, "set_json")?;
            Edit::SetJson { at, value }
        }
        Choice::Delete(target) => Edit::Delete { at: read_target(Some(*target), "delete")? },
        Choice::Restore(target) => Edit::Restore { at: read_target(Some(*target), "restore")? },
        Choice::Append(text) => Edit::Append { text },
        Choice::Shrink(shrink) => {
            let Shrink { target, keep_head, keep_tail, .. } = *shrink;
            let default = ShrinkLimits::default();
            let keep = ShrinkLimits {
                head: keep_head.map_or(Ok(default.head), |number| count(number, "shrink.keep_head"))?,
                tail: keep_tail.map_or(Ok(default.tail), |number| count(number, "shrink.keep_tail"))?,
            };
            Edit::Shrink { at: read_target(target.into_option(), "shrink.target")?, keep }
        }
        Choice::Repair(repair) => Edit::Repair(read_repair(*repair)?),
        Choice::Patch(patch) => Edit::Patch(patch),
        Choice::Pin(pin) => {
            let Pin { target, before, .. } = *pin;
            let before = before.map(|id| section(&id, "pin.before")).transpose()?;
            Edit::Pin { at: read_target(target.into_option(), "pin.target")?, before }
        }
        Choice::Unpin(target) => Edit::Unpin { at: read_target(Some(*target), "unpin")? },
        Choice::Undo(_) => Edit::Undo,
        Choice::Redo(_) => Edit::Redo,
        Choice::Reset(_) => Edit::Reset,
    })
}

fn read_set(set: Set, field: &str) -> Result<(EditTarget, String), BadMessage> {
    Ok((read_target(set.target.into_option(), &format!("{field}.target"))?, set.value))
}

fn read_target(target: Option<proto::EditTarget>, field: &str) -> Result<EditTarget, BadMessage> {
    let target = target.ok_or_else(|| BadMessage::new(field, "it is missing"))?;
    match oneof(target.target, field)? {
        TargetChoice::Path(path) => Ok(EditTarget::Path(path)),
        TargetChoice::Section(id) => Ok(EditTarget::Section(section(&id, &format!("{field}.section"))?)),
    }
}

fn section(id: &str, field: &str) -> Result<SectionId, BadMessage> {
    id.parse().map_err(|_| BadMessage::new(field, format!("`{id}` is not a section id, such as 0:12")))
}

fn read_repair(repair: proto::Repair) -> Result<Repair, BadMessage> {
    let target = |id: &str, field: &str| section(id, field).map(|section| section.target);
    Ok(match oneof(repair.repair, "repair")? {
        RepairChoice::Delete(id) => Repair::Delete(target(&id, "repair.delete")?),
        RepairChoice::Restore(id) => Repair::Restore(target(&id, "repair.restore")?),
        RepairChoice::Move(moved) => Repair::MoveBefore(
            target(&moved.section, "repair.move.section")?,
            target(&moved.before, "repair.move.before")?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected_field(choice: Choice) -> String {
        read(choice).err().map(|error| error.field).unwrap_or_default()
    }

    #[test]
    fn similar_paths_share_longest_start() {
        let known = ["model", "messages[0].content", "messages[1].content", "messages[1].content", "max_tokens"];
        let known = || known.map(str::to_owned).to_vec();
        assert_eq!(similar_paths("messages[1].text", known()), ["messages[1].content", "messages[0].content"]);
        assert_eq!(similar_paths("mo", known()), [""; 0]);
    }

    #[test]
    fn invalid_edit_field_is_named() {
        let target =
            |id: &str| proto::EditTarget { target: Some(TargetChoice::Section(id.to_owned())), ..Default::default() };
        assert_eq!(rejected_field(Choice::Delete(Box::new(target("x")))), "delete.section");
        assert_eq!(rejected_field(Choice::Delete(Box::default())), "delete");
        assert_eq!(rejected_field(Choice::Set(Box::default())), "set.target");
        assert_eq!(rejected_field(Choice::Repair(Box::default())), "repair");
        let pin = Pin { target: Some(target("0:1")).into(), before: Some("0:".to_owned()), ..Default::default() };
        assert_eq!(rejected_field(Choice::Pin(Box::new(pin))), "pin.before");
        assert_eq!(
            read(Choice::Restore(Box::new(target("0:7#2")))).ok(),
            "0:7#2".parse().ok().map(|id| Edit::Restore { at: EditTarget::Section(id) })
        );
    }
}
