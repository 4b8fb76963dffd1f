//! `Fetch`: requests a URL. The host sends the request, after a decision about it.

mod html;

use std::time::Duration;

use sayso_review::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{FetchStep, Step};

pub(crate) struct Fetch;

/// Maximum size of a body in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;
/// Maximum size of a result in bytes.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
const MAX_REDIRECTS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The URL, with `http://` or `https://`.
    url: String,
}

impl Tool for Fetch {
    fn name(&self) -> &'static str {
        "Fetch"
    }

    fn description(&self) -> &'static str {
        "Requests a URL and returns its text; HTML as plain text. A person or a rule decides about the URL first. Does not follow \
         redirects to another host."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { url } = arguments::parse(arguments)?;
        let parsed = Url::parse(url.trim())
            .map_err(|error| invalid(format!("`url` is not a URL: {error}")).hint("give it with `https://`"))?;
        Ok(Step::Fetch(step(&parsed, MAX_REDIRECTS)?))
    }
}

fn step(url: &Url, max_redirects: usize) -> Result<FetchStep, ToolError> {
    if !matches!(url.scheme(), "http" | "https") {
        let message = format!("the scheme `{}` of `{url}` is not supported", url.scheme());
        return Err(invalid(message).hint("give a URL with `http://` or `https://`, or use Read for a file"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("`url` contains a user name or a password").hint("leave them out of the URL"));
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid("`url` has no host"))?;
    let mut url = url.clone();
    let host = host.to_owned();
    url.set_fragment(None);
    Ok(FetchStep { url: url.into(), host, max_bytes: MAX_BODY_BYTES, max_redirects, timeout: TIMEOUT })
}

/// Response to a [`FetchStep`], as the host received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponse {
    pub status: u16,
    /// Value of `content-type`; empty without one.
    pub content_type: String,
    /// Body after decoding `content-encoding`, at most `max_bytes`.
    pub body: Vec<u8>,
    /// `true` if the body is larger.
    pub is_truncated: bool,
}

impl FetchStep {
    /// Returns the request for the value of `location` in a redirect. Fails if the redirect leaves the host, drops TLS, or
    /// exceeds the limit, because the decision was about the first URL.
    pub fn redirect(&self, location: &str) -> Result<Self, ToolError> {
        let failed = |message: String| ToolError::new(ErrorKind::ToolFailed, message);
        let max_redirects = self
            .max_redirects
            .checked_sub(1)
            .ok_or_else(|| failed(format!("`{}` redirects more than {MAX_REDIRECTS} times", self.url)))?;
        let from = Url::parse(&self.url).map_err(|error| failed(format!("`{}` is not a URL: {error}", self.url)))?;
        let to = from.join(location).map_err(|error| {
            failed(format!("`{}` redirects to `{location}`, which is not a URL: {error}", self.url))
        })?;
        let is_same_origin = to.host_str() == from.host_str()
            && (to.scheme() == from.scheme() && to.port_or_known_default() == from.port_or_known_default()
                || (from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none()));
        if !is_same_origin {
            return Err(failed(format!("`{}` redirects to another origin: {to}", self.url))
                .hint("call Fetch with that URL if it is the right one"));
        }
        step(&to, max_redirects)
    }

    /// Formats a response for the model.
    pub fn output(&self, response: &FetchResponse) -> ToolOutput {
        let media_type = response.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let body = match sayso_diff::plain_text(&response.body) {
            None => format!("[binary content, {} bytes]\n", response.body.len()),
            Some(text) if matches!(media_type.as_str(), "text/html" | "application/xhtml+xml") => html::to_text(&text),
            Some(text) => text.into_owned(),
        };
        let end = body.floor_char_boundary(MAX_SHOWN_BYTES.min(body.len()));
        let mut text = format!("{} {}\n\n{}", response.status, media_type, &body[..end]);
        if end < body.len() {
            text.push_str(&format!("\n[{} more bytes of text are not shown]", body.len() - end));
        } else if response.is_truncated {
            text.push_str(&format!("\n[the body is larger than {} bytes; the rest was not loaded]", self.max_bytes));
        }
        ToolOutput { text, is_error: response.status >= 400, images: Vec::new() }
    }
}
