//! `sayso tool`: the built-in tools as an agent would call them. One JSON value comes out, whatever happens.

use std::io::Read as _;
use std::process::ExitCode;

use sayso_api::client::ToolGrants;
use sayso_review::{BadGlob, ErrorKind, PathGlobs};
use sayso_tools::{Registry, ToolError};
use sayso_workspace::Workspace;
use serde_json::{Value, json};

use crate::cli::ToolArguments;
use crate::engine::Connected;
use crate::failure::{Failure, exit_code};
use crate::output::Output;
use crate::state::State;

pub(crate) fn run(arguments: &ToolArguments) -> Result<ExitCode, Failure> {
    let result = if arguments.name == "list" {
        // The same in every workspace.
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
        // Looked at here, so that a mistake is told in the words in which it was made.
        PathGlobs::new(relative.iter().map(String::as_str)).map_err(|error| bad_glob(&error))?;
        Ok(relative)
    };
    let grants =
        ToolGrants { tools: arguments.grant.clone(), read: globs(&arguments.read)?, write: globs(&arguments.write)? };
    let text = if arguments.args == "-" { standard_input()? } else { arguments.args.clone() };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("--args is not JSON: {error}"), "give a JSON object, such as --args '{}'"))?;
    let asked = || {
        let state = State::at(&arguments.workspace)?;
        let connected = Connected::asking(&state)?;
        connected.block(connected.client().run_tool(&arguments.name, &value, Some(grants)))
    };
    asked().map_err(|failure| match failure {
        Failure::Told { kind, what, why, hint } => {
            ToolError { kind, message: why.map_or_else(|| what.clone(), |why| format!("{what}: {why}")), hint }
        }
        Failure::BrokenPipe => invalid("a pipe is closed".to_owned(), "try it again"),
    })
}

/// A pattern with the workspace's full path before it means the same as without.
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
        Err(error) => Err(invalid(format!("standard input could not be read: {error}"), "give UTF-8 text")),
    }
}

fn bad_glob(error: &BadGlob) -> ToolError {
    invalid(error.to_string(), "patterns are relative to the workspace, such as 'src/**/*.rs'")
}

fn invalid(message: String, hint: &str) -> ToolError {
    ToolError { kind: ErrorKind::InvalidArgs, message, hint: Some(hint.to_owned()) }
}
