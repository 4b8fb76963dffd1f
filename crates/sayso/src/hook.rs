//! `sayso hook`: called by another agent before and after it does something.
//!
//! The agents let through what a hook fails at, so that nothing here ends without an answer: what cannot be asked about is denied,
//! and where not even that can be printed, exit code 2 says so.

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
use sayso_adapters::hook::{Agent, Context, HookCall, HookEvent, HookResponse, Pending, Permission};
use sayso_api::LocalStream;
use sayso_api::client::{Client, ClientError, Connection, Dial, Patience};
use sayso_review::{ChangeId, ErrorKind};
use sayso_server::EnginePlace;
use sayso_server::agents::{Notes, Registered};
use serde_json::Value;

use crate::cli::HookArguments;
use crate::config::{self, Config, OnFailure};
use crate::failure::Failure;
use crate::output::say;
use crate::state::{State, now, state_home};

/// The variables by which `sayso run` tells hooks where they are.
pub(crate) const WORKSPACE: &str = "SAYSO_WORKSPACE";
pub(crate) const JOURNAL: &str = "SAYSO_JOURNAL";

/// No tool's arguments are larger.
const LARGEST: u64 = 64 << 20;
/// How long an engine that went away is waited for.
const RETURN: Duration = Duration::from_secs(5);
/// How much longer than a person everything else may take.
const GRACE: Duration = Duration::from_secs(3);
/// What denies in every agent.
const DENIES: u8 = 2;

pub(crate) fn run(arguments: &HookArguments) -> ExitCode {
    // On a thread of its own: a panic would let through what it was about to judge, and so would an agent that never ends its input, or
    // an engine that takes no connection.
    let (tell, told) = channel();
    let (own, most) = (arguments.clone(), Duration::from_secs(arguments.timeout).saturating_add(GRACE * 2));
    let answering = std::thread::Builder::new().spawn(move || tell.send(answer(&own)));
    let answered = match answering {
        Ok(_) => told.recv_timeout(most),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let why = match answered {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(Failure::Told { what, why, hint, .. })) => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{what}{why}{hint}")
        }
        Ok(Err(Failure::BrokenPipe)) => "the verdict could not be printed".to_owned(),
        Err(RecvTimeoutError::Timeout) => "neither the agent's input nor a verdict came in time".to_owned(),
        Err(RecvTimeoutError::Disconnected) => "a fault of sayso".to_owned(),
    };
    say(&format!("sayso could not be asked, so this is denied: {why}"));
    ExitCode::from(DENIES)
}

fn answer(arguments: &HookArguments) -> Result<(), Failure> {
    let agent: Agent = arguments.agent.parse().map_err(|error: sayso_adapters::hook::UnknownAgent| {
        Failure::bad_input(error.to_string()).hint(error.hint())
    })?;
    let mut input = Vec::new();
    std::io::stdin()
        .take(LARGEST)
        .read_to_end(&mut input)
        .map_err(|error| Failure::bad_input("the hook's input could not be read").why(&error))?;
    let call = HookCall::parse(agent, &input)
        .map_err(|error| Failure::of(error.kind(), error.to_string()).hint(error.hint()))?;
    let answered = ask(&call, arguments);
    // Of whatever the agent ran, this is when its end is heard of. Before it ran, the engine took up what the user had configured.
    if answered.is_ok()
        && let (Ok((root, folder)), Ok(home)) = (place(&call), state_home())
    {
        config::inspect(&State { root, folder, home });
    }
    let output = match &answered {
        Ok(answered) => answered.response.output.clone(),
        Err(Asking::Unreachable(failure)) => failed(&call, failure, on_failure(&call))?,
        // What is refused is refused, whatever is to happen where nobody can be asked.
        Err(Asking::Refused(failure)) => failed(&call, failure, OnFailure::Deny)?,
    };
    let mut text = output.to_string();
    text.push('\n');
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| Failure::BrokenPipe)?;
    if let Ok(answered) = answered {
        answered.acknowledge(&call);
    }
    Ok(())
}

/// An answer, with the way back to the engine that gave it.
struct Answered {
    runtime: tokio::runtime::Runtime,
    client: Client,
    response: HookResponse,
}

impl Answered {
    /// Records what the agent has heard, now that it is printed.
    fn acknowledge(self, call: &HookCall) {
        let told = async { tokio::time::timeout(GRACE, call.acknowledge(&self.client, &self.response)).await };
        // A message whose delivery cannot be recorded is delivered once more, with the next hook.
        let _ = self.runtime.block_on(told);
    }
}

