//! `sayso policy`: explains decisions, and prints rules to start with.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use sayso_api::proto::explain_policy_request::Paths;
use sayso_api::proto::oneof::explain_policy_request::Action;
use sayso_api::proto::{CallTool, ExplainPolicyRequest, ExplainPolicyResponse};
use sayso_present::escape::escape_unprintable;
use sayso_review::{ErrorKind, Ruling};
use serde_json::{Value, json};

use crate::cli::{ExplainArguments, ExplainedAction, PolicyArguments, PolicyCommand};
use crate::config::{Config, FileTrust, show};
use crate::engine::EngineConnection;
use crate::error::{CliError, REFUSED};
use crate::output::{Output, print};
use crate::terminal::{Palette, Terminal};
use crate::workspace_location::WorkspaceLocation;

/// Column of the rule names, below the parts that they decide.
const RULE_COLUMN: usize = 19;

pub(crate) fn run(arguments: &PolicyArguments) -> Result<ExitCode, CliError> {
    match &arguments.command {
        PolicyCommand::Explain(arguments) => explain(arguments),
        PolicyCommand::Starter => {
            print(sayso_review::STARTER_RULES)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn explain(arguments: &ExplainArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let config = Config::load(&location)?;
    let (action, title) = action(arguments)?;
    let request = ExplainPolicyRequest {
        action: Some(action),
        agent: arguments.agent.clone(),
        session: arguments.session.clone(),
        ..Default::default()
    };
    let engine = EngineConnection::read_only(&location)?;
    let explained = engine.block(engine.client().explain_policy(request))?;
    let mut object: Value =
        serde_json::from_str(&explained.details_json).map_err(|error| response_error().caused_by(&error))?;
    let ruling = ruling(explained.ruling.as_known())?;
    let mut output = Output::stdout();
    if arguments.common.json {
        object["workspace_file"] = json!(config.trust);
        output.json(&object)?;
    } else {
        let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
        let mut text = text(&explained, &title, terminal)?;
        let has_ignored = object["ignored_rules"].as_array().is_some_and(|ignored| !ignored.is_empty());
        if has_ignored || matches!(config.trust, FileTrust::Changed) {
            text.push_str(&format!("\n{}\n", show::trust_text(config.trust).unwrap_or_default()));
        }
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(if ruling == Ruling::Deny { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn response_error() -> CliError {
    CliError::new(ErrorKind::Internal, "cannot read the engine's response")
}

fn ruling(value: Option<sayso_api::proto::Ruling>) -> Result<Ruling, CliError> {
    Ruling::try_from(value.unwrap_or_default()).map_err(|error| response_error().because(error.to_string()))
}

/// Returns the action of the command line, and its title.
fn action(arguments: &ExplainArguments) -> Result<(Action, String), CliError> {
    let files = |paths: &[String]| Box::new(Paths { paths: paths.to_vec(), ..Default::default() });
    Ok(match &arguments.action {
        ExplainedAction::Write { paths } => (Action::Write(files(paths)), format!("write {}", paths.join(" "))),
        ExplainedAction::Read { paths } => (Action::Read(files(paths)), format!("read {}", paths.join(" "))),
        ExplainedAction::Run { command } => (Action::Run(command.clone()), format!("run {command}")),
        ExplainedAction::Tool { name, args } => {
            serde_json::from_str::<Value>(args).map_err(|error| {
                CliError::invalid_input("cannot read the tool's arguments")
                    .caused_by(&error)
                    .hint("give --args one JSON object")
            })?;
            let call = CallTool { name: name.clone(), arguments_json: args.clone(), ..Default::default() };
            (Action::Tool(Box::new(call)), format!("tool {name}"))
        }
        ExplainedAction::Delegate { to } => (Action::Delegate(to.clone()), format!("delegate {to}")),
    })
}

fn text(explained: &ExplainPolicyResponse, title: &str, terminal: Terminal) -> Result<String, CliError> {
    let word = styled(ruling(explained.ruling.as_known())?, 0, terminal);
    let mut text = format!("{word}  {}\n", escape_unprintable(title));
    text.push_str(&format!("by {}\n", escape_unprintable(&explained.rule)));
    if let Some(reason) = &explained.reason {
        text.push_str(&format!("reason: {}\n", escape_unprintable(reason)));
    }
    let has_parts = explained.parts.len() > 1;
    if has_parts {
        text.push_str("\nThe strictest of its parts counts:\n");
    }
    for part in &explained.parts {
        if has_parts {
            let word = styled(ruling(part.ruling.as_known())?, 5, terminal);
            text.push_str(&format!("  {word}  {:<8}  {}\n", part.access, escape_unprintable(&part.target)));
            text.push_str(&format!("{:RULE_COLUMN$}{}\n", "", escape_unprintable(&part.rule)));
        } else if !part.overridden.is_empty() {
            text.push_str("\nOther rules about it:\n");
        }
        let indent = if has_parts { format!("{:RULE_COLUMN$}not ", "") } else { "  ".to_owned() };
        for other in &part.overridden {
            text.push_str(&format!("{indent}{}\n", escape_unprintable(other)));
        }
    }
    Ok(text)
}

/// Formats a ruling, in its colour if the terminal has colours.
fn styled(ruling: Ruling, width: usize, terminal: Terminal) -> String {
    let word = format!("{:<width$}", ruling.name());
    if terminal.palette == Palette::None {
        return word;
    }
    let colour = match ruling {
        Ruling::Allow => AnsiColor::Green,
        Ruling::Later => AnsiColor::Cyan,
        Ruling::Ask => AnsiColor::Yellow,
        Ruling::Deny => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{word}{style:#}")
}
