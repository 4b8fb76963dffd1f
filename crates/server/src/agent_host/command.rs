//! Commands of the agent: permitted by the gate, run by `sayso call`, recorded with the files that they changed.
//!
//! `sayso call` judges each program again and applies the kernel's marks. A guardian process adopts what a command leaves behind, and
//! ends it with the engine. A task follows each command to its end, so that its effects are recorded also after an interrupt.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_agent::host::{ActionOutcome, ActionResult, CallOrigin, CommandEnd, CommandResult, OutputSink};
use sayso_gate::AskMode;
use sayso_review::{ChangeId, ChangeStatus, ErrorKind, Intent, Subject};
use sayso_tools::{CommandMode, CommandStep, SessionAction, SessionStep};
use tokio::process::Command;

use super::SessionHost;
use super::change::{Decided, IntentOf, decide, finish, on_thread, report_not_started};
use super::process::{ProcessState, StartedProcess};
use crate::agent_registry::MARK;
use crate::failure::Failure;

/// Background commands of a session at the same time.
const MAX_COMMANDS: usize = 16;
/// Time for a killed command to end.
const KILL_LIMIT: Duration = Duration::from_mins(2);
/// Variable with the token of the server, which is for persons.
const TOKEN_VARIABLE: &str = "SAYSO_AUTH_TOKEN";

/// The background commands of a session, and its permits.
#[derive(Debug, Default)]
pub(crate) struct CommandSessions {
    state: Mutex<CommandState>,
}

#[derive(Debug, Default)]
struct CommandState {
    last: u64,
    running: BTreeMap<String, RunningCommand>,
    /// Permitted commands that were not started, by call.
    permits: BTreeMap<String, ChangeId>,
}

#[derive(Clone, Debug)]
struct RunningCommand {
    process: Arc<StartedProcess>,
    change: ChangeId,
}

impl CommandSessions {
    fn state(&self) -> MutexGuard<'_, CommandState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills all background commands.
    pub(crate) fn kill_all(&self) {
        for command in std::mem::take(&mut self.state().running).into_values() {
            command.process.kill();
        }
    }
}

/// Kills a command unless it is released.
struct KillOnDrop(Option<Arc<StartedProcess>>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            process.set_sink(None);
            process.kill();
        }
    }
}

fn intent(step: &CommandStep) -> Intent {
    let directory = step.directory.to_string();
    Intent::RunCommand {
        command: step.command.clone(),
        directory: Some(directory),
        description: step.description.clone(),
    }
}

/// Submits a command that a terminal of the user will run. The message of a permit is the approved command.
pub(super) async fn permit(host: &SessionHost, call: &CallOrigin, step: &CommandStep) -> ActionResult {
    let asked = IntentOf { call, intent: intent(step), schema: None, ask_mode: AskMode::ByPolicy };
    match decide(host, asked).await {
        Ok(Decided::Recorded(record)) if record.status == ChangeStatus::Permitted => {
            host.live.commands.state().permits.insert(call.call.clone(), record.change);
            let command = match record.approved() {
                Subject::Command { command, .. } => command,
                _ => step.command.clone(),
            };
            ActionResult { change: Some(record.change), outcome: ActionOutcome::Permitted, message: command }
        }
        Ok(decided) => decided.into_result(),
        Err(failure) => super::failed(&failure),
    }
}

