//! Edits of held requests.

use sayso_api::convert::field::oneof;
use sayso_api::error::ErrorData;
use sayso_api::proto;
use sayso_present::path_match::similar_paths;
use sayso_proxy::interceptor::{ApplyScope, EditRequestError, ExpectedRevision, Interceptor, RequestView};
use sayso_review::RequestId;
use sayso_wire::json::PathError;
use sayso_wire::{Edit, EditError};

use super::section::{edit_impact, problems};
use crate::failure::Failure;
use crate::host::{Host, now};

pub(super) fn edit(host: &Host, asked: proto::EditRequestRequest) -> Result<proto::EditRequestResponse, Failure> {
    host.refresh_if_readable();
    let request = asked.request;
    let edit = Edit::try_from(oneof(asked.edit, "edit")?)?;
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
        new_mode_scope: edited.switched.map(|to| proto::OverrideScope::from(to.scope)).unwrap_or_default().into(),
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
        request.sections().map(|section| request.raw_path(section)).collect::<Vec<_>>()
    });
    let known = known.unwrap_or_default();
    let similar = similar_paths(&path, known.iter().map(String::as_str));
    let similar = similar.into_iter().map(str::to_owned).collect();
    Failure::from(error).data(ErrorData::PathNotFound { path, similar })
}
