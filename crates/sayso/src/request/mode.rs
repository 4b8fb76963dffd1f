//! `sayso request mode`, `sayso request overrides` and `sayso request save`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_present::escape::escape_unprintable;
use sayso_present::request::{
    mode_text, new_mode_text, override_line, render_modes, saved_edits_are, saved_edits_count, scope_name,
    starts_capture,
};

use super::{RequestCommandContext, window};
use crate::cli::{ModeChoice, OverridesAction, ScopeChoice, WaitingChoice};
use crate::error::CliError;
use crate::output::{Output, print, say};
use crate::typing::{AnswerSource as _, Typing};
use crate::workspace_location::now;

pub(super) fn mode(
    context: &RequestCommandContext<'_>,
    mode: Option<ModeChoice>,
    session: Option<&str>,
    waiting: Option<WaitingChoice>,
) -> Result<ExitCode, CliError> {
    let session = context.session(session)?;
    let session = session.as_deref();
    match mode {
        None => show(context, session),
        Some(ModeChoice::PauseNext) => pause_next(context, session),
        Some(ModeChoice::Inherit) if session.is_none() => {
            Err(CliError::invalid_input("`inherit` is for one session").hint("name it with --session"))
        }
        Some(choice) => set(context, choice, session, waiting),
    }
}

