//! What comes before a request's body.

/// The line and the headers of a request. Names of headers are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The path with the query.
    pub path: String,
    /// The headers that are no credentials.
    pub headers: Vec<(String, String)>,
}

const AGENT: &str = "user-agent";
const KIND: &str = "x-interaction-type";
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

impl Head {
    /// The headers that tell whose a request is.
    pub const MARKS: [&str; 14] = {
        let [a, b, c, d, e, f, g] = SESSION;
        let ([h, i], [j, k, l]) = (SUBAGENT, PARENT);
        [AGENT, KIND, a, b, c, d, e, f, g, h, i, j, k, l]
    };

    /// A request to a path.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), headers: Vec::new() }
    }

    /// With a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The path without the query and without a slash at its end.
    pub fn route(&self) -> &str {
        let path = self.path.split_once('?').map_or(self.path.as_str(), |(path, _)| path);
        path.trim_end_matches('/')
    }

    /// The first header of a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The first of several headers that is there.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.header(name))
    }

    /// The agent, by what it calls itself.
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

    /// The conversation, by the headers of agents that send one.
    pub fn session(&self) -> Option<&str> {
        self.any(&SESSION)
    }

    /// The subagent, by the headers of agents that send one.
    pub fn subagent(&self) -> Option<super::Subagent> {
        let id = self.any(&SUBAGENT);
        let parent = self.any(&PARENT);
        let by_type = self.header(KIND).is_some_and(|kind| kind.contains("subagent"));
        (id.is_some() || parent.is_some() || by_type)
            .then(|| super::Subagent { id: id.map(str::to_owned), parent: parent.map(str::to_owned) })
    }
}
