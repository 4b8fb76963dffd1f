//! `sayso hook`: answers an agent's hook.
//!
//! An agent lets a call through if its hook fails. Every path here ends with an answer: without a verdict, a denial; and if that cannot
//! be printed, exit code 2, which denies as well.

pub(crate) mod own_rules;
mod own_shell;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, HookContext, HookEvent, HookResponse, PendingObserver, Permission};
use sayso_api::LocalStream;
use sayso_api::client::{Client, ClientError, Connection, Dial, RetryBudget};
use sayso_review::{ChangeId, ErrorKind};
use sayso_server::EngineSocket;
use sayso_server::agent_registry::{AgentRegistry, Registration};
use serde_json::Value;

use crate::cli::HookArguments;
use crate::config::{self, Config, OnFailure};
use crate::engine::runtime;
use crate::error::CliError;
use crate::output::say;
use crate::workspace_location::{WorkspaceLocation, now, state_home};

/// Variables by which `sayso run` names the workspace and its journal.
pub(crate) const WORKSPACE_VARIABLE: &str = "SAYSO_WORKSPACE";
pub(crate) const JOURNAL_VARIABLE: &str = "SAYSO_JOURNAL";

/// Size of the largest input.
const MAX_INPUT_BYTES: u64 = 64 << 20;
/// Time for a lost engine to come back.
const RETRY_TIME: Duration = Duration::from_secs(5);
/// Time for everything but the person's decision.
const GRACE_PERIOD: Duration = Duration::from_secs(3);
/// Exit code that denies in every agent.
const DENY_CODE: u8 = 2;

pub(crate) fn run(arguments: &HookArguments) -> ExitCode {
    // On a thread of its own: a panic, an agent that never closes its input, or an engine that accepts no connection would end without
    // an answer.
    let (sender, receiver) = channel();
    let timeout = Duration::from_secs(arguments.timeout).saturating_add(GRACE_PERIOD * 2);
    let own = arguments.clone();
    let started = std::thread::Builder::new().spawn(move || sender.send(answer(&own)));
    let answered = match started {
        Ok(_) => receiver.recv_timeout(timeout),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let reason = match answered {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(CliError::BrokenPipe)) => "the verdict could not be printed".to_owned(),
        Ok(Err(error)) => error.message_with_hint(),
        Err(RecvTimeoutError::Timeout) => "neither the agent's input nor a verdict came in time".to_owned(),
        Err(RecvTimeoutError::Disconnected) => "the hook panicked".to_owned(),
    };
    say(&format!("sayso could not be asked, so this is denied: {reason}"));
    ExitCode::from(DENY_CODE)
}

fn answer(arguments: &HookArguments) -> Result<(), CliError> {
    let agent = Agent::parse_with_hooks(&arguments.agent)
        .map_err(|error| CliError::new(error.kind(), error.to_string()).hint(error.hint()))?;
    let mut input = Vec::new();
    std::io::stdin()
        .take(MAX_INPUT_BYTES)
        .read_to_end(&mut input)
        .map_err(|error| CliError::io("cannot read the hook's input", &error))?;
    let call = HookCall::parse(agent, &input)
        .map_err(|error| CliError::new(error.kind(), error.to_string()).hint(error.hint()))?;
    let answered = ask(&call, arguments);
    // A hook after a call is the first notice that the agent's command has ended.
    if answered.is_ok()
        && let (Ok((root, folder)), Ok(home)) = (records_of(&call), state_home())
    {
        config::inspect(&WorkspaceLocation { root, folder, home });
    }
    let output = match &answered {
        Ok(answered) => answered.response.output.clone(),
        Err(HookFailure::Unreachable(error)) => failure_output(&call, error, on_failure(&call))?,
        // An engine that refuses was reached, so that `on_failure` does not apply.
        Err(HookFailure::Refused(error)) => failure_output(&call, error, OnFailure::Deny)?,
    };
    let mut text = output.to_string();
    text.push('\n');
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| CliError::BrokenPipe)?;
    if let Ok(answered) = answered {
        answered.acknowledge(&call);
    }
    Ok(())
}

/// A response, with the connection to the engine that gave it.
struct Answered {
    runtime: tokio::runtime::Runtime,
    client: Client,
    response: HookResponse,
}

impl Answered {
    /// Marks the printed messages as delivered.
    fn acknowledge(self, call: &HookCall) {
        let acknowledged =
            async { tokio::time::timeout(GRACE_PERIOD, call.acknowledge(&self.client, &self.response)).await };
        // On failure, the next hook delivers them once more.
        let _ = self.runtime.block_on(acknowledged);
    }
}

