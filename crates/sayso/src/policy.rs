//! `sayso policy`: what would happen and why, and rules to begin with.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use sayso_api::proto::explain_policy_request::Paths;
use sayso_api::proto::oneof::explain_policy_request::Act;
use sayso_api::proto::{CallTool, ExplainPolicyRequest, ExplainPolicyResponse};
use sayso_review::Ruling;
use serde_json::{Value, json};

use crate::cli::{Asked, Explain, PolicyArguments, PolicyCommand};
use crate::config::{Config, Trust, show};
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::Output;
use crate::state::{REFUSED, State};
use crate::terminal::{Palette, Terminal};
use crate::visible::visible;

/// The column in which rules stand, beneath what they are about.
const BY: usize = 19;

pub(crate) fn run(arguments: &PolicyArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        PolicyCommand::Explain(arguments) => explain(arguments),
        PolicyCommand::Starter => starter(),
    }
}

/// Prints the starter rules.
fn starter() -> Result<ExitCode, Failure> {
    let mut output = Output::stdout();
    output.write(sayso_review::STARTER_RULES.as_bytes())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn explain(arguments: &Explain) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let config = Config::load(&state)?;
    let (act, title) = asked(arguments)?;
    let request = ExplainPolicyRequest {
        act: Some(act),
        agent: arguments.agent.clone(),
        session: arguments.session.clone(),
        ..Default::default()
    };
    let connected = Connected::asking(&state)?;
    let explained = connected.block(connected.client().explain_policy(request))?;
    let mut object: Value = serde_json::from_str(&explained.details_json).map_err(|error| not_understood(&error))?;
    let ruling = ruling(explained.ruling.as_known())?;
    let mut output = Output::stdout();
    if arguments.place.json {
        object["workspace_file"] = json!(config.trust);
        output.json(&object)?;
    } else {
        let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
        let mut text = text(&explained, &title, terminal)?;
        let ignored = object["ignored_rules"].as_array().is_some_and(|ignored| !ignored.is_empty());
        if ignored || matches!(config.trust, Trust::Changed) {
            text.push_str(&format!("\n{}\n", show::standing(config.trust).unwrap_or_default()));
        }
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(if ruling == Ruling::Deny { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn not_understood(error: &impl ToString) -> Failure {
    Failure::of(sayso_review::ErrorKind::Internal, "the engine's answer was not understood").why(error)
}

fn ruling(value: Option<sayso_api::proto::Ruling>) -> Result<Ruling, Failure> {
    Ruling::try_from(value.unwrap_or_default()).map_err(|error| not_understood(&error))
}

/// What is asked about, and its title.
fn asked(arguments: &Explain) -> Result<(Act, String), Failure> {
    let files = |paths: &[String]| Box::new(Paths { paths: paths.to_vec(), ..Default::default() });
    Ok(match &arguments.asked {
        Asked::Write { paths } => (Act::Write(files(paths)), format!("write {}", paths.join(" "))),
        Asked::Read { paths } => (Act::Read(files(paths)), format!("read {}", paths.join(" "))),
        Asked::Run { command } => (Act::Run(command.clone()), format!("run {command}")),
        Asked::Tool { name, args } => {
            serde_json::from_str::<Value>(args).map_err(|error| {
                Failure::bad_input("the tool's arguments are not understood")
                    .why(&error)
                    .hint("give --args one JSON object")
            })?;
            let call = CallTool { name: name.clone(), arguments_json: args.clone(), ..Default::default() };
            (Act::Tool(Box::new(call)), format!("tool {name}"))
        }
        Asked::Delegate { to } => (Act::Delegate(to.clone()), format!("delegate {to}")),
    })
}

fn text(explained: &ExplainPolicyResponse, title: &str, terminal: Terminal) -> Result<String, Failure> {
    let mut text = format!("{}  {}\n", styled(ruling(explained.ruling.as_known())?, 0, terminal), visible(title));
    text.push_str(&format!("by {}\n", visible(&explained.rule)));
    if let Some(reason) = &explained.reason {
        text.push_str(&format!("reason: {}\n", visible(reason)));
    }
    let several = explained.parts.len() > 1;
    if several {
        text.push_str("\nThe strictest of its parts counts:\n");
    }
    for part in &explained.parts {
        if several {
            let word = styled(ruling(part.ruling.as_known())?, 5, terminal);
            text.push_str(&format!("  {word}  {:<8}  {}\n", part.access, visible(&part.what)));
            text.push_str(&format!("{:BY$}{}\n", "", visible(&part.rule)));
        } else if !part.others.is_empty() {
            text.push_str("\nOther rules about it:\n");
        }
        let indent = if several { format!("{:BY$}not ", "") } else { "  ".to_owned() };
        for other in &part.others {
            text.push_str(&format!("{indent}{}\n", visible(other)));
        }
    }
    Ok(text)
}

/// The word of a ruling, in its colour where there are colours.
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
