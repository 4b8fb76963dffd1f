//! Request modes, kinds of edits and saved edits.

use buffa::{EnumValue, MessageField};
use sayso_review::{EditKind, RequestMode};

use crate::convert::field::{enumeration, list, required, unspecified};
use crate::convert::{BadMessage, messages};
use crate::proto;
use crate::proto::{get_modes_response, section, set_mode_response};
use crate::request::{
    AutoApply, HeldFate, ModeLabel, ModeResult, ModeState, RequestModes, SavedEdit, SessionMode, StillHeld,
};

impl From<EditKind> for proto::RequestEditKind {
    fn from(kind: EditKind) -> Self {
        match kind {
            EditKind::Set => Self::Set,
            EditKind::Delete => Self::Delete,
            EditKind::Restore => Self::Restore,
            EditKind::Append => Self::Append,
            EditKind::Shrink => Self::Shrink,
            EditKind::Repair => Self::Repair,
            EditKind::Patch => Self::Patch,
            EditKind::Pin => Self::Pin,
            EditKind::Undo => Self::Undo,
            EditKind::Redo => Self::Redo,
            EditKind::Reset => Self::Reset,
        }
    }
}

impl TryFrom<proto::RequestEditKind> for EditKind {
    type Error = BadMessage;

    fn try_from(kind: proto::RequestEditKind) -> Result<Self, BadMessage> {
        use proto::RequestEditKind as Kind;
        Ok(match kind {
            Kind::Unspecified => return Err(unspecified()),
            Kind::Set => Self::Set,
            Kind::Delete => Self::Delete,
            Kind::Restore => Self::Restore,
            Kind::Append => Self::Append,
            Kind::Shrink => Self::Shrink,
            Kind::Repair => Self::Repair,
            Kind::Patch => Self::Patch,
            Kind::Pin => Self::Pin,
            Kind::Undo => Self::Undo,
            Kind::Redo => Self::Redo,
            Kind::Reset => Self::Reset,
        })
    }
}

impl From<RequestMode> for proto::RequestMode {
    fn from(mode: RequestMode) -> Self {
        match mode {
            RequestMode::Off => Self::Off,
            RequestMode::InterceptAlways => Self::InterceptAlways,
            RequestMode::AutoOverride => Self::AutoOverride,
        }
    }
}

impl From<proto::RequestMode> for Option<RequestMode> {
    fn from(mode: proto::RequestMode) -> Self {
        match mode {
            proto::RequestMode::Unspecified => None,
            proto::RequestMode::Off => Some(RequestMode::Off),
            proto::RequestMode::InterceptAlways => Some(RequestMode::InterceptAlways),
            proto::RequestMode::AutoOverride => Some(RequestMode::AutoOverride),
        }
    }
}

impl From<&ModeState> for proto::ModeState {
    fn from(state: &ModeState) -> Self {
        let auto_apply = match state.auto_apply {
            AutoApply::Off => proto::mode_state::AutoApply::Unspecified,
            AutoApply::Capturing => proto::mode_state::AutoApply::Capturing,
            AutoApply::Applying => proto::mode_state::AutoApply::Applying,
        };
        Self {
            mode: proto::RequestMode::from(state.mode).into(),
            label: state.label.clone(),
            pause_next: state.pause_next,
            capture_next: state.capture_next,
            auto_apply: auto_apply.into(),
            saved_ms: state.latest_saved,
            saved: state.saved,
            ..Default::default()
        }
    }
}

/// Reads a mode that has to be specified.
fn specified(mode: EnumValue<proto::RequestMode>) -> Result<RequestMode, BadMessage> {
    enumeration::<_, Option<RequestMode>>(mode, "mode")?.ok_or_else(|| unspecified().within("mode"))
}

impl TryFrom<proto::ModeState> for ModeState {
    type Error = BadMessage;

    fn try_from(state: proto::ModeState) -> Result<Self, BadMessage> {
        let auto_apply = match enumeration::<_, proto::mode_state::AutoApply>(state.auto_apply, "auto_apply")? {
            proto::mode_state::AutoApply::Unspecified => AutoApply::Off,
            proto::mode_state::AutoApply::Capturing => AutoApply::Capturing,
            proto::mode_state::AutoApply::Applying => AutoApply::Applying,
        };
        Ok(Self {
            mode: specified(state.mode)?,
            label: state.label,
            pause_next: state.pause_next,
            capture_next: state.capture_next,
            auto_apply,
            latest_saved: state.saved_ms,
            saved: state.saved,
        })
    }
}

