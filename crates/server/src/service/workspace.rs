//! The workspace itself: bounded reads under policy, what policy says and why, and branches of git.

use std::sync::Arc;

use connectrpc::{RequestContext, Response, ServiceRequest, ServiceResult};
use sayso_api::proto;
use sayso_api::proto::list_directory_response::{Entry, entry};
use sayso_review::{Act, ErrorKind, Place, Ruling, Who, WsPath};
use sayso_tools::ToolError;
use sayso_workspace::{EntryKind, ReadLimit};

use crate::branch;
use crate::caller::Peer;
use crate::explain::explain;
use crate::failure::Failure;
use crate::host::{Host, blocking, by_a_person};

/// Bytes that are read where nobody says how many, and at most.
const SOME_BYTES: u32 = 64 << 10;
const MOST_BYTES: u32 = 4 << 20;
/// Entries that are listed where nobody says how many, and at most.
const SOME_ENTRIES: u32 = 1_000;
const MOST_ENTRIES: u32 = 10_000;

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Workspaces(pub(crate) Arc<Host>);

/// How many, where nobody may want more than `most`.
fn bounded(asked: u32, some: u32, most: u32) -> u32 {
    if asked == 0 { some } else { asked.min(most) }
}

impl proto::WorkspaceService for Workspaces {
    async fn read_file(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReadFileRequest>,
    ) -> ServiceResult<proto::ReadFileResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let response = blocking(&self.0, move |host| {
            let path = host.workspace.locate(&request.path).map_err(ToolError::from)?;
            let opened = host.workspace.open_path(&path);
            let really = opened.as_ref().map_or_else(|_| path.clone(), |opened| opened.resolved.clone());
            may_read(host, peer, &[path, really])?;
            let limit = bounded(request.limit, SOME_BYTES, MOST_BYTES);
            let part = opened?.read_part(request.offset, ReadLimit(limit.into())).map_err(ToolError::from)?;
            let end = request.offset.saturating_add(part.bytes.len() as u64);
            Ok(proto::ReadFileResponse {
                has_more: end < part.size,
                content: part.bytes,
                size: part.size,
                mode: part.mode.bits(),
                ..Default::default()
            })
        });
        Response::ok(response.await?)
    }

    async fn list_directory(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListDirectoryRequest>,
    ) -> ServiceResult<proto::ListDirectoryResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let response = blocking(&self.0, move |host| {
            let named = if request.path.is_empty() { "." } else { &request.path };
            let path = host.workspace.locate(named).map_err(ToolError::from)?;
            let opened = host.workspace.open_path(&path);
            let really = opened.as_ref().map_or_else(|_| path.clone(), |opened| opened.resolved.clone());
            may_read(host, peer, &[path, really])?;
            let mut listed = opened?.list()?.entries;
            listed.retain(|found| request.after.as_ref().is_none_or(|after| found.name > *after));
            listed.sort_by(|one, other| one.name.cmp(&other.name));
            let limit = bounded(request.limit, SOME_ENTRIES, MOST_ENTRIES) as usize;
            let has_more = listed.len() > limit;
            listed.truncate(limit);
            let entries = listed.into_iter().map(|found| Entry {
                name: found.name,
                kind: match found.kind {
                    EntryKind::File => entry::Kind::KIND_FILE,
                    EntryKind::Directory => entry::Kind::KIND_DIRECTORY,
                    EntryKind::Symlink => entry::Kind::KIND_LINK,
                    EntryKind::Special => entry::Kind::KIND_UNSPECIFIED,
                }
                .into(),
                size: found.size,
                ..Default::default()
            });
            Ok(proto::ListDirectoryResponse { entries: entries.collect(), has_more, ..Default::default() })
        });
        Response::ok(response.await?)
    }

    async fn explain_policy(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ExplainPolicyRequest>,
    ) -> ServiceResult<proto::ExplainPolicyResponse> {
        let request = request.to_owned_message();
        let response = blocking(&self.0, move |host| {
            host.refresh()?;
            host.gate.policy(request.session.as_deref(), |policy| {
                let ruled = explain(&request, policy, &host.root)?;
                let mut details = serde_json::json!(ruled);
                details["ignored_rules"] = serde_json::json!(policy.ignored());
                let parts = ruled.parts.iter().map(|part| proto::explain_policy_response::Part {
                    access: part.access.to_string(),
                    what: part.what.clone(),
                    ruling: proto::Ruling::from(part.ruling).into(),
                    rule: part.by.to_string(),
                    reason: part.reason.clone(),
                    others: part
                        .others
                        .iter()
                        .map(|other| format!("{} by {}: {}", other.then, other.rule, other.why))
                        .collect(),
                    ..Default::default()
                });
                Ok(proto::ExplainPolicyResponse {
                    ruling: proto::Ruling::from(ruled.ruling).into(),
                    rule: ruled.by.to_string(),
                    reason: ruled.reason.clone(),
                    parts: parts.collect(),
                    details_json: details.to_string(),
                    ..Default::default()
                })
            })?
        });
        Response::ok(response.await?)
    }

    async fn get_branch(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::GetBranchRequest>,
    ) -> ServiceResult<proto::GetBranchResponse> {
        let prefix = request.to_owned_message().prefix;
        let task = proto::BranchTask { prefix, ..Default::default() };
        Response::ok(blocking(&self.0, move |host| branch::state(host, &task)).await?)
    }

    async fn plan_branch(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::PlanBranchRequest>,
    ) -> ServiceResult<proto::PlanBranchResponse> {
        let task = request.to_owned_message().task.into_option().unwrap_or_default();
        Response::ok(blocking(&self.0, move |host| branch::plan(host, &task)).await?)
    }

    async fn take_up_branch(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::TakeUpBranchRequest>,
    ) -> ServiceResult<proto::TakeUpBranchResponse> {
        let task = request.to_owned_message().task.into_option().unwrap_or_default();
        Response::ok(by_a_person(&self.0, &context, move |host| branch::take_up(host, &task)).await?)
    }
}

/// Whether somebody may read: an agent what policy allows, a person what it does not deny.
pub(super) fn may_read(host: &Host, peer: Option<Peer>, paths: &[WsPath]) -> Result<(), Failure> {
    host.refresh()?;
    let places: Vec<Place> = paths.iter().cloned().map(Place::Inside).collect();
    let who = Who { agent: None, session: None };
    let ruled = host.gate.policy(None, |policy| policy.judge(&Act::Read { places: &places }, &who))?;
    let strictest = if Peer::person(peer, &host.notes).is_ok() { Ruling::Ask } else { Ruling::Later };
    if ruled.ruling <= strictest {
        return Ok(());
    }
    let path = paths.first().map(ToString::to_string).unwrap_or_default();
    let message = format!("reading `{path}` is not allowed: policy says {} ({})", ruled.ruling, ruled.by.short());
    Err(Failure::new(ErrorKind::FsDenied, message).hint("`sayso policy explain read` says more"))
}
