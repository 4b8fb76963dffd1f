//! `sayso request show`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::request::{BodyOf, DetailQuery, RequestDetails, RequestSection};
use sayso_present::escape::escape_unprintable;
use sayso_present::request::{SectionExtent, pinned_heading, render_request_heading, render_sections};
use sayso_present::span::{Style, StyledText};
use sayso_wire::{ModelRequest, NodeType, RequestHead};

use super::{RequestCommandContext, window};
use crate::error::CliError;
use crate::output::Output;
use crate::workspace_location::now;

pub(super) fn show(
    context: &RequestCommandContext<'_>,
    id: u64,
    full: bool,
    section: Option<&str>,
) -> Result<ExitCode, CliError> {
    let is_full = full || section.is_some();
    let query =
        DetailQuery { content_limit: is_full.then_some(u32::MAX), path: section.map(str::to_owned), values: true };
    let shown = context.engine.block(context.engine.client().show_request(id, &query))?;
    if let (Some(path), true) = (section, shown.sections.is_empty()) {
        let message = format!("there is no section at `{}` in request {id}", escape_unprintable(path));
        return Err(CliError::invalid_input(message).hint(format!("`sayso request show {id}` lists the paths")));
    }
    if context.print_json_of(|| proto::ShowRequestResponse::from(&shown))? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = render_request_heading(&shown, now());
    text.plain("\n");
    text.append(sections_text(&shown, is_full));
    if let (Some(_), [tool]) = (section, shown.sections.as_slice()) {
        text.plain(tool_declaration(context, id, tool)?);
    }
    let mut output = Output::stdout();
    output.styled(&text, context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Pinned sections, then all others.
fn sections_text(shown: &RequestDetails, is_full: bool) -> StyledText {
    let width = window::width();
    let extent = if is_full { SectionExtent::Full } else { SectionExtent::Excerpt };
    let mut text = StyledText::new();
    let pinned: Vec<RequestSection> =
        shown.sections.iter().filter(|section| section.pinned && !is_full).cloned().collect();
    if !pinned.is_empty() {
        text.append(pinned_heading(shown.pinned_tokens, shown.tokens));
        text.append(render_sections(&pinned, extent, width).0);
        text.plain("\n");
    }
    let count = shown.sections.len();
    let captured = shown.captured_sections.filter(|_| !is_full);
    let first = captured.map_or(count, |first| first.min(count));
    let (sections, is_truncated) = render_sections(&shown.sections[..first], extent, width);
    text.append(sections);
    if first < count {
        let note = format!("\nThe first {first} of {count} sections, whose edits are saved: --full shows all.\n");
        text.push(Style::Note, note);
    }
    if is_truncated && !is_full {
        text.push(Style::Note, "\nSome is not shown: --full shows all, --section PATH one.\n");
    }
    text
}

/// Returns the JSON of a tool definition, of which the section shows the description only. Empty for another section.
fn tool_declaration(context: &RequestCommandContext<'_>, id: u64, tool: &RequestSection) -> Result<String, CliError> {
    if tool.node != NodeType::ToolSchema {
        return Ok(String::new());
    }
    let body = context.engine.block(context.engine.client().request_body(id, BodyOf::Sent))?;
    let request = ModelRequest::new(id.to_string(), RequestHead::new(""), body);
    let (Ok(target), Some(document)) = (request.resolve(&tool.raw_path), request.document()) else {
        return Ok(String::new());
    };
    let value: serde_json::Value = serde_json::from_slice(&document.value_bytes(target)).unwrap_or_default();
    let json = serde_json::to_string_pretty(&value).unwrap_or_default();
    Ok(json.lines().map(|line| format!("  │ {}\n", escape_unprintable(line))).collect())
}
