//! Services of the protocol.

#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod agent;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod conversation;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod editor;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod intent;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod request;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod review;
pub(crate) mod stream;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod tool;
#[allow(refining_impl_trait, reason = "concrete response types")]
pub(crate) mod workspace;

use buffa::MessageField;
use connectrpc::ConnectError;
use sayso_api::convert::BadMessage;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{SessionRecord, SessionStatus};
use sayso_review::{IfChanged, Origin, Target, WsPath};
use serde::Serialize;

use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::Host;

fn json(value: &impl Serialize) -> String {
    // Cannot fail: the values consist of strings, numbers and lists.
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads the view of a preview. An unknown value of a newer client means none.
fn view_of(view: buffa::EnumValue<PreviewView>) -> PreviewView {
    view.as_known().unwrap_or_default()
}

fn origin(origin: Option<proto::Origin>) -> Origin {
    origin.map(Origin::from).unwrap_or_default()
}

/// Reads the target of an undo or redo. Absent fields have the defaults of the protocol.
fn target(
    target: Option<proto::Target>,
    if_changed: buffa::EnumValue<proto::IfChanged>,
) -> Result<(Target, IfChanged), ConnectError> {
    read_target(target, if_changed).map_err(|error| Failure::from(error).into())
}

fn read_target(
    target: Option<proto::Target>,
    if_changed: buffa::EnumValue<proto::IfChanged>,
) -> Result<(Target, IfChanged), BadMessage> {
    let target = target.map_or(Ok(Target::Last), Target::try_from)?;
    let merges = if_changed == proto::IfChanged::IF_CHANGED_MERGE;
    Ok((target, if merges { IfChanged::Merge } else { IfChanged::Refuse }))
}

/// Removes contents that an agent may not read. A person gets all contents, in order to decide.
fn withhold(host: &Host, peer: Option<Peer>, details: &mut proto::ChangeDetails) {
    withhold_preview(host, peer, &mut details.preview);
    // The whole plan or none: an incomplete one would look like a smaller approval.
    if !details.plan.is_empty() && Peer::require_person(peer, &host.agents).is_err() {
        let paths: Vec<WsPath> = details.plan.iter().filter_map(|step| WsPath::parse(&step.path).ok()).collect();
        let located = details
            .change
            .as_option()
            .into_iter()
            .flat_map(|change| &change.files)
            .filter_map(|file| WsPath::parse(&file.location).ok());
        if paths.into_iter().chain(located).any(|path| workspace::may_read(host, peer, &[path]).is_err()) {
            details.plan.clear();
        }
    }
}

/// Removes contents of a preview that an agent may not read.
fn withhold_preview(
    host: &Host,
    peer: Option<Peer>,
    preview: &mut MessageField<proto::Preview, buffa::Inline<proto::Preview>>,
) {
    let Some(preview) = preview.as_option_mut() else { return };
    let has_contents = |file: &proto::FilePreview| {
        !file.hunks.is_empty()
            || !file.unified_diff.is_empty()
            || file.before_content.is_set()
            || file.after_content.is_set()
    };
    if !preview.files.iter().any(has_contents) {
        return;
    }
    if Peer::require_person(peer, &host.agents).is_ok() {
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
