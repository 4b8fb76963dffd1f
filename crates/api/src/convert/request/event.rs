//! Events about requests, modes, overrides and views.

use buffa::MessageField;
use sayso_review::{ModeSet, OverridesSet, RequestEvent, RequestMode, RequestStep, ViewEvent};

use super::hold::overrides;
use super::response::ended;
use crate::convert::BadMessage;
use crate::convert::field::{enumeration, oneof, optional, required};
use crate::proto;
use crate::proto::oneof::request_event::Step;
use crate::proto::oneof::view_event::View;
use crate::proto::request_event::{Edited, Paused, Resumed, Sent};
use crate::proto::view_event::{Diff, Monitor, Trimmed};

impl From<&RequestEvent> for proto::RequestEvent {
    fn from(event: &RequestEvent) -> Self {
        Self { request: event.request, step: Some((&event.step).into()), ..Default::default() }
    }
}

impl From<&RequestStep> for Step {
    fn from(step: &RequestStep) -> Self {
        match step {
            RequestStep::Received(received) => proto::RequestReceived::from(&**received).into(),
            RequestStep::Paused { pause, deadline, inherits, handover: _ } => Paused {
                reason: MessageField::some(pause.into()),
                deadline_ms: *deadline,
                inherits: *inherits,
                ..Default::default()
            }
            .into(),
            RequestStep::Edited { version, path, edit, patch: _ } => Edited {
                revision: *version,
                path: path.clone(),
                edit: proto::RequestEditKind::from(*edit).into(),
                ..Default::default()
            }
            .into(),
            RequestStep::Resumed { by } => {
                Resumed { by: proto::Resumer::from(*by).into(), ..Default::default() }.into()
            }
            RequestStep::Sent { body, patch: _, overrides: report } => Sent {
                body: body.as_ref().map(proto::BodySize::from).into(),
                overrides: overrides(report).into(),
                ..Default::default()
            }
            .into(),
            RequestStep::UpstreamRetry(retry) => proto::UpstreamRetry::from(retry).into(),
            RequestStep::Answered(answer) => proto::RequestAnswer::from(&**answer).into(),
            RequestStep::Ended { end, edited } => ended(end, edited.as_ref()).into(),
        }
    }
}

impl TryFrom<proto::RequestEvent> for RequestEvent {
    type Error = BadMessage;

    fn try_from(event: proto::RequestEvent) -> Result<Self, BadMessage> {
        let within = |name: &'static str| move |error: BadMessage| error.within(name);
        let step = match oneof(event.step, "step")? {
            Step::Received(received) => {
                RequestStep::Received(Box::new((*received).try_into().map_err(within("received"))?))
            }
            Step::Paused(paused) => RequestStep::Paused {
                pause: required(paused.reason, "paused.reason")?,
                deadline: paused.deadline_ms,
                inherits: paused.inherits,
                handover: None,
            },
            Step::Edited(edited) => RequestStep::Edited {
                version: edited.revision,
                path: edited.path,
                edit: enumeration(edited.edit, "edited.edit")?,
                patch: None,
            },
            Step::Resumed(resumed) => RequestStep::Resumed { by: enumeration(resumed.by, "resumed.by")? },
            Step::Sent(sent) => RequestStep::Sent {
                body: optional(sent.body, "sent.body")?,
                patch: None,
                overrides: optional(sent.overrides, "sent.overrides")?.unwrap_or_default(),
            },
            Step::UpstreamRetry(retry) => {
                RequestStep::UpstreamRetry((*retry).try_into().map_err(within("upstream_retry"))?)
            }
            Step::Answered(answer) => {
                RequestStep::Answered(Box::new((*answer).try_into().map_err(within("answered"))?))
            }
            Step::Ended(mut end) => RequestStep::Ended {
                edited: optional(std::mem::take(&mut end.edited), "ended.edited")?,
                end: (*end).try_into().map_err(within("ended"))?,
            },
        };
        Ok(Self { request: event.request, step })
    }
}

impl From<&ModeSet> for proto::RequestModeSet {
    fn from(set: &ModeSet) -> Self {
        Self {
            session: set.session.clone(),
            mode: set.mode.map(proto::RequestMode::from).unwrap_or_default().into(),
            pause_next: set.pause_next,
            capture_next: set.capture_next,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RequestModeSet> for ModeSet {
    type Error = BadMessage;

    fn try_from(set: proto::RequestModeSet) -> Result<Self, BadMessage> {
        let mode = enumeration::<_, Option<RequestMode>>(set.mode, "mode")?;
        Ok(Self { session: set.session, mode, pause_next: set.pause_next, capture_next: set.capture_next })
    }
}

impl From<&OverridesSet> for proto::OverridesSet {
    fn from(set: &OverridesSet) -> Self {
        Self {
            scope: set.scope.clone(),
            session: set.session.clone(),
            count: set.count,
            from: set.from,
            ..Default::default()
        }
    }
}

impl From<proto::OverridesSet> for OverridesSet {
    fn from(set: proto::OverridesSet) -> Self {
        Self { scope: set.scope, session: set.session, count: set.count, from: set.from }
    }
}

impl From<ViewEvent> for proto::ViewEvent {
    fn from(view: ViewEvent) -> Self {
        let view: View = match view {
            ViewEvent::Diff { request, edits } => Diff { request, edits, ..Default::default() }.into(),
            ViewEvent::Monitor { through } => Monitor { through, ..Default::default() }.into(),
            ViewEvent::Trimmed { runs } => Trimmed { runs, ..Default::default() }.into(),
        };
        Self { view: Some(view), ..Default::default() }
    }
}

impl TryFrom<proto::ViewEvent> for ViewEvent {
    type Error = BadMessage;

    fn try_from(event: proto::ViewEvent) -> Result<Self, BadMessage> {
        Ok(match oneof(event.view, "view")? {
            View::Diff(diff) => Self::Diff { request: diff.request, edits: diff.edits },
            View::Monitor(monitor) => Self::Monitor { through: monitor.through },
            View::Trimmed(trimmed) => Self::Trimmed { runs: trimmed.runs },
        })
    }
}
