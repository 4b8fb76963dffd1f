//! Conditions of a script about a request.

use regex_automata::meta::Regex;
use sayso_wire::stream::Api;

use crate::Received;

/// Name, pattern and source of a text of a request.
type Expected<'a> = (&'a str, &'a Option<Regex>, TextOf<'a>);

/// A condition about a request. All parts that are present must hold.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Text of the last tool result.
    pub(crate) result: Option<Regex>,
    /// Text of the last user message with text.
    pub(crate) user: Option<Regex>,
    /// Text of the system prompt.
    pub(crate) system: Option<Regex>,
    /// Body as text.
    pub(crate) body: Option<Regex>,
    /// Name of the model.
    pub(crate) model: Option<Regex>,
    /// Path with the query.
    pub(crate) path: Option<Regex>,
    pub(crate) headers: Vec<(String, Regex)>,
    /// Name of a tool that the model may call.
    pub(crate) tool: Option<String>,
    /// Existence of tools.
    pub(crate) has_tools: Option<bool>,
    pub(crate) api: Option<Api>,
    /// Number of the request among the requests with tools, from 1.
    pub(crate) request: Option<usize>,
}

/// Computes a text of a request, if it is needed.
type TextOf<'t> = &'t dyn Fn() -> String;

impl Condition {
    /// `true` if the condition holds for a request with this number.
    pub(crate) fn matches(&self, received: &Received, number: usize) -> bool {
        self.mismatch(received, number).is_none()
    }

    /// Describes the first part of the condition that does not hold.
    pub(crate) fn mismatch(&self, received: &Received, number: usize) -> Option<String> {
        let fails = |regex: &Option<Regex>, text: TextOf<'_>| {
            regex.as_ref().and_then(|regex| {
                let text = text();
                (!regex.is_match(&text)).then(|| excerpt(&text))
            })
        };
        let last_result = || received.tool_results().pop().map(|result| result.text).unwrap_or_default();
        let body = || String::from_utf8_lossy(&received.decoded).into_owned();
        let texts: [Expected<'_>; 6] = [
            ("the last tool result", &self.result, &last_result),
            ("the last user text", &self.user, &|| received.last_user_text()),
            ("the system prompt", &self.system, &|| received.system_text()),
            ("the body", &self.body, &body),
            ("the model", &self.model, &|| received.model()),
            ("the path", &self.path, &|| received.target.clone()),
        ];
        for (name, regex, text) in texts {
            if let Some(text) = fails(regex, text) {
                return Some(format!("{name} is `{text}`"));
            }
        }
        for (name, regex) in &self.headers {
            match received.header(name) {
                Some(value) if regex.is_match(value) => {}
                Some(value) => return Some(format!("the header `{name}` is `{}`", excerpt(value))),
                None => return Some(format!("there is no header `{name}`")),
            }
        }
        if let Some(tool) = &self.tool
            && !received.tools().contains(&tool.as_str())
        {
            return Some(format!("the request has no tool `{tool}`"));
        }
        if let Some(wanted) = self.has_tools
            && wanted == received.tools().is_empty()
        {
            return Some(if wanted { "the request has no tools" } else { "the request has tools" }.to_owned());
        }
        if let Some(api) = self.api
            && received.api() != Some(api)
        {
            return Some("the request is for another API".to_owned());
        }
        self.request.filter(|wanted| *wanted != number).map(|_| format!("it is request {number} with tools"))
    }
}

/// Length of a text in a message, in characters.
const EXCERPT_CHARS: usize = 200;

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
