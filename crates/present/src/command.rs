//! Commands and tool calls as styled text.

use sayso_review::{CommandPreview, DryRunEnd, DryRunOutput, Severity, Subject, Syntax, ToolPreview};

use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};

/// Renders the command or tool call of a change. Empty for a change of files.
pub fn render_subject(subject: &Subject) -> StyledText {
    match subject {
        Subject::Files => StyledText::new(),
        Subject::Command { preview, .. } => render_command(preview),
        Subject::Tool { preview, .. } => render_tool(preview),
    }
}

/// Renders a command and its analysed effects.
pub fn render_command(preview: &CommandPreview) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, "Command");
    text.plain(format!("  in {}", command_directory(preview)));
    if let Some(description) = &preview.description {
        text.push(Style::Dim, format!("  {}", escape_unprintable(description)));
    }
    text.plain("\n");
    render_script(&mut text, preview);
    for effect in &preview.effects {
        let style = if effect.severity() >= Severity::Warning { Style::Removed } else { Style::Note };
        text.push(style, format!("  {}: {effect}\n", effect.severity()));
    }
    for doubt in &preview.uncertainties {
        text.push(Style::Removed, format!("  warning: {}\n", escape_unprintable(&doubt.to_string())));
    }
    match &preview.syntax {
        Syntax::Valid => {}
        Syntax::Invalid { message, .. } => {
            let line = format!("  warning: bash does not understand it: {}\n", escape_unprintable(message));
            text.push(Style::Removed, line);
        }
        Syntax::Unchecked { reason } => {
            text.push(Style::Dim, format!("  its syntax was not checked: {}\n", escape_unprintable(reason)));
        }
    }
    if preview.dry_run.is_some() {
        text.push(Style::Dim, "  a dry run is possible\n");
    }
    text
}

/// Renders a script with the parts that cause an uncertainty. A marker line follows each line with such a part.
fn render_script(text: &mut StyledText, preview: &CommandPreview) {
    let mut start = 0;
    for line in preview.script.split_inclusive('\n') {
        let end = start + line.len();
        let spans: Vec<_> =
            preview.uncertain_spans.iter().filter(|span| span.start < end && start < span.end).collect();
        let is_uncertain = |at: usize| spans.iter().any(|span| (span.start..span.end).contains(&(start + at)));
        let line = line.trim_end_matches(['\n', '\r']);
        let mut marker = String::new();
        text.plain("  ");
        let mut from = 0;
        while from < line.len() {
            let style = if is_uncertain(from) { Style::Uncertain } else { Style::Plain };
            let differs = |(at, _): (usize, char)| (is_uncertain(from + at) != is_uncertain(from)).then_some(from + at);
            let to = line[from..].char_indices().find_map(differs).unwrap_or(line.len());
            let piece = escape_unprintable(&line[from..to]);
            let sign = if style == Style::Uncertain { '^' } else { ' ' };
            marker.extend(piece.chars().map(|_| sign));
            text.push(style, piece);
            from = to;
        }
        text.plain("\n");
        if marker.contains('^') {
            text.push(Style::MarkerLine, format!("  {}\n", marker.trim_end()));
        }
        start = end;
    }
}

/// The directory of a command, relative to the root of the workspace.
pub fn command_directory(preview: &CommandPreview) -> String {
    if preview.directory.is_root() {
        "./".to_owned()
    } else {
        format!("{}/", escape_unprintable(preview.directory.as_str()))
    }
}

fn render_tool(preview: &ToolPreview) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, format!("Tool  {}\n", escape_unprintable(&preview.name)));
    for argument in &preview.arguments {
        let value = match argument.value.as_str() {
            Some(value) => value.to_owned(),
            None => argument.value.to_string(),
        };
        let kind = argument.kind.as_deref().map(|kind| format!(" ({})", escape_unprintable(kind))).unwrap_or_default();
        let (name, value) = (escape_unprintable(&argument.name), single_line(&value));
        text.plain(format!("  {name}{kind}: {}\n", escape_unprintable(&value)));
    }
    for problem in &preview.problems {
        text.push(Style::Removed, format!("  warning: {}\n", escape_unprintable(&problem.to_string())));
    }
    if let Some(delegation) = &preview.delegation {
        let to = escape_unprintable(delegation.agent.as_deref().unwrap_or("another agent"));
        text.plain(format!("  hands work to {to}, with the tools {}:\n", tool_names(&delegation.tools)));
        for line in delegation.prompt.lines() {
            text.plain(format!("    {}\n", escape_unprintable(line)));
        }
    }
    if let Some(guessed) = &preview.guessed_from {
        let keys =
            guessed.keys.iter().map(|key| format!("`{}`", escape_unprintable(key))).collect::<Vec<_>>().join(", ");
        text.push(Style::Note, format!("  if it does what {keys} look like, this is the change:\n"));
    }
    text
}

fn tool_names(tools: &[String]) -> String {
    if tools.is_empty() {
        return "that it has (not said which)".to_owned();
    }
    tools.iter().map(|tool| escape_unprintable(tool).into_owned()).collect::<Vec<_>>().join(", ")
}

/// Shows the beginning of a value on one line.
fn single_line(value: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    let line: String =
        value.chars().map(|character| if character == '\n' { '⏎' } else { character }).take(MAX_CHARACTERS).collect();
    if value.chars().count() > MAX_CHARACTERS { format!("{line}…") } else { line }
}

/// Renders the output of a dry run.
pub fn render_dry_run(dry_run: &DryRunOutput) -> String {
    let mut text = String::new();
    for line in dry_run.output.lines().chain(dry_run.errors.lines()) {
        text.push_str(&format!("  {}\n", escape_unprintable(line)));
    }
    if dry_run.is_truncated {
        text.push_str("  …\n");
    }
    match &dry_run.end {
        DryRunEnd::Exited { code: 0 } if text.is_empty() => text.push_str("  (it would do nothing)\n"),
        DryRunEnd::Exited { code: 0 } => {}
        DryRunEnd::Exited { code } => text.push_str(&format!("  (the dry run ended with {code})\n")),
        DryRunEnd::Signalled { signal } => text.push_str(&format!("  (signal {signal} ended the dry run)\n")),
        DryRunEnd::TimedOut => text.push_str("  (the dry run took too long)\n"),
        DryRunEnd::NotStarted { reason } => text.push_str(&format!("  (the dry run could not be started: {reason})\n")),
    }
    text
}