/// Submits a command and runs it.
pub(super) async fn run(host: &SessionHost, call: &CallOrigin, step: CommandStep, output: OutputSink) -> CommandResult {
    let permit = host.live.commands.state().permits.remove(&call.call);
    let (change, message) = if let Some(change) = permit {
        (change, String::new())
    } else {
        let asked = IntentOf { call, intent: intent(&step), schema: None, ask_mode: AskMode::ByPolicy };
        match decide(host, asked).await {
            Ok(Decided::Recorded(record)) if record.status == ChangeStatus::Permitted => {
                (record.change, record.agent_message.clone().unwrap_or_default())
            }
            Ok(decided) => return not_run(decided.into_result()),
            Err(failure) => return super::failed_command(&failure),
        }
    };
    let is_background = matches!(step.mode, CommandMode::Background { .. });
    let process = match start(host, change, is_background).await {
        Ok(process) => process,
        Err(failure) => {
            let action = super::failed(&failure);
            return not_run(ActionResult { change: Some(change), ..action });
        }
    };
    let action = ActionResult { change: Some(change), outcome: ActionOutcome::Applied, message };
    process.set_sink(Some(output));
    let mut guard = KillOnDrop(Some(Arc::clone(&process)));
    let (limit, stays) = match step.mode {
        CommandMode::Background { wait } => (wait, true),
        CommandMode::Foreground | CommandMode::UserTerminal { .. } => (step.timeout, false),
    };
    let end = match process.wait(limit).await {
        Some(state) => ended(state),
        None if stays => match keep(host, &process, change) {
            Ok(session) => {
                guard.0 = None;
                process.set_sink(None);
                CommandEnd::Running { session }
            }
            Err(message) => CommandEnd::Failed { message },
        },
        None => {
            process.kill();
            // Completes: the task of the process kills it.
            let mut state = process.state();
            let _ = state.wait_for(|state| *state != ProcessState::Running).await;
            CommandEnd::TimedOut
        }
    };
    if !matches!(end, CommandEnd::Running { .. } | CommandEnd::Failed { .. }) {
        guard.0 = None;
        process.set_sink(None);
        // The task that follows the command records its end, and this result must not overtake it.
        if let Err(failure) = super::change::ended_change(&host.host, change).await {
            tracing::debug!(change, reason = failure.message, "cannot await the end of a command");
        }
    }
    result(action, end, &process)
}

fn not_run(action: ActionResult) -> CommandResult {
    CommandResult { action, end: None, output: String::new(), omitted_bytes: 0 }
}

fn result(action: ActionResult, end: CommandEnd, process: &StartedProcess) -> CommandResult {
    let output = process.take_output();
    CommandResult { action, end: Some(end), output: output.text, omitted_bytes: output.omitted }
}

fn ended(state: ProcessState) -> CommandEnd {
    match state {
        ProcessState::Exited { code } => CommandEnd::Exited { code },
        ProcessState::Lost { message } => CommandEnd::Failed { message },
        ProcessState::Running => CommandEnd::Failed { message: "it still runs".to_owned() },
    }
}

/// Keeps a command as a background command, and returns its id.
fn keep(host: &SessionHost, process: &Arc<StartedProcess>, change: ChangeId) -> Result<String, String> {
    let mut state = host.live.commands.state();
    if state.running.len() >= MAX_COMMANDS {
        return Err(format!("{MAX_COMMANDS} background commands are running: end one of them first"));
    }
    state.last += 1;
    let session = format!("c{}", state.last);
    state.running.insert(session.clone(), RunningCommand { process: Arc::clone(process), change });
    Ok(session)
}

