//! A command or a call of a tool, drawn for a person.

use sayso_review::{CommandPreview, Severity, Subject, Syntax, ToolPreview};

use crate::diff::style::Styles;
use crate::terminal::Terminal;
use crate::visible::visible;

/// What is asked about besides files; empty for files alone.
pub(crate) fn text(subject: &Subject, terminal: Terminal) -> String {
    let styles = Styles::of(terminal);
    match subject {
        Subject::Files => String::new(),
        Subject::Command { preview, .. } => command(preview, terminal),
        Subject::Tool { preview, .. } => tool(preview, &styles),
    }
}

/// A command and what it appears to do.
pub(crate) fn command(preview: &CommandPreview, terminal: Terminal) -> String {
    let styles = Styles::of(terminal);
    let mut text = String::new();
    styles.paint(&mut text, styles.title, "Command");
    text.push_str(&format!("  in {}", directory(preview)));
    if let Some(description) = &preview.description {
        styles.paint(&mut text, styles.number, &format!("  {}", visible(description)));
    }
    text.push('\n');
    for line in preview.script.lines() {
        text.push_str(&format!("  {}\n", visible(line)));
    }
    for effect in &preview.effects {
        let style = if effect.severity() >= Severity::Warning { styles.removed.marker } else { styles.note };
        styles.paint(&mut text, style, &format!("  {}: {effect}\n", effect.severity()));
    }
    for doubt in &preview.doubts {
        styles.paint(&mut text, styles.removed.marker, &format!("  warning: {}\n", visible(&doubt.to_string())));
    }
    match &preview.syntax {
        Syntax::Fine => {}
        Syntax::Wrong { message, .. } => {
            let line = format!("  warning: bash does not understand it: {}\n", visible(message));
            styles.paint(&mut text, styles.removed.marker, &line);
        }
        Syntax::Unchecked { reason } => {
            styles.paint(&mut text, styles.number, &format!("  its syntax was not checked: {}\n", visible(reason)));
        }
    }
    if preview.dry_run.is_some() {
        styles.paint(&mut text, styles.number, "  a dry run is possible\n");
    }
    text
}

/// Where a command runs, as seen from the root of the workspace.
pub(crate) fn directory(preview: &CommandPreview) -> String {
    if preview.directory.is_root() { "./".to_owned() } else { format!("{}/", visible(preview.directory.as_str())) }
}

fn tool(preview: &ToolPreview, styles: &Styles) -> String {
    let mut text = String::new();
    styles.paint(&mut text, styles.title, &format!("Tool  {}\n", visible(&preview.name)));
    for argument in &preview.arguments {
        let value = match argument.value.as_str() {
            Some(value) => value.to_owned(),
            None => argument.value.to_string(),
        };
        let kind = argument.kind.as_deref().map(|kind| format!(" ({})", visible(kind))).unwrap_or_default();
        text.push_str(&format!("  {}{kind}: {}\n", visible(&argument.name), visible(&shortened(&value))));
    }
    for problem in &preview.problems {
        styles.paint(&mut text, styles.removed.marker, &format!("  warning: {}\n", visible(&problem.to_string())));
    }
    if let Some(delegation) = &preview.delegation {
        let to = delegation.agent.as_deref().unwrap_or("another agent");
        text.push_str(&format!("  hands work to {}, with the tools {}:\n", visible(to), tools(&delegation.tools)));
        for line in delegation.prompt.lines() {
            text.push_str(&format!("    {}\n", visible(line)));
        }
    }
    if let Some(guessed) = &preview.guessed_from {
        let keys = guessed.keys.iter().map(|key| format!("`{}`", visible(key))).collect::<Vec<_>>().join(", ");
        let line = format!("  if it does what {keys} look like, this is the change:\n");
        styles.paint(&mut text, styles.note, &line);
    }
    text
}

fn tools(tools: &[String]) -> String {
    if tools.is_empty() {
        return "that it has (not said which)".to_owned();
    }
    tools.iter().map(|tool| visible(tool).into_owned()).collect::<Vec<_>>().join(", ")
}

/// Enough of a value to know it by.
fn shortened(value: &str) -> String {
    const MOST: usize = 200;
    let line: String =
        value.chars().map(|character| if character == '\n' { '⏎' } else { character }).take(MOST).collect();
    if value.chars().count() > MOST { format!("{line}…") } else { line }
}
