//! `sayso tool`: runs a built-in tool as an agent would. Prints one JSON value, also on failure.

use std::io::Read as _;
use std::process::ExitCode;

use sayso_api::client::ToolGrants;
use sayso_review::{BadGlob, ErrorKind, PathGlobs};
use sayso_tools::{Registry, ToolError};
use sayso_workspace::Workspace;
use serde_json::{Value, json};

use crate::cli::ToolArguments;
use crate::engine::EngineConnection;
use crate::error::{CliError, exit_code};
use crate::output::Output;
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &ToolArguments) -> Result<ExitCode, CliError> {
    let result = if arguments.name == "list" {
        // The list does not depend on the workspace.
        Ok(json!(Registry::builtin().descriptions().collect::<Vec<_>>()))
    } else {
        call(arguments)
    };
    let mut output = Output::stdout();
    let code = match result {
        Ok(value) => {
            output.json(&value)?;
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = exit_code(error.kind);
            output.json(&json!({ "error": error }))?;
            code
        }
    };
    output.finish()?;
    Ok(code)
}

fn call(arguments: &ToolArguments) -> Result<Value, ToolError> {
    let workspace = Workspace::open(&arguments.workspace)
        .map_err(|error| invalid(error.to_string(), "name a directory with --workspace"))?;
    let globs = |patterns: &[String]| -> Result<Vec<String>, ToolError> {
        let relative: Vec<String> = patterns.iter().map(|pattern| relative(&workspace, pattern)).collect();
        // Checked here, so that an error quotes the pattern as it was given.
        PathGlobs::new(relative.iter().map(String::as_str)).map_err(|error| bad_glob(&error))?;
        Ok(relative)
    };
    let grants =
        ToolGrants { tools: arguments.grant.clone(), read: globs(&arguments.read)?, write: globs(&arguments.write)? };
    let text = if arguments.args == "-" { standard_input()? } else { arguments.args.clone() };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("--args is not JSON: {error}"), "give a JSON object, such as --args '{}'"))?;
    let run_tool = || {
        let location = WorkspaceLocation::at(&arguments.workspace)?;
        let engine = EngineConnection::read_only(&location)?;
        engine.block(engine.client().run_tool(&arguments.name, &value, Some(grants)))
    };
    run_tool().map_err(CliError::into_tool_error)
}

/// Removes the workspace's path from a pattern.
fn relative(workspace: &Workspace, pattern: &str) -> String {
    let root = workspace.path().to_string_lossy();
    match pattern.strip_prefix(root.as_ref()) {
        Some("" | "/") => ".".to_owned(),
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        _ => pattern.to_owned(),
    }
}

fn standard_input() -> Result<String, ToolError> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(invalid(format!("cannot read standard input: {error}"), "give UTF-8 text")),
    }
}

fn bad_glob(error: &BadGlob) -> ToolError {
    invalid(error.to_string(), "patterns are relative to the workspace, such as 'src/**/*.rs'")
}

fn invalid(message: String, hint: &str) -> ToolError {
    ToolError { kind: ErrorKind::InvalidArgs, message, hint: Some(hint.to_owned()) }
}
