//! `sayso -p`: a task for the built-in agent, without a terminal surface.

use std::process::ExitCode;

use sayso_api::client::{AgentRole, Client, ClientError, Invocation, SessionSource};
use sayso_api::proto;
use sayso_api::proto::invocation_finished::Reason;
use sayso_api::proto::invocation_status::State;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_present::escape::{escape_json, escape_unprintable};
use sayso_review::ErrorKind;
use serde::Serialize;

use crate::cli::PromptArguments;
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED};
use crate::output::{Output, say};
use crate::settings::report_unconfirmed_rules;
use crate::signals::TerminationSignals;
use crate::workspace_location::WorkspaceLocation;

/// Exit code after a second Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;
/// Characters of a prompt that name its task branch.
const BRANCH_CHARS: usize = 40;

pub(crate) fn run(arguments: &PromptArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    // An agent under the gate must not start another one with the user's key.
    crate::agents::refuse(&location)?;
    location.announce();
    report_unconfirmed_rules(&location);
    let signals = TerminationSignals::new()?;
    let engine = EngineConnection::open(&location)?;
    let client = engine.client();
    let session =
        engine.block(client.start_agent_session(source(arguments), settings(arguments), branch(arguments)))?;
    let mut printer = Printer { output: Output::stdout(), json: arguments.common.json, is_line_open: false };
    printer.start(&session)?;
    let prompt = arguments.prompt.clone().unwrap_or_default();
    let request = proto::InvokeRequest {
        session: session.session.clone(),
        prompt,
        files: arguments.files.clone(),
        ..Default::default()
    };
    let ended = engine.wait(async {
        let invocation = client.invoke(request, AgentRole::Follows).await?;
        follow(client, &session.session, invocation, signals, &mut printer).await
    });
    printer.close_line()?;
    printer.output.finish()?;
    let end = ended?;
    if !arguments.common.json && end != End::Completed {
        say(&format!("Continue with `sayso -p --resume {}`.", session.session));
    }
    Ok(match end {
        End::Completed => ExitCode::SUCCESS,
        End::Stopped => ExitCode::from(DENIED),
        End::Left => ExitCode::from(INTERRUPTED),
        End::Failed => crate::error::exit_code(ErrorKind::Unavailable),
    })
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Completed,
    /// Interrupted, cancelled, or stopped at a limit.
    Stopped,
    /// Ctrl-C was pressed twice.
    Left,
    Failed,
}

fn source(arguments: &PromptArguments) -> SessionSource {
    match (&arguments.resume, arguments.from_request) {
        (Some(session), _) => SessionSource::Resume(session.clone()),
        (None, Some(request)) => SessionSource::Request(request),
        (None, None) => SessionSource::New,
    }
}

fn settings(arguments: &PromptArguments) -> proto::SessionSettingsPatch {
    proto::SessionSettingsPatch {
        model: arguments.model.clone(),
        dialect: arguments.dialect.clone(),
        upstream: arguments.upstream.clone(),
        scenario: arguments.scenario.clone(),
        ..Default::default()
    }
}

/// Returns the task of the branch: as given, or the beginning of the prompt.
fn branch(arguments: &PromptArguments) -> Option<String> {
    let named = arguments.branch.as_ref()?;
    if !named.is_empty() {
        return Some(named.clone());
    }
    let prompt = arguments.prompt.as_deref().unwrap_or("task");
    Some(prompt.chars().take(BRANCH_CHARS).collect())
}

/// Prints events until the invocation ends. The first signal interrupts it, the second one leaves.
async fn follow(
    client: &Client,
    session: &str,
    mut invocation: Invocation,
    signals: TerminationSignals,
    printer: &mut Printer,
) -> Result<End, CliError> {
    let mut signals = signals.listen()?;
    let (mut end, mut interrupts) = (End::Failed, 0);
    loop {
        let event: Result<Option<proto::InvokeEvent>, ClientError> = tokio::select! {
            event = invocation.next() => event,
            () = signals.received() => {
                interrupts += 1;
                if interrupts > 1 {
                    return Ok(End::Left);
                }
                printer.note("interrupting; Ctrl-C again leaves at once")?;
                client.interrupt_agent(session).await?;
                continue;
            }
        };
        let Some(event) = event? else { return Ok(end) };
        printer.event(&event)?;
        match &event.event {
            Some(Event::Finished(finished)) => {
                let is_completed = finished.reason == Reason::Completed;
                end = if is_completed { End::Completed } else { End::Stopped };
            }
            Some(Event::Failed(_)) => end = End::Failed,
            _ => {}
        }
    }
}

