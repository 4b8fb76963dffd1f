//! Request modes and saved edits.

use sayso_api::request::{AutoApply, ModeState, RequestModes, SavedEdit, SessionMode};

use super::status::scope_name;
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, format_age, format_time_of_day, truncate};

/// Sessions that are shown without a reason, latest first.
const MAX_RECENT_SESSIONS: usize = 10;
/// Characters of a saved edit's content in a list.
const CONTENT_CHARACTERS: usize = 60;

/// The mode in words, with what happens to the next turn. `modes` adds the number of captured sections.
pub fn mode_text(state: &ModeState, modes: Option<&RequestModes>) -> String {
    let mut parts = vec![escape_unprintable(&state.label).into_owned()];
    if state.pause_next {
        parts.push("Pause next turn".to_owned());
    }
    let sections = match modes.map(|modes| modes.preview_limit) {
        Some(Some(limit)) => format!(" · showing first {limit} sections"),
        Some(None) => " · showing all sections".to_owned(),
        None => String::new(),
    };
    match state.auto_apply {
        AutoApply::Capturing => parts.push(format!("Capturing next turn{sections}")),
        AutoApply::Applying => parts.push(match state.latest_saved {
            Some(saved) => format!("Applying (saved {})", format_time_of_day(saved)),
            None => "Applying".to_owned(),
        }),
        AutoApply::Off => {}
    }
    parts.join(" · ")
}

/// Renders the default mode and the modes of recent sessions. `width` is that of the window in columns, `now` in milliseconds since 1970.
///
/// Sessions with a mode of their own or with held requests are shown at any age.
pub fn render_modes(modes: &RequestModes, width: usize, now: i64) -> StyledText {
    let mut text = StyledText::new();
    let default = &modes.default_state;
    text.push(Style::Title, "All sessions");
    text.plain(format!("  {}\n", mode_text(default, Some(modes))));
    if default.auto_apply != AutoApply::Off {
        let scope = scope_name(modes.capture_scope);
        text.plain(format!("Auto-apply edits · {scope}  {} saved\n", default.saved));
    }
    let is_shown = |(place, session): &(usize, &SessionMode)| {
        *place < MAX_RECENT_SESSIONS || session.has_own_mode || session.held > 0
    };
    let shown: Vec<&SessionMode> =
        modes.sessions.iter().enumerate().filter(is_shown).map(|(_, session)| session).collect();
    for session in &shown {
        text.append(session_mode(session, modes, width, now));
    }
    let more = modes.sessions.len() - shown.len();
    if more > 0 {
        text.plain(format!("{more} older sessions are not shown; --json has all\n"));
    }
    text
}

fn session_mode(session: &SessionMode, modes: &RequestModes, width: usize, now: i64) -> StyledText {
    let name = escape_unprintable(&session.conversation);
    let own = if session.has_own_mode { " (its own)" } else { "" };
    let mode = format!("{}{own}", mode_text(&session.state, Some(modes)));
    let held = if session.held > 0 { format!(", {} waiting", session.held) } else { String::new() };
    let last = if session.last > 0 { format!(", {} ago", format_age(now - session.last)) } else { String::new() };
    let activity = format!("{}{held}{last}", count(session.requests, "request"));
    // Parts are two blanks apart, or on lines of their own if the window is too narrow.
    let columns = [&*name, &mode, &activity].map(|part| part.chars().count() + 2).iter().sum::<usize>() - 2;
    let separator = if columns > width { "\n  " } else { "  " };
    let mut text = StyledText::new();
    text.push(Style::Title, name);
    text.plain(format!("{separator}{mode}{separator}{activity}\n"));
    text.push(Style::Dim, format!("  session {}\n", escape_unprintable(&session.session)));
    text
}

/// Formats a number of saved edits.
pub fn saved_edits_count(number: u64) -> String {
    count(number, "saved edit")
}

/// Formats a number of saved edits with `is` or `are`.
pub fn saved_edits_are(number: u64) -> String {
    format!("{} {}", saved_edits_count(number), if number == 1 { "is" } else { "are" })
}

/// `true` if the next turn is paused to capture edits.
pub fn starts_capture(state: &ModeState) -> bool {
    state.auto_apply == AutoApply::Capturing
}

/// Formats a saved edit in one line, or two with its session.
pub fn override_line(edit: &SavedEdit, with_session: bool) -> String {
    let scope = scope_name(edit.scope);
    let content = match &edit.content {
        None => "left out".to_owned(),
        Some(content) => {
            let first = escape_unprintable(content.lines().next().unwrap_or_default()).into_owned();
            format!("{} ({} bytes)", truncate(&first, CONTENT_CHARACTERS), content.len())
        }
    };
    let (path, saved) = (escape_unprintable(&edit.path), format_time_of_day(edit.updated));
    let mut text = format!("{scope:<9}  {path}  saved {saved}: {content}\n");
    if let Some(session) = edit.session.as_deref().filter(|_| with_session) {
        text.push_str(&format!("           in session {}\n", escape_unprintable(session)));
    }
    text
}
