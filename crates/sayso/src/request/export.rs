//! `sayso request diff`, `sayso request replay` and `sayso request export`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::RequestBody;
use sayso_api::proto::replay_request_request::Which;

use super::show::redacted;
use super::{Asking, print};
use crate::cli::ExportFormat;
use crate::config::Config;
use crate::diff::style::Styles;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::visible::visible;

/// The exit code of a difference.
const DIFFERS: u8 = 1;
/// Headers that a client makes by itself.
const OF_CONNECTIONS: [&str; 7] =
    ["host", "content-length", "connection", "accept-encoding", "content-encoding", "transfer-encoding", "te"];

pub(super) fn diff(asking: &Asking<'_>, id: u64, context: usize) -> Result<ExitCode, Failure> {
    let context = u32::try_from(context).unwrap_or(u32::MAX);
    let request = proto::DiffRequestRequest { request: id, context: Some(context), ..Default::default() };
    let found = asking.connected.block(asking.connected.client().diff_request(request))?;
    let differs = !found.unified.is_empty();
    if !asking.json(&found)? {
        if differs {
            print(&coloured(&found.unified, &asking.styles()))?;
        } else {
            say(&format!("Request {id} is as it came."));
        }
    }
    Ok(if differs { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}

/// A unified diff for a person.
fn coloured(unified: &str, styles: &Styles) -> String {
    let mut text = String::new();
    for line in unified.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => styles.title,
            Some(b'+') => styles.added.marker,
            Some(b'-') => styles.removed.marker,
            Some(b'@') => styles.hunk,
            _ => anstyle::Style::new(),
        };
        styles.paint(&mut text, style, &visible(line));
        text.push('\n');
    }
    text
}

pub(super) fn replay(asking: &Asking<'_>, id: u64, original: bool) -> Result<ExitCode, Failure> {
    let which = if original { Which::AsCame } else { Which::AsSent };
    let request = proto::ReplayRequestRequest { request: id, which: which.into(), ..Default::default() };
    let found = asking.connected.block(asking.connected.client().replay_request(request))?;
    if asking.json(&found)? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("Sent again as request {}: status {}.\n\n", found.request, found.status);
    for line in found.answer.lines() {
        text.push_str(&format!("{}\n", visible(line)));
    }
    match (&found.earlier, found.diff.is_empty()) {
        (None, _) => text.push_str("\nThere is no earlier answer to compare it with.\n"),
        (Some(_), true) => text.push_str("\nThe answer is the same as then.\n"),
        (Some(_), false) => text.push_str(&format!("\n{}", coloured(&found.diff, &asking.styles()))),
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn export(asking: &Asking<'_>, id: u64, format: ExportFormat) -> Result<ExitCode, Failure> {
    let client = asking.connected.client();
    let body = |which: RequestBody| asking.connected.block(client.request_body(id, which));
    let bytes = match format {
        ExportFormat::Json => {
            let request = proto::ShowRequestRequest {
                request: id,
                content_limit: Some(u32::MAX),
                values: true,
                ..Default::default()
            };
            let shown = asking.connected.block(client.show_request(request))?;
            let value = serde_json::to_value(&shown).map_err(|error| Failure::bad_input("no JSON").why(&error))?;
            format!("{value:#}\n").into_bytes()
        }
        ExportFormat::Body => {
            note_redacted(asking, id)?;
            body(RequestBody::AsSent)?
        }
        ExportFormat::Response => body(RequestBody::Answer)?,
        ExportFormat::Patch => body(RequestBody::Patch)?,
        ExportFormat::Curl => curl(asking, id, &body(RequestBody::AsSent)?)?.into_bytes(),
    };
    if asking.place.json && format != ExportFormat::Json {
        let text = String::from_utf8(bytes).map_err(|error| {
            Failure::bad_input(format!("what is exported of request {id} is no text"))
                .why(&error)
                .hint("leave out `--json` to have its bytes")
        })?;
        asking.json(&serde_json::json!({"request": id.to_string(), "content": text}))?;
    } else if asking.terminal().interactive {
        let lines: Vec<String> =
            String::from_utf8_lossy(&bytes).lines().map(|line| format!("{}\n", visible(line))).collect();
        print(&lines.concat())?;
    } else {
        let mut output = Output::stdout();
        output.write(&bytes)?;
        output.finish()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A command that sends a request. Credentials are not recorded: they come from the variables that are usual.
fn curl(asking: &Asking<'_>, id: u64, body: &[u8]) -> Result<String, Failure> {
    let client = asking.connected.client();
    let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
    let shown = asking.connected.block(client.show_request(request))?;
    note(&shown);
    let seen = shown.summary.into_option().and_then(|summary| summary.seen.into_option()).unwrap_or_default();
    let base = if seen.server.is_some() {
        seen.server.clone()
    } else {
        // A record of an older version names the upstream only.
        let upstreams = Config::load(asking.state)?.requests.upstreams;
        upstreams.get(&seen.upstream).map(|setting| setting.value.url.to_string())
    };
    let base = base.ok_or_else(|| {
        Failure::bad_input(format!("there is no upstream `{}` any more", visible(&seen.upstream)))
            .hint(format!("configure it: [upstream.{}] with a `url`", seen.upstream))
    })?;
    let Ok(body) = std::str::from_utf8(body) else {
        return Err(Failure::bad_input(format!("the body of request {id} is not text"))
            .hint(format!("`sayso request export {id} --format body > FILE` writes it as it is")));
    };
    let mut text =
        format!("curl -X {} {}", quoted(&seen.method), quoted(&format!("{}{}", base.trim_end_matches('/'), seen.path)));
    for header in &seen.headers {
        if !OF_CONNECTIONS.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
            text.push_str(&format!(" \\\n  -H {}", quoted(&format!("{}: {}", header.name, header.value))));
        }
    }
    let key = match seen.api.as_deref() {
        Some("anthropic_messages") => "x-api-key: $ANTHROPIC_API_KEY",
        Some("gemini") => "x-goog-api-key: $GEMINI_API_KEY",
        Some(_) => "authorization: Bearer $OPENAI_API_KEY",
        None => "authorization: Bearer $API_KEY",
    };
    // Read from standard input, since the words of a command may not be this long.
    let mut end = "SAYSO_BODY".to_owned();
    while body.lines().any(|line| line == end) {
        end.push('_');
    }
    text.push_str(&format!(" \\\n  -H \"{key}\" \\\n  --data-binary @- <<'{end}'\n{body}\n{end}\n"));
    Ok(text)
}

/// Says which values of an exported body are masked.
fn note_redacted(asking: &Asking<'_>, id: u64) -> Result<(), Failure> {
    let request = proto::ShowRequestRequest { request: id, content_limit: Some(0), ..Default::default() };
    note(&asking.connected.block(asking.connected.client().show_request(request))?);
    Ok(())
}

fn note(shown: &proto::ShowRequestResponse) {
    if let Some(redacted) = redacted(&shown.redacted) {
        say(&format!("note: credentials are not exported; put them in before you send it: {redacted}"));
    }
}

/// A word as a shell reads it.
fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("https://x.example/v1"), "https://x.example/v1");
        assert_eq!(quoted("a: it's $HOME"), r"'a: it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