impl From<&SessionMode> for get_modes_response::Session {
    fn from(session: &SessionMode) -> Self {
        Self {
            session: session.session.clone(),
            conversation: session.conversation.clone(),
            agent: session.agent.clone(),
            model: session.model.clone(),
            last_ms: session.last,
            requests: session.requests,
            held: session.held,
            state: MessageField::some((&session.state).into()),
            has_own_mode: session.has_own_mode,
            ..Default::default()
        }
    }
}

impl TryFrom<get_modes_response::Session> for SessionMode {
    type Error = BadMessage;

    fn try_from(session: get_modes_response::Session) -> Result<Self, BadMessage> {
        Ok(Self {
            session: session.session,
            conversation: session.conversation,
            agent: session.agent,
            model: session.model,
            last: session.last_ms,
            requests: session.requests,
            held: session.held,
            state: required(session.state, "state")?,
            has_own_mode: session.has_own_mode,
        })
    }
}

impl From<&ModeLabel> for get_modes_response::Choice {
    fn from(label: &ModeLabel) -> Self {
        let mode = proto::RequestMode::from(label.mode).into();
        Self { mode, label: label.label.clone(), ..Default::default() }
    }
}

impl TryFrom<get_modes_response::Choice> for ModeLabel {
    type Error = BadMessage;

    fn try_from(choice: get_modes_response::Choice) -> Result<Self, BadMessage> {
        Ok(Self { mode: specified(choice.mode)?, label: choice.label })
    }
}

impl From<&RequestModes> for proto::GetModesResponse {
    fn from(modes: &RequestModes) -> Self {
        Self {
            default_state: MessageField::some((&modes.default_state).into()),
            sessions: messages(&modes.sessions),
            choices: messages(&modes.choices),
            capture_scope: proto::OverrideScope::from(modes.capture_scope).into(),
            preview_limit: modes.preview_limit,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::GetModesResponse> for RequestModes {
    type Error = BadMessage;

    fn try_from(modes: proto::GetModesResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            default_state: required(modes.default_state, "default_state")?,
            sessions: list(modes.sessions, "sessions")?,
            choices: list(modes.choices, "choices")?,
            capture_scope: enumeration(modes.capture_scope, "capture_scope")?,
            preview_limit: modes.preview_limit,
        })
    }
}

impl From<HeldFate> for proto::HeldRequests {
    fn from(fate: HeldFate) -> Self {
        match fate {
            HeldFate::Resume => Self::Resume,
            HeldFate::Cancel => Self::Cancel,
        }
    }
}

impl TryFrom<proto::HeldRequests> for HeldFate {
    type Error = BadMessage;

    fn try_from(held: proto::HeldRequests) -> Result<Self, BadMessage> {
        match held {
            proto::HeldRequests::Unspecified => {
                Err(BadMessage::new("", "it is not specified; choose RESUME or CANCEL"))
            }
            proto::HeldRequests::Resume => Ok(Self::Resume),
            proto::HeldRequests::Cancel => Ok(Self::Cancel),
        }
    }
}

impl From<&ModeResult> for proto::SetModeResponse {
    fn from(result: &ModeResult) -> Self {
        let still_held = result.still_held.iter().map(|held| set_mode_response::StillHeld {
            request: held.request,
            reason: held.reason.clone(),
            ..Default::default()
        });
        Self {
            canceled: result.canceled,
            resumed: result.resumed,
            still_held: still_held.collect(),
            state: MessageField::some((&result.state).into()),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::SetModeResponse> for ModeResult {
    type Error = BadMessage;

    fn try_from(result: proto::SetModeResponse) -> Result<Self, BadMessage> {
        let still_held =
            result.still_held.into_iter().map(|held| StillHeld { request: held.request, reason: held.reason });
        Ok(Self {
            canceled: result.canceled,
            resumed: result.resumed,
            still_held: still_held.collect(),
            state: required(result.state, "state")?,
        })
    }
}

impl From<&SavedEdit> for proto::Override {
    fn from(edit: &SavedEdit) -> Self {
        Self {
            scope: proto::OverrideScope::from(edit.scope).into(),
            session: edit.session.clone(),
            path: edit.path.clone(),
            kind: section::Kind::from(edit.kind).into(),
            node: section::NodeType::from(edit.node).into(),
            content: edit.content.clone(),
            updated_ms: edit.updated,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Override> for SavedEdit {
    type Error = BadMessage;

    fn try_from(edit: proto::Override) -> Result<Self, BadMessage> {
        Ok(Self {
            scope: enumeration(edit.scope, "scope")?,
            session: edit.session,
            path: edit.path,
            kind: enumeration(edit.kind, "kind")?,
            node: enumeration(edit.node, "node")?,
            content: edit.content,
            updated: edit.updated_ms,
        })
    }
}