/// Starts a permitted command, and a task that records its end.
async fn start(host: &SessionHost, change: ChangeId, reads_input: bool) -> Result<Arc<StartedProcess>, Failure> {
    let prepared = on_thread(&host.host, move |host| {
        let order = host.gate.call_order(change, &[])?;
        let id = host.calls.write(&order).map_err(|error| {
            Failure::new(ErrorKind::Unavailable, format!("cannot write the order of change {change}: {error}"))
                .hint("check the free disk space")
        })?;
        Ok((id, host.root.join(order.directory.as_str())))
    });
    let not_started = |failure: Failure| {
        report_not_started(&host.host.gate, change, &failure.message);
        failure
    };
    let (order, directory) = prepared.await.map_err(not_started)?;
    let program = &host.host.program;
    let mut command = Command::new(program);
    // The guardian ends the command, and what it leaves behind, with this process.
    command.args(["under-gate", "agent", &std::process::id().to_string()]).arg(program).args(["call", &order]);
    if reads_input {
        command.arg("--stdin");
    }
    command.current_dir(&directory).env(MARK, change.to_string()).env_remove(TOKEN_VARIABLE);
    for variable in host.host.agent_sessions.key_variables() {
        command.env_remove(variable);
    }
    let stdin = if reads_input { Stdio::piped() } else { Stdio::null() };
    let process = StartedProcess::start(command, stdin).map_err(|error| {
        not_started(
            Failure::new(
                ErrorKind::Unavailable,
                format!("cannot start the command in `{}`: {error}", directory.display()),
            )
            .hint("check that the directory exists and can be entered"),
        )
    })?;
    // Without an entry, the change stays open if the engine is killed before the command ends.
    let entry = host.host.agents.register_process(process.id, change, &host.host.journal).ok();
    host.host.agent_sessions.start_running(change);
    let (engine, mut state) = (Arc::clone(&host.host), process.state());
    let live = Arc::clone(&host.live);
    tokio::spawn(async move {
        let code = match state.wait_for(|state| *state != ProcessState::Running).await.map(|state| state.clone()) {
            Ok(ProcessState::Exited { code }) => Some(code),
            _ => None,
        };
        let report = engine.calls.take_report(&order);
        let code = report.and_then(|report| report.code).or(code);
        if let Err(failure) = finish(&engine, change, code).await {
            tracing::warn!(change, reason = failure.message, "cannot record the end of a command");
        }
        if let Some(entry) = entry {
            entry.unregister();
        }
        engine.agent_sessions.stop_running(change);
        // A poll returns the end before the command is forgotten.
        drop(live);
    });
    Ok(process)
}

/// Polls, feeds or kills a background command.
pub(super) async fn continue_session(host: &SessionHost, step: SessionStep, output: OutputSink) -> CommandResult {
    let found = host.live.commands.state().running.get(&step.session).cloned();
    let Some(RunningCommand { process, change }) = found else {
        let known: Vec<String> = host.live.commands.state().running.keys().cloned().collect();
        let known =
            if known.is_empty() { "none is running".to_owned() } else { format!("running: {}", known.join(", ")) };
        let message = format!("there is no background command `{}`; {known}", step.session);
        return not_run(ActionResult { change: None, outcome: ActionOutcome::Failed, message });
    };
    process.set_sink(Some(output));
    let waited = match step.action {
        SessionAction::Poll { wait } => process.wait(wait).await,
        SessionAction::Write { input, wait } => match process.write(&input).await {
            Ok(()) => process.wait(wait).await,
            Err(error) => {
                process.set_sink(None);
                let message = format!("cannot write to its standard input: {error}");
                let action = ActionResult { change: Some(change), outcome: ActionOutcome::Failed, message };
                return CommandResult { end: Some(CommandEnd::Running { session: step.session }), ..not_run(action) };
            }
        },
        SessionAction::Kill => {
            process.kill();
            process.wait(KILL_LIMIT).await
        }
    };
    process.set_sink(None);
    let end = match waited {
        Some(state) => {
            host.live.commands.state().running.remove(&step.session);
            ended(state)
        }
        None => CommandEnd::Running { session: step.session },
    };
    let action = ActionResult { change: Some(change), outcome: ActionOutcome::Applied, message: String::new() };
    result(action, end, &process)
}

/// Records the end of a permitted change that the host did not perform.
pub(super) fn report_end(host: &SessionHost, call: &CallOrigin, change: Option<ChangeId>, end: &CommandEnd) {
    host.live.commands.state().permits.remove(&call.call);
    let Some(change) = change else { return };
    let engine = Arc::clone(&host.host);
    let end = end.clone();
    tokio::spawn(async move {
        let recorded = match end {
            CommandEnd::Failed { message } => {
                on_thread(&engine, move |host| {
                    report_not_started(&host.gate, change, &message);
                    Ok(())
                })
                .await
            }
            CommandEnd::Exited { code } => finish(&engine, change, Some(code)).await,
            CommandEnd::Signaled { signal } => finish(&engine, change, Some(128 + signal)).await,
            CommandEnd::TimedOut | CommandEnd::Running { .. } | CommandEnd::Sent => finish(&engine, change, None).await,
        };
        if let Err(failure) = recorded {
            tracing::warn!(change, reason = failure.message, "cannot record the end of a permitted change");
        }
    });
}
