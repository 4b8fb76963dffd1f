//! `sayso request mode`, `sayso request overrides` and `sayso request save`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::ModeState;
use sayso_api::proto::mode_state::AutoApply;

use super::edit::switched;
use super::{Asking, print, scope_name};
use crate::cli::{ModeChoice, OverridesAction, ScopeChoice, WaitingChoice};
use crate::failure::Failure;
use crate::history::ago;
use crate::output::say;
use crate::state::now;
use crate::typing::{Answers as _, Typing};
use crate::visible::visible;
use crate::watch::clock;

/// Sessions that are shown, though nothing is special about them.
const SOME: usize = 10;

/// How requests are treated, in words: the mode, and what is up for the next turn.
pub(super) fn state_text(state: &ModeState, banner: Option<&proto::GetModesResponse>) -> String {
    let mut parts = vec![visible(&state.label).into_owned()];
    if state.pause_next {
        parts.push("Pause next turn".to_owned());
    }
    let first = match banner.map(|modes| modes.preview_limit) {
        Some(Some(limit)) => format!(" · showing first {limit} sections"),
        Some(None) => " · showing all sections".to_owned(),
        None => String::new(),
    };
    match state.auto_apply.as_known().unwrap_or_default() {
        AutoApply::Capturing => parts.push(format!("Capturing next turn{first}")),
        AutoApply::Applying => parts.push(match state.saved_ms {
            Some(saved) => format!("Applying (saved {})", clock(saved)),
            None => "Applying".to_owned(),
        }),
        AutoApply::Unspecified => {}
    }
    parts.join(" · ")
}

/// Requests that wait in a session, or in all that have no mode of their own.
fn paused(asking: &Asking<'_>, session: Option<&str>) -> Result<usize, Failure> {
    let modes = asking.modes()?;
    let counts = modes.sessions.iter().filter(|other| match session {
        Some(session) => other.session == session,
        None => !other.own,
    });
    Ok(usize::try_from(counts.map(|other| other.waiting).sum::<u64>()).unwrap_or(usize::MAX))
}

/// Asks what becomes of paused requests, where there are some and a person is there. `None` if the mode is to stay.
fn ask_about_waiting(asking: &Asking<'_>, session: Option<&str>) -> Result<Option<WaitingChoice>, Failure> {
    let mut typing = Typing::stdin();
    let waiting = if typing.is_echoed() && !asking.place.json { paused(asking, session)? } else { 0 };
    if waiting == 0 {
        return Ok(Some(WaitingChoice::Resume));
    }
    let them = if waiting == 1 { "1 request waits. Resume it" } else { "Several requests wait. Resume them" };
    loop {
        typing.discard();
        say(&format!("{them} (r), cancel (c), or keep the mode (q)? [r]"));
        let line = typing.line().map_err(|error| Failure::bad_input("the answer cannot be read").why(&error))?;
        match line.as_deref().map(str::trim) {
            Some("" | "r") => return Ok(Some(WaitingChoice::Resume)),
            Some("c") => return Ok(Some(WaitingChoice::Cancel)),
            Some("q") | None => return Ok(None),
            Some(_) => {}
        }
    }
}

/// How many requests did something, in words.
fn requests(count: u64, one: &str, several: &str) {
    match count {
        0 => {}
        1 => say(&format!("1 request that waited {one}.")),
        count => say(&format!("{count} requests that waited {several}.")),
    }
}

