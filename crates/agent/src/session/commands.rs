//! Commands, inside the engine and in terminals of the user.

use std::time::Duration;

use sayso_tools::{CommandMode, CommandStep, TerminalReason};

use super::calls::CallResult;
use super::invocation::{InvocationEnd, InvocationRun};
use super::shorten::{MAX_OUTPUT_BYTES, head_and_tail};
use crate::event::LiveEventKind;
use crate::host::{
    ActionOutcome, CallOrigin, CommandDispatch, CommandEnd, CommandResult, OutputSink, SurfaceAnswer, SurfaceRequest,
};

/// Name of the terminal in which surfaces run commands of the agent.
const TERMINAL_NAME: &str = "sayso";
/// Time limit of a heavy command that no surface can run.
const HEAVY_TIMEOUT: Duration = Duration::from_mins(10);

impl InvocationRun<'_> {
    pub(super) async fn run_command(
        &self,
        origin: &CallOrigin,
        step: CommandStep,
    ) -> Result<CallResult, InvocationEnd> {
        if let CommandMode::UserTerminal { reason } = &step.mode {
            let reason = reason.clone();
            return self.run_in_terminal(origin, step, &reason).await;
        }
        let command = self.session.host().run_command(origin, step, self.output_sink(&origin.call));
        let result = self.interrupt.or_interrupted(command).await.ok_or(InvocationEnd::Interrupted)?;
        Ok(command_text(result))
    }

    /// Returns a sink that publishes output while a command runs.
    pub(super) fn output_sink(&self, call: &str) -> OutputSink {
        let (session, invocation, call) = (self.session.clone(), self.invocation.to_owned(), call.to_owned());
        OutputSink::new(move |text| {
            let delta = LiveEventKind::ToolOutputDelta { call: call.clone(), text: text.to_owned() };
            session.emit_in(&invocation, delta);
        })
    }

    async fn run_in_terminal(
        &self,
        origin: &CallOrigin,
        step: CommandStep,
        reason: &TerminalReason,
    ) -> Result<CallResult, InvocationEnd> {
        let host = self.session.host();
        let permit = host.permit_command(origin, step.clone());
        let permit = self.interrupt.or_interrupted(permit).await.ok_or(InvocationEnd::Interrupted)?;
        if permit.outcome != ActionOutcome::Permitted {
            return Ok(permit.into());
        }
        let change = permit.change;
        let request = SurfaceRequest::ExecuteCommand {
            command: permit.message.clone(),
            directory: step.directory.to_string(),
            terminal_name: TERMINAL_NAME.to_owned(),
            change,
        };
        let answer = match self.ask(request).await {
            Ok(answer) => answer,
            Err(end) => {
                host.report_end(origin, change, &CommandEnd::Failed { message: "interrupted".to_owned() });
                return Err(end);
            }
        };
        if let (SurfaceAnswer::NoSurface, TerminalReason::Heavy { .. }) = (&answer, reason) {
            let step = CommandStep {
                command: permit.message,
                timeout: step.timeout.max(HEAVY_TIMEOUT),
                mode: CommandMode::Foreground,
                ..step
            };
            let command = host.run_command(origin, step, self.output_sink(&origin.call));
            let result = self.interrupt.or_interrupted(command).await.ok_or(InvocationEnd::Interrupted)?;
            return Ok(command_text(result));
        }
        let (end, result) = terminal_result(answer);
        host.report_end(origin, change, &end);
        Ok(CallResult { change, ..result })
    }
}

/// Returns the end of a command in a terminal, and the text for the model.
fn terminal_result(answer: SurfaceAnswer) -> (CommandEnd, CallResult) {
    let named = |terminal: Option<String>| terminal.map_or_else(String::new, |terminal| format!(" ({terminal})"));
    match answer {
        SurfaceAnswer::Command(CommandDispatch::Sent { terminal }) => (
            CommandEnd::Sent,
            CallResult::text(format!(
                "The command was sent to a terminal of the user{}. Its exit code and its output are unknown. Do not assume that it \
                 succeeded: check its effect, or ask the user.",
                named(terminal)
            )),
        ),
        SurfaceAnswer::Command(CommandDispatch::Ran { terminal, exit_code, output }) => {
            let mut text = format!("The command ran in a terminal of the user{}.\n", named(terminal));
            match exit_code {
                Some(code) => text.push_str(&format!("Exit code: {code}\n")),
                None => text.push_str("Exit code: unknown\n"),
            }
            match output {
                Some(output) if !output.is_empty() => text.push_str(&head_and_tail(&output, MAX_OUTPUT_BYTES, 0)),
                Some(_) => text.push_str("(no output)"),
                None => text.push_str("Its output is unknown."),
            }
            let end = exit_code.map_or(CommandEnd::Sent, |code| CommandEnd::Exited { code });
            (end, CallResult { is_error: exit_code.is_some_and(|code| code != 0), ..CallResult::text(text) })
        }
        SurfaceAnswer::Command(CommandDispatch::Failed { message }) => {
            let text = format!("The terminal of the user could not run the command: {message}");
            (CommandEnd::Failed { message }, CallResult::error(text))
        }
        SurfaceAnswer::TimedOut => {
            let message = "no surface confirmed the command before its deadline".to_owned();
            let text =
                "No surface confirmed the command before its deadline. It may or may not have run: check its effect.";
            (CommandEnd::Failed { message }, CallResult::error(text))
        }
        _ => {
            let message = "no surface with a terminal is attached".to_owned();
            let text = "The command was not run: it needs a terminal of the user, and no surface with a terminal is attached. Use a \
                        command that needs no keyboard, or ask the user to run it.";
            (CommandEnd::Failed { message }, CallResult::error(text))
        }
    }
}

/// Returns the result of a command for the model: agent message, output, end.
pub(super) fn command_text(result: CommandResult) -> CallResult {
    let CommandResult { action, end, output, omitted_bytes } = result;
    let Some(end) = end else { return action.into() };
    let mut text = String::new();
    // An approval as asked needs no words; an edit of the command does.
    if action.outcome != ActionOutcome::Applied && !action.message.is_empty() {
        text.push_str(&action.message);
        text.push('\n');
    }
    let output = output.trim_end_matches('\n');
    if output.is_empty() {
        text.push_str("(no output)\n");
    } else {
        text.push_str(&head_and_tail(output, MAX_OUTPUT_BYTES, omitted_bytes));
        text.push('\n');
    }
    let (line, is_error) = match &end {
        CommandEnd::Exited { code } => (format!("Exit code: {code}"), *code != 0),
        CommandEnd::Signaled { signal } => (format!("Killed by signal {signal}"), true),
        CommandEnd::TimedOut => {
            ("Killed at its time limit. Run it in the background if it takes longer.".to_owned(), true)
        }
        CommandEnd::Running { session } => (format!("It is still running, as session `{session}`."), false),
        CommandEnd::Sent => ("Its result is unknown.".to_owned(), false),
        CommandEnd::Failed { message } => (format!("It failed: {message}"), true),
    };
    text.push_str(&line);
    CallResult { text, is_error: is_error || action.outcome.is_error(), images: Vec::new(), change: action.change }
}