/// Prints events as text or as JSON lines.
struct Printer {
    output: Output,
    json: bool,
    /// The text of the agent has not ended with a line break.
    is_line_open: bool,
}

impl Printer {
    fn line(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value)
            .map_err(|error| CliError::new(ErrorKind::Internal, "cannot write an event as JSON").caused_by(&error))?;
        self.output.write(escape_json(&text).as_bytes())?;
        self.output.write(b"\n")?;
        self.output.flush()
    }

    fn start(&mut self, session: &proto::AgentSession) -> Result<(), CliError> {
        if self.json {
            return self.line(session);
        }
        let settings = session.settings.as_option();
        let (model, scenario) = settings.map_or(("", ""), |it| (it.model.as_str(), it.scenario.as_str()));
        say(&format!("Session {} · {model} · {scenario}", session.session));
        if let Some(branch) = &session.branch {
            say(&format!("Branch {branch}: changes are applied at once and reviewed at the end"));
        }
        Ok(())
    }

    /// Ends the line of the agent's text, before something else is printed.
    fn close_line(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.is_line_open) {
            self.output.write(b"\n")?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<(), CliError> {
        self.close_line()?;
        if !self.json {
            say(text);
        }
        Ok(())
    }

    fn event(&mut self, event: &proto::InvokeEvent) -> Result<(), CliError> {
        if self.json {
            return self.line(event);
        }
        match &event.event {
            Some(Event::TextDelta(delta)) => {
                let lines: Vec<_> = delta.text.split('\n').map(escape_unprintable).collect();
                let text = lines.join("\n");
                self.output.write(text.as_bytes())?;
                self.output.flush()?;
                self.is_line_open = if text.is_empty() { self.is_line_open } else { !text.ends_with('\n') };
                Ok(())
            }
            Some(Event::ToolCall(call)) => self.note(&format!("· {}", call.summary)),
            Some(Event::ToolResult(result)) if result.is_error => {
                let first = result.text.lines().next().unwrap_or_default();
                self.note(&format!("  {}: {first}", result.tool))
            }
            Some(Event::Status(status)) => self.status(status),
            Some(Event::Question(question)) => self.note(&format!("? {}", question.question)),
            Some(Event::Finished(finished)) => self.finished(finished),
            Some(Event::Failed(failed)) => {
                self.note(&format!("Failed: {}", failed.message))?;
                if failed.hint.is_empty() { Ok(()) } else { self.note(&format!("Hint: {}", failed.hint)) }
            }
            _ => Ok(()),
        }
    }

    fn status(&mut self, status: &proto::InvocationStatus) -> Result<(), CliError> {
        match status.state.as_known().unwrap_or_default() {
            State::STATE_WAITING => match (status.change, status.request) {
                (Some(change), _) => self.note(&format!(
                    "Change {change} waits for a decision: run `sayso review {change}` in another terminal."
                )),
                (None, Some(request)) => self.note(&format!(
                    "Request {request} is paused: `sayso request show {request}`, then `sayso request resume {request}`."
                )),
                (None, None) => Ok(()),
            },
            State::STATE_RETRYING | State::STATE_COMPACTING | State::STATE_PRUNED => self.note(&status.text),
            _ => Ok(()),
        }
    }

    fn finished(&mut self, finished: &proto::InvocationFinished) -> Result<(), CliError> {
        self.close_line()?;
        if let Some(review) = finished.review {
            say(&format!("The changes of this turn wait for a review: run `sayso review {review}`."));
        }
        let usage = finished.usage.as_option();
        let requests = usage.map_or(0, |usage| usage.requests);
        let cost = usage.and_then(|usage| usage.cost_micro_usd).map_or_else(String::new, |cost| {
            let (dollars, cents) = (cost / 1_000_000, cost % 1_000_000 / 1_000);
            format!(" · ${dollars}.{cents:03}")
        });
        let end = match finished.reason.as_known().unwrap_or_default() {
            Reason::REASON_COMPLETED => "Done",
            Reason::REASON_INTERRUPTED => "Interrupted",
            Reason::REASON_LIMIT => "Stopped at a limit",
            Reason::REASON_CANCELLED => "Cancelled",
            Reason::REASON_UNSPECIFIED => "Ended",
        };
        say(&format!("{end} · {requests} requests{cost}"));
        Ok(())
    }
}
