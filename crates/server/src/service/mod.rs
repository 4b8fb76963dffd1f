//! The services: each call read, carried out, and answered.

#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod intent;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod request;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod review;
mod stream;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod tool;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod workspace;

use buffa::MessageField;
use connectrpc::ConnectError;
use sayso_api::convert::BadMessage;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{SessionRecord, SessionStatus};
use sayso_review::{ErrorKind, IfChanged, Origin, Target, WsPath};
use serde::Serialize;

use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::Host;

/// An engine that answers something else than it was asked is broken.
fn unexpected() -> Failure {
    Failure::new(ErrorKind::Internal, "the engine answered something else than it was asked")
}

/// Data of ours as JSON, for programs.
fn json(value: &impl Serialize) -> String {
    // Made of strings, numbers and lists only, which always have a JSON form.
    serde_json::to_string(value).unwrap_or_default()
}

/// How much of a preview is wanted; what a later version asks for is none of ours.
fn view_of(view: buffa::EnumValue<PreviewView>) -> PreviewView {
    view.as_known().unwrap_or_default()
}

fn origin(origin: Option<proto::Origin>) -> Origin {
    origin.map(Origin::from).unwrap_or_default()
}

/// Which changes a plan is about, and what to do with files that changed since.
fn target(
    target: Option<proto::Target>,
    if_changed: buffa::EnumValue<proto::IfChanged>,
) -> Result<(Target, IfChanged), ConnectError> {
    let read = || -> Result<_, BadMessage> {
        let target = target.map_or(Ok(Target::Last), Target::try_from)?;
        let merges = if_changed == proto::IfChanged::IF_CHANGED_MERGE;
        Ok((target, if merges { IfChanged::Merge } else { IfChanged::Refuse }))
    };
    read().map_err(|error| Failure::from(error).into())
}

/// Leaves out of what is told of a change what an agent may not read. A person has to see what they decide about.
fn withhold(host: &Host, peer: Option<Peer>, progress: &mut proto::Progress) {
    withhold_preview(host, peer, &mut progress.preview);
    // All of it or nothing: of a part it could not be told what was not approved.
    if !progress.plan.is_empty() && Peer::person(peer, &host.notes).is_err() {
        let paths: Vec<WsPath> = progress.plan.iter().filter_map(|step| WsPath::parse(&step.path).ok()).collect();
        let located = progress
            .change
            .as_option()
            .into_iter()
            .flat_map(|change| &change.files)
            .filter_map(|file| WsPath::parse(&file.location).ok());
        if paths.into_iter().chain(located).any(|path| workspace::may_read(host, peer, &[path]).is_err()) {
            progress.plan.clear();
        }
    }
}

/// The same for a preview alone.
fn withhold_preview(
    host: &Host,
    peer: Option<Peer>,
    preview: &mut MessageField<proto::Preview, buffa::Inline<proto::Preview>>,
) {
    let Some(preview) = preview.as_option_mut() else { return };
    let tells = |file: &proto::FilePreview| {
        !file.hunks.is_empty()
            || !file.unified_diff.is_empty()
            || file.before_content.is_set()
            || file.after_content.is_set()
    };
    if !preview.files.iter().any(tells) {
        return;
    }
    if Peer::person(peer, &host.notes).is_ok() {
        return;
    }
    for file in &mut preview.files {
        let paths: Vec<WsPath> =
            [&file.path, &file.location].into_iter().filter_map(|path| WsPath::parse(path).ok()).collect();
        if workspace::may_read(host, peer, &paths).is_err() {
            (file.before_content, file.after_content) = (MessageField::none(), MessageField::none());
            file.hunks.clear();
            file.unified_diff.clear();
        }
    }
}

fn session(record: &SessionRecord) -> proto::Session {
    proto::Session {
        session: record.session.clone(),
        agent: record.agent.clone(),
        location: record.location.clone(),
        parent: record.parent.clone(),
        time_ms: record.time,
        active: record.status == SessionStatus::Active,
        turn: record.turn.clone(),
        rules_json: record.rules.iter().map(json).collect(),
        ..Default::default()
    }
}
