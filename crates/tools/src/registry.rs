//! What a tool is, and the tools there are.

use sayso_review::{ErrorKind, Grants};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::error::ToolError;
use crate::{diff, echo, glob, list, propose, read, write};

/// Something an agent can call.
pub trait Tool: Send + Sync {
    /// The name it is called and granted by.
    fn name(&self) -> &'static str;
    /// What it does, for a model to read.
    fn description(&self) -> &'static str;
    /// The JSON schema of its arguments.
    fn schema(&self) -> Value;
    /// What has to be granted for it to run.
    fn needs(&self) -> Needs;
    /// Does it. Called only if the capability was granted.
    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError>;
}

/// What has to be granted for a tool to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Whether its name has to be among the granted tools.
    pub capability: Capability,
    /// What it does to the files that its arguments name.
    pub files: FileAccess,
}

/// Whether a tool has to be granted by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Anybody may call it.
    None,
    /// Its name has to be granted.
    ByName,
}

/// What a tool does to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// It touches none.
    None,
    /// It reads those its arguments name.
    Read,
    /// It changes those its arguments name.
    Write,
}

/// A tool as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// See [`Tool::name`].
    pub name: &'static str,
    /// See [`Tool::description`].
    pub description: &'static str,
    /// See [`Tool::needs`].
    pub needs: Needs,
    /// See [`Tool::schema`].
    pub schema: Value,
}

/// The tools there are.
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
}

impl Registry {
    /// The built-in tools.
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

    /// The tools' names, in the order they were registered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// What to tell about the tools. They themselves are not handed out: calling one goes through [`Registry::run`].
    pub fn descriptions(&self) -> impl Iterator<Item = Description> {
        self.tools.iter().map(|tool| Description {
            name: tool.name(),
            description: tool.description(),
            needs: tool.needs(),
            schema: tool.schema(),
        })
    }

    /// Calls a tool by name, if it was granted.
    pub fn run(&self, name: &str, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let tool = self.find(name)?;
        check(tool, context.grants())?;
        tool.run(arguments, context)
    }

    fn find(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        self.tools.iter().map(AsRef::as_ref).find(|tool| tool.name() == name).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            ToolError::new(ErrorKind::InvalidArgs, format!("there is no tool `{name}`"))
                .hint(format!("the tools are {}", names.join(", ")))
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
