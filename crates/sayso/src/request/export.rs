//! `sayso request diff`, `sayso request replay` and `sayso request export`.

use std::process::ExitCode;

use sayso_api::diff::DiffSubject;
use sayso_api::proto;
use sayso_api::request::{BodyOf, DetailQuery, ReplayOf, RequestDetails};
use sayso_present::diff::render_unified;
use sayso_present::escape::{escape_unprintable, quote_for_shell};
use sayso_present::request::redacted_text;
use sayso_present::span::StyledText;

use super::{RequestCommandContext, json_value};
use crate::change_diff::ChangeDiff;
use crate::cli::ExportFormat;
use crate::config::Config;
use crate::error::CliError;
use crate::output::{Output, print, say};

/// Exit code of `sayso request diff` if the request differs.
const DIFFERS: u8 = 1;
/// Headers that curl sets by itself.
const CONNECTION_HEADERS: [&str; 7] =
    ["host", "content-length", "connection", "accept-encoding", "content-encoding", "transfer-encoding", "te"];

pub(super) fn diff(context: &RequestCommandContext<'_>, id: u64, lines: usize) -> Result<ExitCode, CliError> {
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    if context.common.json {
        let diff = context.engine.block(context.engine.client().diff_request(id, Some(lines)))?;
        context.print_json_of(|| proto::DiffRequestResponse::from(&diff))?;
        return Ok(exit_code_of_diff(!diff.unified.is_empty()));
    }
    let subject = DiffSubject::Request(id);
    let diff = ChangeDiff::with_context(&context.engine, context.terminal(), subject, Some(lines), None)?;
    if diff.is_empty() {
        say(&format!("Request {id} is as it came."));
    } else {
        let mut output = Output::stdout();
        diff.draw_values(&mut output)?;
        output.finish()?;
    }
    Ok(exit_code_of_diff(!diff.is_empty()))
}

fn exit_code_of_diff(differs: bool) -> ExitCode {
    if differs { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS }
}

pub(super) fn replay(context: &RequestCommandContext<'_>, id: u64, original: bool) -> Result<ExitCode, CliError> {
    let body = if original { ReplayOf::Received } else { ReplayOf::Sent };
    let replayed = context.engine.block(context.engine.client().replay_request(id, body))?;
    if context.print_json_of(|| proto::ReplayRequestResponse::from(&replayed))? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = StyledText::new();
    text.plain(format!("Sent again as request {}: status {}.\n\n", replayed.request, replayed.status));
    for line in replayed.answer.lines() {
        text.plain(format!("{}\n", escape_unprintable(line)));
    }
    match (&replayed.earlier_answer, replayed.diff.is_empty()) {
        (None, _) => text.plain("\nThere is no earlier answer to compare it with.\n"),
        (Some(_), true) => text.plain("\nThe answer is the same as then.\n"),
        (Some(_), false) => {
            text.plain("\n");
            text.append(render_unified(&replayed.diff));
        }
    }
    let mut output = Output::stdout();
    output.styled(&text, context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn export(context: &RequestCommandContext<'_>, id: u64, format: ExportFormat) -> Result<ExitCode, CliError> {
    let client = context.engine.client();
    let body = |which: BodyOf| context.engine.block(client.request_body(id, which));
    let bytes = match format {
        ExportFormat::Json => {
            let query = DetailQuery { content_limit: Some(u32::MAX), path: None, values: true };
            let shown = context.engine.block(client.show_request(id, &query))?;
            format!("{:#}\n", json_value(&proto::ShowRequestResponse::from(&shown))?).into_bytes()
        }
        ExportFormat::Body => {
            report_redacted(&context.outline(id)?);
            body(BodyOf::Sent)?
        }
        ExportFormat::Response => body(BodyOf::Answer)?,
        ExportFormat::Patch => body(BodyOf::Patch)?,
        ExportFormat::Curl => curl(context, id, &body(BodyOf::Sent)?)?.into_bytes(),
    };
    if context.common.json && format != ExportFormat::Json {
        let text = String::from_utf8(bytes).map_err(|error| {
            CliError::invalid_input(format!("the export of request {id} is not UTF-8"))
                .caused_by(&error)
                .hint("leave out `--json` to have its bytes")
        })?;
        context.print_json(&serde_json::json!({"request": id.to_string(), "content": text}))?;
    } else if context.terminal().interactive {
        let text = String::from_utf8_lossy(&bytes);
        print(&text.lines().map(|line| format!("{}\n", escape_unprintable(line))).collect::<String>())?;
    } else {
        let mut output = Output::stdout();
        output.write(&bytes)?;
        output.finish()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a curl command for a request. Credentials are not recorded, so that it takes them from the usual variables.
fn curl(context: &RequestCommandContext<'_>, id: u64, body: &[u8]) -> Result<String, CliError> {
    let shown = context.outline(id)?;
    report_redacted(&shown);
    let received = shown.summary.record.received;
    let base = if received.server.is_some() {
        received.server.clone()
    } else {
        // Records of old versions have the name of the upstream only.
        let upstreams = Config::load(context.location)?.requests.upstreams;
        upstreams.get(&received.upstream).map(|setting| setting.value.url.to_string())
    };
    let base = base.ok_or_else(|| {
        CliError::invalid_input(format!("there is no upstream `{}` any more", escape_unprintable(&received.upstream)))
            .hint(format!("configure it: [upstream.{}] with a `url`", received.upstream))
    })?;
    let Ok(body) = std::str::from_utf8(body) else {
        return Err(CliError::invalid_input(format!("the body of request {id} is not text"))
            .hint(format!("`sayso request export {id} --format body > FILE` writes it as it is")));
    };
    let url = quote_for_shell(&format!("{}{}", base.trim_end_matches('/'), received.path));
    let mut text = format!("curl -X {} {url}", quote_for_shell(&received.method));
    for (name, value) in &received.headers {
        if !CONNECTION_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header)) {
            text.push_str(&format!(" \\\n  -H {}", quote_for_shell(&format!("{name}: {value}"))));
        }
    }
    let key = match received.api.as_deref() {
        Some("anthropic_messages") => "x-api-key: $ANTHROPIC_API_KEY",
        Some("gemini") => "x-goog-api-key: $GEMINI_API_KEY",
        Some(_) => "authorization: Bearer $OPENAI_API_KEY",
        None => "authorization: Bearer $API_KEY",
    };
    // From standard input, because the system limits the length of arguments.
    let mut end = "SAYSO_BODY".to_owned();
    while body.lines().any(|line| line == end) {
        end.push('_');
    }
    text.push_str(&format!(" \\\n  -H \"{key}\" \\\n  --data-binary @- <<'{end}'\n{body}\n{end}\n"));
    Ok(text)
}

/// Names the masked values of an exported body.
fn report_redacted(shown: &RequestDetails) {
    if let Some(redacted) = redacted_text(&shown.redacted) {
        say(&format!("note: credentials are not exported; put them in before you send it: {redacted}"));
    }
}
