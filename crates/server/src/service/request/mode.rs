//! Request modes and overrides.

use sayso_api::convert::conversation;
use sayso_api::proto;
use sayso_api::proto::get_modes_response::{Choice, Session};
use sayso_api::proto::mode_state::AutoApply;
use sayso_api::proto::section;
use sayso_proxy::interceptor::{OverrideView, SessionView};
use sayso_review::RequestMode;

use crate::host::Host;

/// State of a session, or of all sessions without a mode of their own.
pub(super) fn state(host: &Host, session: Option<&str>) -> proto::ModeState {
    let interceptor = &host.proxy.interceptor;
    let effective = interceptor.effective(session);
    // Unreadable overrides do not count as none, which would start a capture. Listing them reports the error.
    let (overrides, readable) =
        interceptor.overrides(session).map_or_else(|_| (Vec::new(), false), |overrides| (overrides, true));
    let is_auto = effective.mode == RequestMode::AutoOverride;
    let auto_apply = if effective.capture_next || (is_auto && readable && overrides.is_empty()) {
        AutoApply::Capturing
    } else if is_auto {
        AutoApply::Applying
    } else {
        AutoApply::Unspecified
    };
    proto::ModeState {
        mode: proto::RequestMode::from(effective.mode).into(),
        label: effective.mode.label().to_owned(),
        pause_next: effective.pause_next,
        capture_next: effective.capture_next,
        auto_apply: auto_apply.into(),
        saved_ms: overrides.iter().map(|view| view.edit.updated_at).max(),
        saved: overrides.len() as u64,
        ..Default::default()
    }
}

pub(super) fn all(host: &Host) -> proto::GetModesResponse {
    host.refresh_if_readable();
    let interceptor = &host.proxy.interceptor;
    let mut sessions = Vec::new();
    for view in interceptor.sessions() {
        let state = state(host, Some(&view.session));
        sessions.push(session(view, state));
    }
    let choice = |mode: RequestMode| Choice {
        mode: proto::RequestMode::from(mode).into(),
        label: mode.label().to_owned(),
        ..Default::default()
    };
    let settings = interceptor.settings();
    proto::GetModesResponse {
        default_state: state(host, None).into(),
        sessions,
        choices: RequestMode::ALL.into_iter().map(choice).collect(),
        capture_scope: proto::OverrideScope::from(settings.scope).into(),
        preview_limit: settings.preview_limit.map(|limit| limit as u64),
        ..Default::default()
    }
}

fn session(view: SessionView, state: proto::ModeState) -> Session {
    Session {
        conversation: conversation(view.agent.as_deref(), view.model.as_deref(), &view.session),
        session: view.session,
        agent: view.agent,
        model: view.model,
        last_ms: view.last,
        requests: view.requests,
        held: view.held as u64,
        state: state.into(),
        has_own_mode: view.has_own_mode,
        ..Default::default()
    }
}

pub(super) fn override_message(view: &OverrideView) -> proto::Override {
    let OverrideView { session, edit } = view;
    proto::Override {
        scope: proto::OverrideScope::from(edit.scope).into(),
        session: session.clone(),
        path: edit.anchor.path.clone(),
        kind: section::Kind::from(edit.anchor.kind).into(),
        node: section::NodeType::from(edit.anchor.node).into(),
        content: edit.content.clone(),
        updated_ms: edit.updated_at,
        ..Default::default()
    }
}
