//! `sayso request mode`, `sayso request overrides` and `sayso request save`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::request::{HeldFate, ModeResult, ModeState, SavedEdit, SessionMode, SwitchedMode};
use sayso_present::escape::escape_unprintable;
use sayso_present::request::{
    mode_text, new_mode_text, override_line, render_modes, saved_edits_are, saved_edits_count, scope_name,
    starts_capture,
};
use sayso_review::RequestMode;
use sayso_wire::Scope;

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
    let state = context.engine.block(context.engine.client().pause_next(session))?;
    let message = || proto::PauseNextResponse { state: Some((&state).into()).into(), ..Default::default() };
    if !context.print_json_of(message)? {
        report_state(context, session, &state)?;
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
        ModeChoice::Normal => Some(RequestMode::Off),
        ModeChoice::PauseEvery => Some(RequestMode::InterceptAlways),
        ModeChoice::AutoApply => Some(RequestMode::AutoOverride),
        ModeChoice::Inherit | ModeChoice::PauseNext => None,
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
    let held = match fate {
        WaitingChoice::Resume => HeldFate::Resume,
        WaitingChoice::Cancel => HeldFate::Cancel,
    };
    let result = context.engine.block(context.engine.client().set_request_mode(session, mode, held))?;
    if context.print_json_of(|| proto::SetModeResponse::from(&result))? {
        return Ok(ExitCode::SUCCESS);
    }
    report_state(context, session, &result.state)?;
    report_held(&result);
    if result.state.mode == RequestMode::Off && result.state.saved > 0 {
        say(&format!(
            "note: {} not applied while requests are sent normally; `sayso request mode auto-apply` applies them",
            saved_edits_are(result.state.saved)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports a mode, and the sessions that it does not reach.
fn report_state(context: &RequestCommandContext<'_>, session: Option<&str>, state: &ModeState) -> Result<(), CliError> {
    let modes = context.modes()?;
    let name = session.map_or("All sessions".to_owned(), |id| format!("Session {}", escape_unprintable(id)));
    print(&format!("{name}: {}\n", mode_text(state, Some(&modes))))?;
    for other in modes.sessions.iter().filter(|other| session.is_none() && other.has_own_mode) {
        let name = escape_unprintable(&other.session);
        say(&format!(
            "note: not session {name}, which has a mode of its own: {}; `sayso request mode inherit --session {name}` ends that",
            mode_text(&other.state, None)
        ));
    }
    Ok(())
}

/// Reports the fate of held requests.
fn report_held(result: &ModeResult) {
    let report = |number: u64, one: &str, several: &str| match number {
        0 => {}
        1 => say(&format!("1 request that waited {one}.")),
        number => say(&format!("{number} requests that waited {several}.")),
    };
    report(result.resumed, "goes on", "go on");
    report(result.canceled, "was canceled", "were canceled");
    for held in &result.still_held {
        let (id, reason) = (held.request, escape_unprintable(&held.reason));
        say(&format!(
            "note: request {id} still waits: {reason}; repair it, take your edits back with `sayso request reset {id}`, or cancel it"
        ));
    }
}

/// Counts the held requests that a change of mode affects.
fn held_count(context: &RequestCommandContext<'_>, session: Option<&str>) -> Result<u64, CliError> {
    let modes = context.modes()?;
    let is_affected = |other: &&SessionMode| match session {
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
    if context.print_json_of(|| proto::GetModesResponse::from(&modes))? {
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
        OverridesAction::List => list(context, scope, session.as_deref()),
        OverridesAction::CaptureNext => {
            let state = context.engine.block(context.engine.client().capture_next(session.as_deref()))?;
            let message = || proto::CaptureNextResponse { state: Some((&state).into()).into(), ..Default::default() };
            if !context.print_json_of(message)? {
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
    session: Option<&str>,
) -> Result<ExitCode, CliError> {
    let scope = scope.map(|scope| context.scope(scope)).transpose()?;
    let is_all = session.is_none();
    let mut saved: Vec<SavedEdit> = context.engine.block(context.engine.client().list_overrides(session))?;
    saved.retain(|edit| scope.is_none_or(|scope| edit.scope == scope));
    let overrides = || saved.iter().map(proto::Override::from).collect();
    if context.print_json_of(|| proto::ListOverridesResponse { overrides: overrides(), ..Default::default() })? {
        return Ok(ExitCode::SUCCESS);
    }
    if saved.is_empty() {
        say("No saved edits. `sayso request edit ID PATH --from-now-on` saves one.");
        return Ok(ExitCode::SUCCESS);
    }
    print(&saved.iter().map(|edit| override_line(edit, is_all)).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

fn remove(
    context: &RequestCommandContext<'_>,
    scope: Option<ScopeChoice>,
    session: Option<&str>,
) -> Result<ExitCode, CliError> {
    let scope = context.scope(scope.unwrap_or(ScopeChoice::Configured))?;
    if scope == Scope::Session && session.is_none() {
        return Err(CliError::invalid_input("saved edits of a session can only be removed of a session")
            .hint("name it with --session, or another scope with --scope; `sayso request mode` lists sessions"));
    }
    let removed = context.engine.block(context.engine.client().remove_overrides(scope, session))?;
    if context.print_json_of(|| proto::RemoveOverridesResponse { removed, ..Default::default() })? {
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("Removed {}.\n", saved_edits_count(removed)))?;
    // In auto-apply mode without saved edits, the next turn is captured.
    let modes = context.modes()?;
    let own = modes.sessions.iter().find(|other| session == Some(other.session.as_str()));
    let (state, option) = match own {
        Some(own) => (&own.state, format!(" --session {}", escape_unprintable(&own.session))),
        None => (&modes.default_state, String::new()),
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
    let result = context.engine.block(context.engine.client().save_overrides(id, Some(scope)))?;
    if context.print_json_of(|| proto::SaveOverridesResponse::from(&result))? {
        return Ok(ExitCode::SUCCESS);
    }
    if result.saved == 0 {
        print(&format!("Nothing was saved: request {id} has no edits that could be.\n"))?;
    } else {
        print(&format!(
            "{} for the {}, applied to every turn that is not sent normally\n{}",
            saved_edits_count(result.saved),
            scope_name(result.scope),
            new_mode_text(result.new_mode.map(|mode| SwitchedMode { mode, scope: result.scope }))
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