/// What to print where the engine cannot be asked.
fn failed(call: &HookCall, failure: &Failure, wanted: OnFailure) -> Result<Value, Failure> {
    let Failure::Told { what, why, hint, .. } = failure else { return Err(Failure::BrokenPipe) };
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let reason = format!("sayso: {what}{why}, so nothing was done.");
    if !matches!(call.event, HookEvent::Before { .. }) {
        // Nothing is about to happen that could be denied.
        let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        say(&format!("note: {what}{why}{hint}"));
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let hint = hint.as_ref().map(|hint| format!(" For the user: {hint}.")).unwrap_or_default();
    let permission = match wanted {
        OnFailure::Deny => Permission::Deny { reason: format!("{reason}{hint}") },
        OnFailure::Ask => Permission::Ask,
        OnFailure::Allow => Permission::Abstain,
    };
    Ok(call.answer(&permission, None))
}

/// What the user wants where nobody can be asked; what cannot be read says no.
fn on_failure(call: &HookCall) -> OnFailure {
    // Of the workspace that would have been asked, wherever in it the agent is.
    let config = place(call).and_then(|(root, folder)| Config::load(&State { root, folder, home: state_home()? }));
    config.map_or(OnFailure::Deny, |config| config.on_failure.value)
}

/// Where the engine is: where `sayso run` says, or that of the workspace that the agent works in.
fn place(call: &HookCall) -> Result<(PathBuf, PathBuf), Failure> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let (Some(root), Some(journal)) = (variable(WORKSPACE), variable(JOURNAL)) {
        return Ok((root, journal));
    }
    let home = state_home()?;
    let here = Path::new(&call.cwd).canonicalize().map_err(|error| {
        Failure::bad_input(format!("the agent's directory `{}` cannot be used", call.cwd)).why(&error)
    })?;
    let state = State::around(&here, &home);
    Ok((state.root, state.folder))
}

fn ask(call: &HookCall, arguments: &HookArguments) -> Result<Answered, Asking> {
    let (root, journal) = place(call)?;
    let engine = EnginePlace::new(&journal);
    let none = || {
        Failure::of(ErrorKind::Unavailable, format!("no engine runs for {}", root.display()))
            .hint("start the agent with `sayso run`, or run `sayso serve` there")
    };
    let notes = state_home().ok().map(|home| Notes::new(&home));
    // While one engine hands over to another there is none, and soon will be.
    let handed_over = || notes.as_ref().is_some_and(|notes| engine.wanted(notes).is_some());
    if !matches!(engine.connect(), Ok(Some(_))) && !handed_over() {
        return Err(none().into());
    }
    let system = |error: std::io::Error| Failure::bad_input("the engine cannot be asked").why(&error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let client = Client::new(Arc::new(Running(engine)), None).with_patience(Patience::For(RETURN));
    let context = Context {
        root: root.to_string_lossy().into_owned(),
        patience: Duration::from_secs(arguments.timeout),
        turn: format!("turn-{}", now()),
        program: own_program(),
        own_rules: own_rules::read(call, &root),
        runs_in_place: own_shell::is_needed,
    };
    let mut noted = Noted { notes, journal, registered: None };
    // Whatever hangs, the agent gets its answer before it no longer waits for one.
    let most = context.patience + GRACE;
    let answer =
        runtime.block_on(async { tokio::time::timeout(most, call.respond(&client, &context, &mut noted)).await });
    let answer = answer.map_err(|_| {
        Asking::Unreachable(
            Failure::of(ErrorKind::Unavailable, "the engine does not answer").hint("`sayso doctor` shows it"),
        )
    })?;
    // Should this have failed, the note has what waits withdrawn.
    if let (Ok(_), Some(registered)) = (&answer, noted.registered) {
        registered.finished();
    }
    let response = answer.map_err(|error| {
        let unreachable = matches!(error, ClientError::Unreachable { .. });
        let failure = Failure::of(error.kind(), error.to_string());
        let failure = match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
        if unreachable { Asking::Unreachable(failure) } else { Asking::Refused(failure) }
    })?;
    Ok(Answered { runtime, client, response })
}

/// The path of this program, unless a shell cannot be given it between single quotes.
fn own_program() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    path.to_str().filter(|path| !path.contains(['\'', '\n'])).map(str::to_owned)
}

/// Why there is no verdict.
enum Asking {
    /// The engine could not be asked.
    Unreachable(Failure),
    /// It was asked, and that was its answer.
    Refused(Failure),
}

impl From<Failure> for Asking {
    fn from(failure: Failure) -> Self {
        Self::Unreachable(failure)
    }
}

/// The engine of a workspace, which a hook never starts: it would end with the hook.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) EnginePlace);

impl Dial for Running {
    fn dial(&self) -> BoxFuture<'static, std::io::Result<Connection>> {
        let place = self.0.clone();
        async move {
            let gone = || std::io::Error::new(std::io::ErrorKind::NotFound, "it ended while this waited");
            let stream = place.connect()?.ok_or_else(gone)?;
            Ok(Box::new(LocalStream::new(stream)?) as Connection)
        }
        .boxed()
    }
}

/// Notes what waits, so that it does not wait for ever should this process be killed.
struct Noted {
    notes: Option<Notes>,
    journal: PathBuf,
    registered: Option<Registered>,
}

impl Pending for Noted {
    fn waits(&mut self, change: ChangeId) {
        if let Some(registered) = self.registered.take() {
            registered.finished();
        }
        // Without it, the change waits until its deadline.
        self.registered = self.notes.as_ref().and_then(|notes| notes.register(Some(change), &self.journal).ok());
    }
}
