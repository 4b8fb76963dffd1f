//! The services: each call read, carried out, and answered.

#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod intent;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod review;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod tool;
#[allow(refining_impl_trait, reason = "the services say which message they answer with")]
pub(crate) mod workspace;

use connectrpc::ConnectError;
use sayso_api::convert::BadMessage;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{SessionRecord, SessionStatus};
use sayso_review::{ErrorKind, IfChanged, Origin, Target};
use serde::Serialize;

use crate::failure::Failure;

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