fn pause_next(context: &RequestCommandContext<'_>, session: Option<&str>) -> Result<ExitCode, CliError> {
    let request = proto::PauseNextRequest { session: session.map(str::to_owned), ..Default::default() };
    let response = context.engine.block(context.engine.client().pause_next(request))?;
    if !context.print_json(&response)? {
        report_state(context, session, &response.state.into_option().unwrap_or_default())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn set(
    context: &RequestCommandContext<'_>,
    choice: ModeChoice,
    session: Option<&str>,
    waiting: Option<WaitingChoice>,
) -> Result<ExitCode, CliError> {
    let mode = match choice {
        ModeChoice::Normal => proto::RequestMode::Off,
        ModeChoice::PauseEvery => proto::RequestMode::InterceptAlways,
        ModeChoice::AutoApply => proto::RequestMode::AutoOverride,
        ModeChoice::Inherit | ModeChoice::PauseNext => proto::RequestMode::Unspecified,
    };
    let fate = match (waiting, choice) {
        (Some(waiting), _) => Some(waiting),
        (None, ModeChoice::Normal | ModeChoice::Inherit) => ask_about_held(context, session)?,
        // Other modes leave requests held and ignore the value.
        (None, _) => Some(WaitingChoice::Resume),
    };
    let Some(fate) = fate else {
        say("The mode is as it was.");
        return Ok(ExitCode::SUCCESS);
    };
    let held_requests = match fate {
        WaitingChoice::Resume => proto::HeldRequests::Resume,
        WaitingChoice::Cancel => proto::HeldRequests::Cancel,
    };
    let request = proto::SetModeRequest {
        session: session.map(str::to_owned),
        mode: mode.into(),
        held_requests: held_requests.into(),
        ..Default::default()
    };
    let response = context.engine.block(context.engine.client().set_request_mode(request))?;
    if context.print_json(&response)? {
        return Ok(ExitCode::SUCCESS);
    }
    let state = response.state.as_option().cloned().unwrap_or_default();
    report_state(context, session, &state)?;
    report_held(&response);
    if state.mode.as_known() == Some(proto::RequestMode::Off) && state.saved > 0 {
        say(&format!(
            "note: {} not applied while requests are sent normally; `sayso request mode auto-apply` applies them",
            saved_edits_are(state.saved)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports a mode, and the sessions that it does not reach.
fn report_state(
    context: &RequestCommandContext<'_>,
    session: Option<&str>,
    state: &proto::ModeState,
) -> Result<(), CliError> {
    let modes = context.modes()?;
    let name = session.map_or("All sessions".to_owned(), |id| format!("Session {}", escape_unprintable(id)));
    print(&format!("{name}: {}\n", mode_text(state, Some(&modes))))?;
    for other in modes.sessions.iter().filter(|other| session.is_none() && other.has_own_mode) {
        let name = escape_unprintable(&other.session);
        let own = other.state.as_option().cloned().unwrap_or_default();
        say(&format!(
            "note: not session {name}, which has a mode of its own: {}; `sayso request mode inherit --session {name}` ends that",
            mode_text(&own, None)
        ));
    }
    Ok(())
}

/// Reports the fate of held requests.
fn report_held(response: &proto::SetModeResponse) {
    let report = |number: u64, one: &str, several: &str| match number {
        0 => {}
        1 => say(&format!("1 request that waited {one}.")),
        number => say(&format!("{number} requests that waited {several}.")),
    };
    report(response.resumed, "goes on", "go on");
    report(response.canceled, "was canceled", "were canceled");
    for held in &response.still_held {
        let (id, reason) = (held.request, escape_unprintable(&held.reason));
        say(&format!(
            "note: request {id} still waits: {reason}; repair it, take your edits back with `sayso request reset {id}`, or cancel it"
        ));
    }
}

/// Counts the held requests that a change of mode affects.
fn held_count(context: &RequestCommandContext<'_>, session: Option<&str>) -> Result<u64, CliError> {
    let modes = context.modes()?;
    let is_affected = |other: &&proto::get_modes_response::Session| match session {
        Some(session) => other.session == session,
        None => !other.has_own_mode,
    };
    Ok(modes.sessions.iter().filter(is_affected).map(|other| other.held).sum())
}

/// Asks about held requests on a terminal; elsewhere they are resumed. `None` if the person keeps the mode.
fn ask_about_held(
    context: &RequestCommandContext<'_>,
    session: Option<&str>,
) -> Result<Option<WaitingChoice>, CliError> {
    let mut typing = Typing::stdin();
    let held = if typing.is_echoed() && !context.common.json { held_count(context, session)? } else { 0 };
    if held == 0 {
        return Ok(Some(WaitingChoice::Resume));
    }
    let question = if held == 1 { "1 request waits. Resume it" } else { "Several requests wait. Resume them" };
    loop {
        typing.discard();
        say(&format!("{question} (r), cancel (c), or keep the mode (q)? [r]"));
        let line = typing.line().map_err(|error| CliError::io("cannot read the answer", &error))?;
        match line.as_deref().map(str::trim) {
            Some("" | "r") => return Ok(Some(WaitingChoice::Resume)),
            Some("c") => return Ok(Some(WaitingChoice::Cancel)),
            Some("q") | None => return Ok(None),
            Some(_) => {}
        }
    }
}

fn show(context: &RequestCommandContext<'_>, session: Option<&str>) -> Result<ExitCode, CliError> {
    let mut modes = context.modes()?;
    if let Some(session) = session {
        modes.sessions.retain(|other| other.session == session);
    }
    if context.print_json(&modes)? {
        return Ok(ExitCode::SUCCESS);
    }
    let width = window::known_width().unwrap_or(usize::MAX);
    let mut output = Output::stdout();
    output.styled(&render_modes(&modes, width, now()), context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn overrides(
    context: &RequestCommandContext<'_>,
    action: OverridesAction,
    scope: Option<ScopeChoice>,
    session: Option<&str>,
) -> Result<ExitCode, CliError> {
    let session = context.session(session)?;
    match action {
        OverridesAction::List => list(context, scope, session),
        OverridesAction::CaptureNext => {
            let request = proto::CaptureNextRequest { session, ..Default::default() };
            let response = context.engine.block(context.engine.client().capture_next(request))?;
            if !context.print_json(&response)? {
                let state = response.state.into_option().unwrap_or_default();
                print(&format!("{}\n", mode_text(&state, Some(&context.modes()?))))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        OverridesAction::Remove => remove(context, scope, session.as_deref()),
    }
}

fn list(
    context: &RequestCommandContext<'_>,
    scope: Option<ScopeChoice>,
    session: Option<String>,
) -> Result<ExitCode, CliError> {
    let scope = scope.map(|scope| context.scope(scope)).transpose()?;
    let is_all = session.is_none();
    let request = proto::ListOverridesRequest { session, ..Default::default() };
    let mut listed = context.engine.block(context.engine.client().list_overrides(request))?;
    listed.overrides.retain(|edit| scope.is_none_or(|scope| edit.scope.as_known() == Some(scope)));
    if context.print_json(&listed)? {
        return Ok(ExitCode::SUCCESS);
    }
    if listed.overrides.is_empty() {
        say("No saved edits. `sayso request edit ID PATH --from-now-on` saves one.");
        return Ok(ExitCode::SUCCESS);
    }
    print(&listed.overrides.iter().map(|edit| override_line(edit, is_all)).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

fn remove(
    context: &RequestCommandContext<'_>,
    scope: Option<ScopeChoice>,
    session: Option<&str>,
) -> Result<ExitCode, CliError> {
    let scope = context.scope(scope.unwrap_or(ScopeChoice::Configured))?;
    if scope == proto::OverrideScope::Session && session.is_none() {
        return Err(CliError::invalid_input("saved edits of a session can only be removed of a session")
            .hint("name it with --session, or another scope with --scope; `sayso request mode` lists sessions"));
    }
    let request = proto::RemoveOverridesRequest {
        scope: scope.into(),
        session: session.map(str::to_owned),
        ..Default::default()
    };
    let response = context.engine.block(context.engine.client().remove_overrides(request))?;
    if context.print_json(&response)? {
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("Removed {}.\n", saved_edits_count(response.removed)))?;
    // In auto-apply mode without saved edits, the next turn is captured.
    let modes = context.modes()?;
    let own = modes.sessions.iter().find(|other| session == Some(other.session.as_str()));
    let (state, option) = match own {
        Some(own) => (own.state.as_option(), format!(" --session {}", escape_unprintable(&own.session))),
        None => (modes.default_state.as_option(), String::new()),
    };
    if starts_capture(state) {
        say(&format!(
            "note: the next turn waits, and its edits are saved when it is resumed; `sayso request mode normal{option}` ends that"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn save(
    context: &RequestCommandContext<'_>,
    id: u64,
    scope: Option<ScopeChoice>,
) -> Result<ExitCode, CliError> {
    let scope = context.scope(scope.unwrap_or(ScopeChoice::Configured))?;
    let request = proto::SaveOverridesRequest { request: id, scope: scope.into(), ..Default::default() };
    let response = context.engine.block(context.engine.client().save_overrides(request))?;
    if context.print_json(&response)? {
        return Ok(ExitCode::SUCCESS);
    }
    if response.saved == 0 {
        print(&format!("Nothing was saved: request {id} has no edits that could be.\n"))?;
    } else {
        print(&format!(
            "{} for the {}, applied to every turn that is not sent normally\n{}",
            saved_edits_count(response.saved),
            scope_name(response.scope.as_known()),
            new_mode_text(response.new_mode.as_known(), response.scope.as_known())
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
