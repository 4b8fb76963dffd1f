//! The interface of tools, and the registry of built-in tools.

use sayso_review::{ErrorKind, Grants};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::error::ToolError;
use crate::{diff, echo, glob, list, propose, read, write};

/// A function that an agent can call.
pub trait Tool: Send + Sync {
    /// Name for calls and grants.
    fn name(&self) -> &'static str;
    /// Description for the model.
    fn description(&self) -> &'static str;
    /// JSON schema of the arguments.
    fn schema(&self) -> Value;
    fn needs(&self) -> Needs;
    /// Runs the call. The registry has checked the grant for the tool.
    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError>;
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

/// Entry of a tool in a list of tools.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub name: &'static str,
    pub description: &'static str,
    pub needs: Needs,
    pub schema: Value,
}

/// A set of tools by name.
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
}

impl Registry {
    /// Creates a registry of the built-in tools.
    pub fn builtin() -> Self {
        Self {
            tools: vec![
                Box::new(echo::Echo),
                Box::new(read::Read),
                Box::new(write::Write),
                Box::new(glob::Glob),
                Box::new(list::List),
                Box::new(diff::Diff),
                Box::new(propose::ProposeChanges),
            ],
        }
    }

    /// Returns the names of the tools, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Describes the tools. The tools themselves stay private, so that every call goes through [`Registry::run`].
    pub fn descriptions(&self) -> impl Iterator<Item = Description> {
        self.tools.iter().map(|tool| Description {
            name: tool.name(),
            description: tool.description(),
            needs: tool.needs(),
            schema: tool.schema(),
        })
    }

    /// Calls a tool by name after a check of its grant.
    pub fn run(&self, name: &str, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let tool = self.find(name)?;
        check(tool, context.grants())?;
        tool.run(arguments, context)
    }

    fn find(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        self.tools.iter().map(AsRef::as_ref).find(|tool| tool.name() == name).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            ToolError::new(ErrorKind::InvalidArgs, format!("unknown tool `{name}`"))
                .hint(format!("use one of {}", names.join(", ")))
        })
    }
}

fn check(tool: &dyn Tool, grants: &Grants) -> Result<(), ToolError> {
    let name = tool.name();
    if tool.needs().capability == Capability::None || grants.tools.contains(name) {
        return Ok(());
    }
    Err(ToolError::new(ErrorKind::ToolDenied, format!("the tool `{name}` is not granted"))
        .hint(format!("grant it with --grant {name}")))
}