pub(super) fn mode(
    asking: &Asking<'_>,
    mode: Option<ModeChoice>,
    session: Option<&str>,
    waiting: Option<WaitingChoice>,
) -> Result<ExitCode, Failure> {
    let session = asking.session(session)?;
    let Some(choice) = mode else { return show(asking, session.as_deref()) };
    let client = asking.connected.client();
    let (state, answer) = if choice == ModeChoice::PauseNext {
        let request = proto::PauseNextRequest { session: session.clone(), ..Default::default() };
        let answer = asking.connected.block(client.pause_next(request))?;
        if asking.json(&answer)? {
            return Ok(ExitCode::SUCCESS);
        }
        (answer.state, proto::SetModeResponse::default())
    } else {
        let mode = match choice {
            ModeChoice::Normal => proto::RequestMode::Off,
            ModeChoice::PauseEvery => proto::RequestMode::InterceptAlways,
            ModeChoice::AutoApply => proto::RequestMode::AutoOverride,
            ModeChoice::Inherit | ModeChoice::PauseNext => proto::RequestMode::Unspecified,
        };
        if choice == ModeChoice::Inherit && session.is_none() {
            return Err(Failure::bad_input("`inherit` is for one session").hint("name it with --session"));
        }
        let waiting = match (waiting, choice) {
            (Some(waiting), _) => Some(waiting),
            (None, ModeChoice::Normal | ModeChoice::Inherit) => ask_about_waiting(asking, session.as_deref())?,
            // Other modes leave waiting what waits.
            (None, _) => Some(WaitingChoice::Resume),
        };
        let Some(waiting) = waiting else {
            say("The mode is as it was.");
            return Ok(ExitCode::SUCCESS);
        };
        let waiting = match waiting {
            WaitingChoice::Resume => proto::WaitingRequests::Resume,
            WaitingChoice::Cancel => proto::WaitingRequests::Cancel,
        };
        let request = proto::SetModeRequest {
            session: session.clone(),
            mode: mode.into(),
            waiting: waiting.into(),
            ..Default::default()
        };
        let answer = asking.connected.block(client.set_request_mode(request))?;
        if asking.json(&answer)? {
            return Ok(ExitCode::SUCCESS);
        }
        (answer.state.clone(), answer)
    };
    let of = session.as_ref().map_or("All sessions".to_owned(), |session| format!("Session {}", visible(session)));
    let state = state.into_option().unwrap_or_default();
    let modes = asking.modes()?;
    print(&format!("{of}: {}\n", state_text(&state, Some(&modes))))?;
    // What was said of one session is not taken back by what is said of all.
    for other in modes.sessions.iter().filter(|other| session.is_none() && other.own) {
        let (name, state) = (visible(&other.session), other.state.as_option().cloned().unwrap_or_default());
        say(&format!(
            "note: not session {name}, which has a mode of its own: {}; `sayso request mode inherit --session {name}` ends that",
            state_text(&state, None)
        ));
    }
    requests(answer.resumed, "goes on", "go on");
    requests(answer.ended, "was canceled", "were canceled");
    for still in &answer.still_waiting {
        say(&format!(
            "note: request {id} still waits: {why}; mend it, take your edits back with `sayso request reset {id}`, or cancel it",
            id = still.request,
            why = visible(&still.reason)
        ));
    }
    let state = answer.state.into_option().unwrap_or_default();
    if state.mode.as_known() == Some(proto::RequestMode::Off) && state.saved > 0 {
        say(&format!(
            "note: {} not applied while requests are sent normally; `sayso request mode auto-apply` applies them",
            edits_are(state.saved)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(asking: &Asking<'_>, session: Option<&str>) -> Result<ExitCode, Failure> {
    let mut modes = asking.modes()?;
    if let Some(session) = session {
        modes.sessions.retain(|other| other.session == session);
    }
    if asking.json(&modes)? {
        return Ok(ExitCode::SUCCESS);
    }
    let styles = asking.styles();
    let mut text = String::new();
    let all = modes.all.as_option().cloned().unwrap_or_default();
    styles.paint(&mut text, styles.title, "All sessions");
    text.push_str(&format!("  {}\n", state_text(&all, Some(&modes))));
    if all.auto_apply.as_known() != Some(AutoApply::Unspecified) {
        let scope = scope_name(modes.scope.as_known());
        text.push_str(&format!("Auto-apply edits · {scope}  {} saved\n", all.saved));
    }
    // The latest first; those that differ, or in which something waits, are shown however old they are.
    let shown: Vec<_> = modes
        .sessions
        .iter()
        .enumerate()
        .filter(|(place, session)| *place < SOME || session.own || session.waiting > 0)
        .map(|(_, session)| session)
        .collect();
    let window = super::width::known().unwrap_or(usize::MAX);
    for session in &shown {
        styles.paint(&mut text, styles.title, &visible(&session.conversation));
        let state = session.state.as_option().cloned().unwrap_or_default();
        let own = if session.own { " (its own)" } else { "" };
        let waits = if session.waiting > 0 { format!(", {} waiting", session.waiting) } else { String::new() };
        let last = if session.last_ms > 0 { format!(", {} ago", ago(now() - session.last_ms)) } else { String::new() };
        let count =
            if session.requests == 1 { "1 request".to_owned() } else { format!("{} requests", session.requests) };
        let (how, much) = (format!("{}{own}", state_text(&state, Some(&modes))), format!("{count}{waits}{last}"));
        let long =
            [&*visible(&session.conversation), &how, &much].map(|part| part.chars().count() + 2).iter().sum::<usize>();
        let between = if long - 2 > window { "\n  " } else { "  " };
        text.push_str(&format!("{between}{how}{between}{much}\n"));
        styles.paint(&mut text, styles.number, &format!("  session {}\n", visible(&session.session)));
    }
    let more = modes.sessions.len() - shown.len();
    if more > 0 {
        text.push_str(&format!("{more} older sessions are not shown; --json has all\n"));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn overrides(
    asking: &Asking<'_>,
    action: OverridesAction,
    scope: Option<ScopeChoice>,
    session: Option<&str>,
) -> Result<ExitCode, Failure> {
    let session = asking.session(session)?;
    let client = asking.connected.client();
    match action {
        OverridesAction::List => list(asking, scope, session),
        OverridesAction::CaptureNext => {
            let request = proto::CaptureNextRequest { session, ..Default::default() };
            let answer = asking.connected.block(client.capture_next(request))?;
            if !asking.json(&answer)? {
                let state = answer.state.into_option().unwrap_or_default();
                print(&format!("{}\n", state_text(&state, Some(&asking.modes()?))))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        OverridesAction::Remove => {
            let scope = asking.scope(scope.unwrap_or(ScopeChoice::Configured))?;
            if scope == proto::OverrideScope::Session && session.is_none() {
                return Err(Failure::bad_input("saved edits of a session can only be removed of a session").hint(
                    "name it with --session, or another scope with --scope; `sayso request mode` lists sessions",
                ));
            }
            let request =
                proto::RemoveOverridesRequest { scope: scope.into(), session: session.clone(), ..Default::default() };
            let answer = asking.connected.block(client.remove_overrides(request))?;
            if !asking.json(&answer)? {
                print(&format!("Removed {}.\n", edits(answer.removed)))?;
                say_what_captures(&asking.modes()?, session.as_deref());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Where edits are applied and there are none left, the next turn waits for new ones; whoever removed them is told.
fn say_what_captures(modes: &proto::GetModesResponse, session: Option<&str>) {
    let captures = |state: Option<&ModeState>| {
        state.is_some_and(|state| state.auto_apply.as_known() == Some(AutoApply::Capturing))
    };
    let session = modes.sessions.iter().find(|other| session == Some(&other.session));
    let (captures, option) = match session {
        Some(session) => (captures(session.state.as_option()), format!(" --session {}", visible(&session.session))),
        None => (captures(modes.all.as_option()), String::new()),
    };
    if captures {
        say(&format!(
            "note: the next turn waits, and its edits are saved when it is resumed; `sayso request mode normal{option}` ends that"
        ));
    }
}

fn edits_are(count: u64) -> String {
    format!("{} {}", edits(count), if count == 1 { "is" } else { "are" })
}

fn edits(count: u64) -> String {
    if count == 1 { "1 saved edit".to_owned() } else { format!("{count} saved edits") }
}

fn list(asking: &Asking<'_>, scope: Option<ScopeChoice>, session: Option<String>) -> Result<ExitCode, Failure> {
    let scope = scope.map(|scope| asking.scope(scope)).transpose()?;
    let all = session.is_none();
    let request = proto::ListOverridesRequest { session, ..Default::default() };
    let mut listed = asking.connected.block(asking.connected.client().list_overrides(request))?;
    listed.overrides.retain(|edit| scope.is_none_or(|scope| edit.scope.as_known() == Some(scope)));
    if asking.json(&listed)? {
        return Ok(ExitCode::SUCCESS);
    }
    if listed.overrides.is_empty() {
        say("No saved edits. `sayso request edit ID PATH --from-now-on` saves one.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for edit in &listed.overrides {
        let scope = scope_name(edit.scope.as_known());
        let what = match &edit.content {
            None => "left out".to_owned(),
            Some(content) => {
                let first = visible(content.lines().next().unwrap_or_default()).into_owned();
                format!("{} ({} bytes)", super::width::short(&first, 60), content.len())
            }
        };
        text.push_str(&format!("{scope:<9}  {}  saved {}: {what}\n", visible(&edit.path), clock(edit.updated_ms)));
        if let Some(session) = edit.session.as_deref().filter(|_| all) {
            text.push_str(&format!("           in session {}\n", visible(session)));
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn save(asking: &Asking<'_>, id: u64, scope: Option<ScopeChoice>) -> Result<ExitCode, Failure> {
    let scope = asking.scope(scope.unwrap_or(ScopeChoice::Configured))?;
    let request = proto::SaveOverridesRequest { request: id, scope: scope.into(), ..Default::default() };
    let answer = asking.connected.block(asking.connected.client().save_overrides(request))?;
    if !asking.json(&answer)? {
        let name = scope_name(answer.scope.as_known());
        let text = match answer.saved {
            0 => format!("Nothing was saved: request {id} has no edits that could be.\n"),
            saved => format!(
                "{} for the {name}, applied to every turn that is not sent normally\n{}",
                edits(saved),
                switched(answer.switched_to.as_known(), answer.scope.as_known())
            ),
        };
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
