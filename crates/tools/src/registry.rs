//! The interface of tools, and the registry of built-in tools.

use sayso_review::{ErrorKind, Grants};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::error::ToolError;
use crate::external::{EXTERNAL_PREFIX, ExternalTool};
use crate::step::Step;
use crate::{apply_patch, ask, delegate, diff, echo, edit, exec, fetch, glob, grep, list, propose, read, todo, write};

/// The built-in tools, in the order in which they are listed.
const BUILTIN: &[&dyn Tool] = &[
    &echo::Echo,
    &read::Read,
    &list::List,
    &glob::Glob,
    &grep::Grep,
    &diff::Diff,
    &edit::EditTool,
    &write::Write,
    &apply_patch::ApplyPatch,
    &propose::ProposeChanges,
    &exec::Exec,
    &fetch::Fetch,
    &todo::TodoWriteTool,
    &todo::TodoReadTool,
    &ask::Ask,
    &delegate::Delegate,
];

/// A function that an agent can call.
pub trait Tool: Send + Sync {
    /// Name for calls and grants.
    fn name(&self) -> &'static str;
    /// Description for the model.
    fn description(&self) -> &'static str;
    /// JSON schema of the arguments.
    fn schema(&self) -> Value;
    fn needs(&self) -> Needs;
    /// Checks the arguments and carries out the parts that only read. The registry has checked the grant for the tool.
    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError>;
    /// Runs the call without a gate and returns the result as data. Fails with `unavailable` if the call needs a gate.
    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        match self.prepare(arguments, context)? {
            Step::Done(output) => Ok(serde_json::json!({ "text": output.text })),
            _ => Err(needs_session(self.name())),
        }
    }
}

/// Grants that a tool requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    pub capability: Capability,
    /// Access to the files that its arguments name.
    pub files: FileAccess,
}

/// Grant for calling a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Callable without a grant.
    None,
    /// A grant of the tool's name.
    ByName,
}

/// Access of a tool to the files that its arguments name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    None,
    Read,
    Write,
}

/// Entry of a built-in tool in a list of tools.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub name: &'static str,
    pub description: &'static str,
    pub needs: Needs,
    pub schema: Value,
}

/// Definition of a tool for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Value,
}

/// A set of tools by name: built-in tools, and tools of MCP servers.
#[derive(Clone)]
pub struct Registry {
    tools: Vec<&'static dyn Tool>,
    external: Vec<ExternalTool>,
    /// Names and patterns of allowed external tools; `None` allows all.
    allowed_external: Option<Vec<String>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all_names()).finish()
    }
}

impl Registry {
    /// Creates a registry of the built-in tools.
    pub fn builtin() -> Self {
        Self { tools: BUILTIN.to_vec(), external: Vec::new(), allowed_external: None }
    }

    /// Keeps only the tools with these names, in this order. A name `mcp__SERVER__TOOL` or `mcp__SERVER__*` allows tools that
    /// [`Registry::add_external`] adds later; without such a name, no external tool is added. Fails if a built-in tool is unknown.
    pub fn only<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, ToolError> {
        let (mut tools, mut allowed): (Vec<&'static dyn Tool>, Vec<String>) = (Vec::new(), Vec::new());
        for name in names {
            if name.starts_with(EXTERNAL_PREFIX) {
                allowed.push(name.to_owned());
                continue;
            }
            let tool = self.find(name)?;
            if !tools.iter().any(|known| known.name() == tool.name()) {
                tools.push(tool);
            }
        }
        let mut only = Self { tools, external: Vec::new(), allowed_external: Some(allowed) };
        only.add_external(self.external.iter().cloned());
        Ok(only)
    }

    /// Adds tools of MCP servers, as far as [`Registry::only`] allows them. A tool with a known name replaces the earlier one.
    pub fn add_external(&mut self, tools: impl IntoIterator<Item = ExternalTool>) {
        for tool in tools {
            let is_allowed = self.allowed_external.as_ref().is_none_or(|allowed| {
                allowed.iter().any(|name| match name.strip_suffix('*') {
                    Some(start) => tool.name.starts_with(start),
                    None => tool.name == *name,
                })
            });
            if is_allowed {
                self.external.retain(|known| known.name != tool.name);
                self.external.push(tool);
            }
        }
        // The order of connections must not change the prompt.
        self.external.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Returns the names of the built-in tools, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().map(|tool| tool.name())
    }

    fn all_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.names().collect();
        names.extend(self.external.iter().map(|tool| tool.name.as_str()));
        names
    }

    /// Describes the built-in tools. The tools themselves stay private, so that every call goes through the registry.
    pub fn descriptions(&self) -> impl Iterator<Item = Description> {
        self.tools.iter().map(|tool| Description {
            name: tool.name(),
            description: tool.description(),
            needs: tool.needs(),
            schema: tool.schema(),
        })
    }

    /// Defines all tools for a model: built-in tools in the order of registration, then external tools by name.
    pub fn definitions(&self) -> Vec<Definition> {
        let builtin = self.tools.iter().map(|tool| Definition {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            schema: tool.schema(),
        });
        let external = self.external.iter().map(|tool| Definition {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: tool.schema.clone(),
        });
        builtin.chain(external).collect()
    }

    /// Returns the external tool with this name.
    pub fn external(&self, name: &str) -> Option<&ExternalTool> {
        self.external.iter().find(|tool| tool.name == name)
    }

    /// Checks a call of a model and returns its next step.
    pub fn prepare(&self, name: &str, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        if let Some(tool) = self.external(name) {
            return tool.prepare(arguments);
        }
        let tool = self.find(name)?;
        check(tool, context.grants())?;
        tool.prepare(arguments, context)
    }

    /// Calls a tool without a gate after a check of its grant. Fails with `unavailable` if the call needs a gate.
    pub fn run(&self, name: &str, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let tool = self.find(name)?;
        check(tool, context.grants())?;
        tool.run(arguments, context)
    }

    fn find(&self, name: &str) -> Result<&'static dyn Tool, ToolError> {
        self.tools.iter().copied().find(|tool| tool.name() == name).ok_or_else(|| {
            ToolError::new(ErrorKind::InvalidArgs, format!("unknown tool `{name}`"))
                .hint(format!("use one of {}", self.all_names().join(", ")))
        })
    }
}

/// Error of a call that only a session of the agent can carry out.
pub(crate) fn needs_session(name: &str) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("`{name}` did nothing: no gate is running to review the call"))
        .hint("give the agent a task with `sayso -p PROMPT`")
}

fn check(tool: &dyn Tool, grants: &Grants) -> Result<(), ToolError> {
    let name = tool.name();
    if tool.needs().capability == Capability::None || grants.tools.contains(name) {
        return Ok(());
    }
    Err(ToolError::new(ErrorKind::ToolDenied, format!("the tool `{name}` is not granted"))
        .hint(format!("grant it with --grant {name}")))
}
