//! `WorkspaceService`: bounded reads under policy, policy explanations and git branches.

use std::sync::Arc;

use connectrpc::{RequestContext, Response, ServiceRequest, ServiceResult};
use sayso_api::proto;
use sayso_api::proto::list_directory_response::{Entry, entry};
use sayso_review::{ErrorKind, PathTarget, PolicyQuery, Principal, Ruling, WsPath};
use sayso_tools::ToolError;
use sayso_workspace::{EntryKind, ReadLimit};

use crate::branch;
use crate::caller::Peer;
use crate::explain::explain;
use crate::failure::Failure;
use crate::host::{Host, blocking, run_as_person};

const DEFAULT_READ_BYTES: u32 = 64 << 10;
const MAX_READ_BYTES: u32 = 4 << 20;
const DEFAULT_ENTRIES: u32 = 1_000;
const MAX_ENTRIES: u32 = 10_000;

#[derive(Clone, Debug)]
pub(crate) struct Workspaces(pub(crate) Arc<Host>);

fn limit(requested: u32, default: u32, max: u32) -> u32 {
    if requested == 0 { default } else { requested.min(max) }
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
            let resolved = opened.as_ref().map_or_else(|_| path.clone(), |opened| opened.resolved.clone());
            may_read(host, peer, &[path, resolved])?;
            let size = limit(request.limit, DEFAULT_READ_BYTES, MAX_READ_BYTES);
            let part = opened?.read_part(request.offset, ReadLimit(size.into())).map_err(ToolError::from)?;
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
            let resolved = opened.as_ref().map_or_else(|_| path.clone(), |opened| opened.resolved.clone());
            may_read(host, peer, &[path, resolved])?;
            let mut listed = opened?.list()?.entries;
            listed.retain(|entry| request.after.as_ref().is_none_or(|after| entry.name > *after));
            listed.sort_by(|one, other| one.name.cmp(&other.name));
            let max = limit(request.limit, DEFAULT_ENTRIES, MAX_ENTRIES) as usize;
            let has_more = listed.len() > max;
            listed.truncate(max);
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
                let decision = explain(&request, policy, &host.root)?;
                let mut details = serde_json::json!(decision);
                details["ignored_rules"] = serde_json::json!(policy.ignored_rules());
                let parts = decision.parts.iter().map(|part| proto::explain_policy_response::PartDecision {
                    access: part.access.to_string(),
                    target: part.target.clone(),
                    ruling: proto::Ruling::from(part.ruling).into(),
                    rule: part.rule.to_string(),
                    reason: part.reason.clone(),
                    overridden: part
                        .overridden
                        .iter()
                        .map(|other| format!("{} by {}: {}", other.then, other.rule, other.reason))
                        .collect(),
                    ..Default::default()
                });
                Ok(proto::ExplainPolicyResponse {
                    ruling: proto::Ruling::from(decision.ruling).into(),
                    rule: decision.rule.to_string(),
                    reason: decision.reason.clone(),
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

    async fn check_out_branch(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CheckOutBranchRequest>,
    ) -> ServiceResult<proto::CheckOutBranchResponse> {
        let task = request.to_owned_message().task.into_option().unwrap_or_default();
        Response::ok(run_as_person(&self.0, &context, move |host| branch::check_out(host, &task)).await?)
    }
}

/// Checks policy for reading. An agent may read if policy allows it, a person unless policy denies it.
pub(super) fn may_read(host: &Host, peer: Option<Peer>, paths: &[WsPath]) -> Result<(), Failure> {
    host.refresh()?;
    let targets: Vec<PathTarget> = paths.iter().cloned().map(PathTarget::Inside).collect();
    let principal = Principal { agent: None, session: None };
    let decision =
        host.gate.policy(None, |policy| policy.evaluate(&PolicyQuery::Read { targets: &targets }, &principal))?;
    let strictest = if Peer::require_person(peer, &host.agents).is_ok() { Ruling::Ask } else { Ruling::Later };
    if decision.ruling <= strictest {
        return Ok(());
    }
    let path = paths.first().map(ToString::to_string).unwrap_or_default();
    let message = format!("cannot read `{path}`: policy rules `{}` ({})", decision.ruling, decision.rule.short_name());
    Err(Failure::new(ErrorKind::FsDenied, message).hint("run `sayso policy explain read` for details"))
}
