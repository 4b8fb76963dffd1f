//! What happens to requests to models, in the stream.

use buffa::MessageField;
use sayso_review::{ModeSet, OverridesSet, RequestEvent, RequestLook, RequestMode, RequestStep};

use super::BadMessage;
use super::field::{enumeration, oneof, optional, required};
use super::request::{ended, saved};
use crate::proto;
use crate::proto::oneof::request_event::Step;
use crate::proto::oneof::request_look::Looked;
use crate::proto::request_event::{Edited, Paused, Resumed, Sent};
use crate::proto::request_look::{Diff, Monitor, Trimmed};

impl From<&RequestEvent> for proto::RequestEvent {
    fn from(event: &RequestEvent) -> Self {
        Self { request: event.request, step: Some((&event.step).into()), ..Default::default() }
    }
}

impl From<&RequestStep> for Step {
    fn from(step: &RequestStep) -> Self {
        match step {
            RequestStep::Seen(seen) => proto::RequestSeen::from(&**seen).into(),
            RequestStep::Paused { why, deadline, inherits, .. } => Paused {
                why: MessageField::some(why.into()),
                deadline_ms: *deadline,
                inherits: *inherits,
                ..Default::default()
            }
            .into(),
            RequestStep::Edited { version, path, edit, .. } => Edited {
                revision: *version,
                path: path.clone(),
                edit: proto::RequestEditKind::from(*edit).into(),
                ..Default::default()
            }
            .into(),
            RequestStep::Resumed { by } => {
                Resumed { by: proto::Resumer::from(*by).into(), ..Default::default() }.into()
            }
            RequestStep::Sent { body, saved: outcome, .. } => Sent {
                body: body.as_ref().map(proto::BodySize::from).into(),
                saved: saved(outcome).into(),
                ..Default::default()
            }
            .into(),
            RequestStep::TurnedAway(by) => proto::RequestTurnedAway::from(by).into(),
            RequestStep::Answered(answer) => proto::RequestAnswer::from(&**answer).into(),
            RequestStep::Ended { why, edited } => ended(why, edited.as_ref()).into(),
        }
    }
}

impl TryFrom<proto::RequestEvent> for RequestEvent {
    type Error = BadMessage;

    fn try_from(event: proto::RequestEvent) -> Result<Self, BadMessage> {
        let within = |name: &'static str| move |error: BadMessage| error.within(name);
        let step = match oneof(event.step, "step")? {
            Step::Seen(seen) => RequestStep::Seen(Box::new((*seen).try_into().map_err(within("seen"))?)),
            Step::Paused(paused) => RequestStep::Paused {
                why: required(paused.why, "paused.why")?,
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
                saved: optional(sent.saved, "sent.saved")?.unwrap_or_default(),
            },
            Step::TurnedAway(by) => RequestStep::TurnedAway((*by).try_into().map_err(within("turned_away"))?),
            Step::Answered(answer) => {
                RequestStep::Answered(Box::new((*answer).try_into().map_err(within("answered"))?))
            }
            Step::Ended(mut end) => RequestStep::Ended {
                edited: optional(std::mem::take(&mut end.edited), "ended.edited")?,
                why: (*end).try_into().map_err(within("ended"))?,
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

impl From<RequestLook> for proto::RequestLook {
    fn from(look: RequestLook) -> Self {
        let looked: Looked = match look {
            RequestLook::Diff { request, edits } => Diff { request, edits, ..Default::default() }.into(),
            RequestLook::Monitor { through } => Monitor { through, ..Default::default() }.into(),
            RequestLook::Trimmed { runs } => Trimmed { runs, ..Default::default() }.into(),
        };
        Self { looked: Some(looked), ..Default::default() }
    }
}

impl TryFrom<proto::RequestLook> for RequestLook {
    type Error = BadMessage;

    fn try_from(look: proto::RequestLook) -> Result<Self, BadMessage> {
        Ok(match oneof(look.looked, "looked")? {
            Looked::Diff(diff) => Self::Diff { request: diff.request, edits: diff.edits },
            Looked::Monitor(monitor) => Self::Monitor { through: monitor.through },
            Looked::Trimmed(trimmed) => Self::Trimmed { runs: trimmed.runs },
        })
    }
}
