//! Scenarios: roles of the agent, as YAML files.

mod error;
mod format;

use std::collections::BTreeMap;

pub use error::ScenarioError;

use crate::settings::Limits;

/// A role of the agent: prompt, tools and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Such as `CODE`.
    pub name: String,
    /// One line.
    pub description: String,
    /// Instructions at the start of the system prompt.
    pub prompt: String,
    /// Names of tools. `mcp__SERVER__*` allows all tools of an MCP server, `mcp__*` the tools of all servers.
    pub tools: Vec<String>,
    /// Model that it asks for.
    pub model: Option<String>,
    pub limits: Option<Limits>,
    /// File that defines it. `None` if it is built in.
    pub file: Option<String>,
}

/// Tools that write files, run commands or reach other programs.
const ACTING_TOOLS: [&str; 6] = ["ApplyPatch", "Delegate", "Edit", "Exec", "ProposeChanges", "Write"];
/// Start of the names of external tools.
const EXTERNAL: &str = "mcp__";
const BUILT_IN: [(&str, &str); 3] = [
    ("ask.yaml", include_str!("../scenarios/ask.yaml")),
    ("code.yaml", include_str!("../scenarios/code.yaml")),
    ("editor_code.yaml", include_str!("../scenarios/editor_code.yaml")),
];

impl Scenario {
    /// Reads a scenario. `file` is its name in errors, and `known_tools` are the names of the built-in tools.
    pub fn parse(text: &str, file: &str, known_tools: &[String]) -> Result<Self, ScenarioError> {
        format::read(text, file, known_tools)
    }

    /// `true` if it cannot write files or run commands.
    pub fn is_read_only(&self) -> bool {
        !self.tools.iter().any(|tool| ACTING_TOOLS.contains(&tool.as_str()) || tool.starts_with(EXTERNAL))
    }

    /// `true` if it proposes changes and never writes by itself.
    pub fn proposes_only(&self) -> bool {
        let has = |name: &str| self.tools.iter().any(|tool| tool == name);
        has("ProposeChanges") && !["ApplyPatch", "Edit", "Exec", "Write"].into_iter().any(has)
    }

    /// `true` if the scenario has this tool.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| match tool.strip_suffix('*') {
            Some(start) if tool.starts_with(EXTERNAL) => name.starts_with(start),
            _ => tool == name,
        })
    }
}

/// Scenarios by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenarios {
    by_name: BTreeMap<String, Scenario>,
    problems: Vec<ScenarioError>,
}

impl Scenarios {
    /// Returns the built-in scenarios.
    pub fn built_in(known_tools: &[String]) -> Self {
        let mut scenarios = Self::default();
        for (file, text) in BUILT_IN {
            match Scenario::parse(text, file, known_tools) {
                Ok(mut scenario) => {
                    scenario.file = None;
                    scenarios.by_name.insert(scenario.name.clone(), scenario);
                }
                Err(problem) => scenarios.problems.push(problem),
            }
        }
        scenarios
    }

    /// Adds scenario files, as name and content. A later scenario replaces an earlier one of the same name. A file with an error is
    /// left out and reported as a problem.
    pub fn add_files<'f>(&mut self, files: impl IntoIterator<Item = (&'f str, &'f str)>, known_tools: &[String]) {
        for (file, text) in files {
            match Scenario::parse(text, file, known_tools) {
                Ok(scenario) => {
                    self.by_name.insert(scenario.name.clone(), scenario);
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    pub fn find(&self, name: &str) -> Option<&Scenario> {
        self.by_name.get(name)
    }

    /// Returns the scenarios, by name.
    pub fn all(&self) -> impl Iterator<Item = &Scenario> {
        self.by_name.values()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns the files that could not be used.
    pub fn problems(&self) -> &[ScenarioError] {
        &self.problems
    }
}