/// Returns the output for a call without a verdict.
fn failure_output(call: &HookCall, error: &CliError, wanted: OnFailure) -> Result<Value, CliError> {
    if matches!(error, CliError::BrokenPipe) {
        return Err(CliError::BrokenPipe);
    }
    if !matches!(call.event, HookEvent::PreToolUse { .. }) {
        // Only a call that has not started can be denied.
        say(&format!("note: {}", error.message_with_hint()));
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let hint = error.hint_text().map(|hint| format!(" For the user: {hint}.")).unwrap_or_default();
    let permission = match wanted {
        OnFailure::Deny => {
            Permission::Deny { reason: format!("sayso: {}, so nothing was done.{hint}", error.message()) }
        }
        OnFailure::Ask => Permission::Ask,
        OnFailure::Allow => Permission::Abstain,
    };
    Ok(call.permission_output(&permission, None))
}

/// Reads `on_failure` of the workspace's configuration. Denies if it cannot be read.
fn on_failure(call: &HookCall) -> OnFailure {
    let location =
        records_of(call).and_then(|(root, folder)| Ok(WorkspaceLocation { root, folder, home: state_home()? }));
    let config = location.and_then(|location| Config::load(&location));
    config.map_or(OnFailure::Deny, |config| config.on_failure.value)
}

/// Returns the root and the records folder of the workspace: as `sayso run` names them, or around the agent's directory.
fn records_of(call: &HookCall) -> Result<(PathBuf, PathBuf), CliError> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let (Some(root), Some(journal)) = (variable(WORKSPACE_VARIABLE), variable(JOURNAL_VARIABLE)) {
        return Ok((root, journal));
    }
    let home = state_home()?;
    let directory = Path::new(&call.cwd).canonicalize().map_err(|error| {
        CliError::invalid_input(format!("cannot use the agent's directory `{}`", call.cwd)).caused_by(&error)
    })?;
    let location = WorkspaceLocation::around(&directory, &home);
    Ok((location.root, location.folder))
}

fn ask(call: &HookCall, arguments: &HookArguments) -> Result<Answered, HookFailure> {
    let (root, journal) = records_of(call)?;
    let socket = EngineSocket::new(&journal);
    let registry = state_home().ok().map(|home| AgentRegistry::new(&home));
    // During a takeover no engine runs for a moment.
    let is_taken_over = || registry.as_ref().is_some_and(|registry| socket.takeover_requested(registry).is_some());
    if !matches!(socket.connect(), Ok(Some(_))) && !is_taken_over() {
        let message = format!("no engine runs for {}", root.display());
        return Err(CliError::new(ErrorKind::Unavailable, message)
            .hint("start the agent with `sayso run`, or run `sayso serve` there")
            .into());
    }
    let runtime = runtime()?;
    let client = Client::new(Arc::new(RunningEngine(socket)), None).with_retry_budget(RetryBudget::Limited(RETRY_TIME));
    let context = HookContext {
        root: root.to_string_lossy().into_owned(),
        timeout: Duration::from_secs(arguments.timeout),
        turn: format!("turn-{}", now()),
        program: own_program(),
        own_rules: own_rules::read(call, &root),
        runs_in_place: own_shell::is_needed,
    };
    let mut observer = RegisteringObserver { registry, journal, registration: None };
    let timeout = context.timeout + GRACE_PERIOD;
    let response =
        runtime.block_on(async { tokio::time::timeout(timeout, call.respond(&client, &context, &mut observer)).await });
    let response = response.map_err(|_| {
        HookFailure::Unreachable(
            CliError::new(ErrorKind::Unavailable, "the engine does not answer").hint("`sayso doctor` shows it"),
        )
    })?;
    // After a failure the registration stays, so that the engine withdraws the change.
    if let (Ok(_), Some(registration)) = (&response, observer.registration) {
        registration.unregister();
    }
    let response = response.map_err(|error| {
        let is_unreachable = matches!(error, ClientError::Unreachable { .. });
        let error = CliError::from(error);
        if is_unreachable { HookFailure::Unreachable(error) } else { HookFailure::Refused(error) }
    })?;
    Ok(Answered { runtime, client, response })
}

/// Returns the path of this program. `None` if it cannot stand between single quotes in a shell.
fn own_program() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    path.to_str().filter(|path| !path.contains(['\'', '\n'])).map(str::to_owned)
}

/// The reason why there is no verdict.
enum HookFailure {
    Unreachable(CliError),
    /// The engine's own answer.
    Refused(CliError),
}

impl From<CliError> for HookFailure {
    fn from(error: CliError) -> Self {
        Self::Unreachable(error)
    }
}

/// Dials a running engine. A hook starts none, because it would end with the hook.
#[derive(Debug)]
pub(crate) struct RunningEngine(pub(crate) EngineSocket);

impl Dial for RunningEngine {
    fn dial(&self) -> BoxFuture<'static, std::io::Result<Connection>> {
        let socket = self.0.clone();
        async move {
            let gone = || std::io::Error::new(std::io::ErrorKind::NotFound, "it ended while this waited");
            let stream = socket.connect()?.ok_or_else(gone)?;
            Ok(Box::new(LocalStream::new(stream)?) as Connection)
        }
        .boxed()
    }
}

/// Registers each pending change, so that the engine withdraws it if this process is killed.
struct RegisteringObserver {
    registry: Option<AgentRegistry>,
    journal: PathBuf,
    registration: Option<Registration>,
}

impl PendingObserver for RegisteringObserver {
    fn on_pending(&mut self, change: ChangeId) {
        if let Some(registration) = self.registration.take() {
            registration.unregister();
        }
        // Without a registration, the change is pending until its deadline.
        self.registration =
            self.registry.as_ref().and_then(|registry| registry.register(Some(change), &self.journal).ok());
    }
}
