//! The path and headers of a request.

/// The path and headers of a request. Header names are case-insensitive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    pub path: String,
    pub headers: Vec<(String, String)>,
}

const AGENT: &str = "user-agent";
const INTERACTION_TYPE: &str = "x-interaction-type";
const SESSION: [&str; 7] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    "agent-session-id",
    "x-session-affinity",
];
const SUBAGENT: [&str; 2] = ["x-claude-code-agent-id", "x-openai-subagent"];
const PARENT: [&str; 3] = ["x-claude-code-parent-agent-id", "x-codex-parent-thread-id", "x-parent-session-id"];

impl RequestHead {
    /// Headers that identify the agent, session or subagent.
    pub const IDENTITY_HEADERS: [&str; 14] = {
        let [a, b, c, d, e, f, g] = SESSION;
        let ([h, i], [j, k, l]) = (SUBAGENT, PARENT);
        [AGENT, INTERACTION_TYPE, a, b, c, d, e, f, g, h, i, j, k, l]
    };

    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), headers: Vec::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the path without query and trailing slash.
    pub fn route(&self) -> &str {
        let path = self.path.split_once('?').map_or(self.path.as_str(), |(path, _)| path);
        path.trim_end_matches('/')
    }

    /// Returns the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the first present header of several names.
    pub fn first_header(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.header(name))
    }

    /// Identifies the agent by its user agent.
    pub fn agent(&self) -> Option<&'static str> {
        let name = self.header(AGENT)?.to_ascii_lowercase();
        let known = [
            ("claude-cli", "claude"),
            ("claude-code", "claude"),
            ("codex", "codex"),
            ("geminicli", "gemini"),
            ("opencode", "opencode"),
            ("copilot", "copilot"),
            ("aider", "aider"),
            ("goose", "goose"),
            ("crush", "crush"),
        ];
        known.iter().find(|(part, _)| name.contains(part)).map(|(_, agent)| *agent)
    }

    /// Returns the session id from the headers of known agents.
    pub fn session(&self) -> Option<&str> {
        self.first_header(&SESSION)
    }

    /// Returns the subagent from the headers of known agents.
    pub fn subagent(&self) -> Option<super::Subagent> {
        let id = self.first_header(&SUBAGENT);
        let parent = self.first_header(&PARENT);
        let by_type = self.header(INTERACTION_TYPE).is_some_and(|kind| kind.contains("subagent"));
        (id.is_some() || parent.is_some() || by_type)
            .then(|| super::Subagent { id: id.map(str::to_owned), parent: parent.map(str::to_owned) })
    }
}
