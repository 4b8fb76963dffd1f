//! How requests are treated, and what is saved.

use sayso_api::convert::conversation;
use sayso_api::proto;
use sayso_api::proto::get_modes_response::{Choice, Session};
use sayso_api::proto::mode_state::AutoApply;
use sayso_proxy::desk::{OverrideView, SessionView};
use sayso_review::RequestMode;

use super::{scope_message, section};
use crate::host::Host;

/// What counts for a session, or for all that have no mode of their own.
pub(super) fn state(host: &Host, session: Option<&str>) -> proto::ModeState {
    let desk = &host.proxy.desk;
    let effective = desk.effective(session);
    // Those that cannot be read are there all the same; whoever asks for them is told.
    let (saved, readable) = desk.saved(session).map_or_else(|_| (Vec::new(), false), |saved| (saved, true));
    let auto = effective.mode == RequestMode::AutoOverride;
    let auto_apply = if effective.capture_next || (auto && readable && saved.is_empty()) {
        AutoApply::Capturing
    } else if auto {
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
        saved_ms: saved.iter().map(|view| view.edit.updated_at).max(),
        saved: saved.len() as u64,
        ..Default::default()
    }
}

pub(super) fn all(host: &Host) -> proto::GetModesResponse {
    host.refresh_if_readable();
    let desk = &host.proxy.desk;
    let mut sessions = Vec::new();
    for view in desk.sessions() {
        let state = state(host, Some(&view.session));
        sessions.push(session(view, state));
    }
    let choice = |mode: RequestMode| Choice {
        mode: proto::RequestMode::from(mode).into(),
        label: mode.label().to_owned(),
        ..Default::default()
    };
    let settings = desk.settings();
    proto::GetModesResponse {
        all: state(host, None).into(),
        sessions,
        choices: RequestMode::ALL.into_iter().map(choice).collect(),
        scope: scope_message(settings.scope).into(),
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
        waiting: view.waiting as u64,
        state: state.into(),
        own: view.own,
        ..Default::default()
    }
}

/// A saved edit as it is sent.
pub(super) fn saved_edit(view: &OverrideView) -> proto::Override {
    let OverrideView { session, edit } = view;
    proto::Override {
        scope: scope_message(edit.scope).into(),
        session: session.clone(),
        path: edit.anchor.path.clone(),
        kind: section::kind(edit.anchor.kind).into(),
        node: section::node(edit.anchor.node).into(),
        content: edit.content.clone(),
        updated_ms: edit.updated_at,
        ..Default::default()
    }
}
