//! `sayso run`: runs an agent under the gate.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread::JoinHandle;

use sayso_adapters::Agent;
use sayso_adapters::hook::{
    TIMEOUT_SECONDS, claude_settings_with, codex_arguments, codex_trust_advice, codex_trust_keys, disabling_argument,
};
use sayso_api::client::{ClientError, RetryBudget, Role, StatusDetail};
use sayso_present::escape::quote_for_shell;
use sayso_review::{ErrorKind, OutsidePath};
use sayso_server::agent_registry::{AgentRegistry, MARK, Registration};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agents::registration_error;
use crate::child;
use crate::cli::RunArguments;
use crate::config;
use crate::endpoint::RunEndpoint;
use crate::engine::{EngineConnection, runtime};
use crate::error::{CliError, REFUSED};
use crate::hook::{JOURNAL_VARIABLE, WORKSPACE_VARIABLE, own_rules};
use crate::output::say;
use crate::settings::report_unconfirmed_rules;
use crate::under_gate;
use crate::workspace_location::WorkspaceLocation;

/// Seconds between our answer to a hook and the agent's time-out.
const HOOK_MARGIN_SECONDS: u32 = 60;
/// Exit code of a program that SIGKILL ended.
const KILLED: i32 = 137;
/// First arguments with which an agent prints information and exits.
const INFORMATION_OPTIONS: [&str; 5] = ["--version", "-v", "-V", "--help", "-h"];

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, CliError> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(CliError::invalid_input("there is no agent to run").hint("such as `sayso run -- claude`"));
    };
    let agent = agent_of(program)?;
    let path = find_program(program)?;
    if rest.first().is_some_and(|word| INFORMATION_OPTIONS.contains(&word.as_str())) {
        return print_information(&path, rest);
    }
    if agent.has_hooks() {
        check_hooks(agent, rest)?;
    }
    let location = WorkspaceLocation::find(&arguments.common)?;
    location.announce();
    report_unconfirmed_rules(&location);
    let words = if agent.has_hooks() { with_hooks(agent, rest, &hook_command(agent)?)? } else { rest.to_vec() };
    let engine = EngineConnection::open(&location)?;
    let endpoint = RunEndpoint::open(&engine, &location, agent)?;
    let words = [endpoint.settings().arguments.clone(), words].concat();
    let registry = AgentRegistry::new(&location.home);
    let registration =
        registry.register_run(agent.name(), &location.folder).map_err(|error| registration_error(&error))?;
    if agent.has_hooks() {
        registration.grant_directories(&added_folders(agent, rest)).map_err(|error| registration_error(&error))?;
    }
    announce(agent, &location);
    let guard = EngineGuard::start(&engine)?;
    let code = spawn(&path, &words, &endpoint.settings().variables, &location, &registration);
    guard.stop();
    let closed = endpoint.close(&engine);
    let sessions = agent.has_hooks().then(|| end_sessions(&engine, &registration));
    config::inspect(&location);
    let left = registration.detach();
    if !left.is_empty() {
        say(&format!("sayso: {}", child::still_running(&left)));
    }
    let code = code?;
    closed?;
    if sessions.transpose()? == Some(0) {
        say(&format!("warning: {agent} called no hook, so that nothing it did was under the gate"));
        if agent == Agent::Codex {
            say(codex_trust_advice());
        }
        return Ok(ExitCode::from(if code == 0 { REFUSED } else { u8::try_from(code).unwrap_or(1) }));
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn announce(agent: Agent, location: &WorkspaceLocation) {
    let root = location.root.display();
    if agent.has_hooks() {
        say(&format!("sayso: {agent} runs under the gate in {root}"));
        say("sayso: decide in another terminal: sayso review --follow");
    } else {
        say(&format!("sayso: {agent}'s requests come through sayso in {root}"));
        say(&format!("warning: sayso has no hooks of {agent} yet: what it writes and runs is not asked about"));
    }
    say("sayso: its requests wait if you say so: sayso request mode pause-next");
}

/// Returns the existing directories that the user grants to the agent by its arguments.
fn added_folders(agent: Agent, rest: &[String]) -> Vec<OutsidePath> {
    let real = |folder: &str| Path::new(folder).canonicalize().ok();
    let named = agent.added_folders(rest).into_iter().filter_map(real);
    named.filter_map(|folder| OutsidePath::parse(folder.to_str()?).ok()).collect()
}

/// Keeps an engine running while the agent runs. If the present one ends with its process, the next dial starts one here.
struct EngineGuard {
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl EngineGuard {
    fn start(engine: &EngineConnection) -> Result<Self, CliError> {
        let (stop, runtime, client) = (Arc::new(Notify::new()), runtime()?, engine.locator().client());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let last = client.status(StatusDetail::Counts).await.map_or(0, |status| status.last_event);
                let mut watch = client.watch(last, Role::Observer, RetryBudget::Unlimited);
                let follow = async { while watch.next().await.is_ok() {} };
                tokio::select! {
                    () = follow => {}
                    () = stopped.notified() => {}
                }
            });
        });
        Ok(Self { stop, thread })
    }

    fn stop(self) {
        self.stop.notify_one();
        let _ = self.thread.join();
    }
}

/// Returns the path of a program. Checked first, so that a missing agent is reported before anything starts.
pub(crate) fn find_program(program: &str) -> Result<PathBuf, CliError> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        if is_program(&path) {
            return Ok(path);
        }
        return Err(CliError::invalid_input(format!("there is no program `{program}`"))
            .hint("check that it is installed there"));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(program));
    paths.find(|path| is_program(path)).ok_or_else(|| {
        CliError::invalid_input(format!("there is no program `{program}` on the PATH"))
            .hint("install it, or name it with its path: `sayso run -- /path/to/claude`")
    })
}

fn start_error(program: &Path, error: &std::io::Error) -> CliError {
    CliError::io(format!("cannot start `{}`", program.display()), error).hint("check that it is installed")
}

/// Runs an agent outside the gate to print its version or help.
fn print_information(program: &Path, rest: &[String]) -> Result<ExitCode, CliError> {
    let status = Command::new(program).args(rest).status().map_err(|error| start_error(program, &error))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

fn agent_of(program: &str) -> Result<Agent, CliError> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    name.parse().map_err(|_| {
        CliError::invalid_input(format!("sayso does not know the agent `{name}`")).hint(
            "it runs claude, codex, gemini, copilot and opencode; for single commands of any program there is `sayso exec`",
        )
    })
}

/// Refuses arguments and settings with which the agent would call no hooks.
fn check_hooks(agent: Agent, rest: &[String]) -> Result<(), CliError> {
    let refuse = |setting: &str| {
        let message = format!("`{setting}` keeps {agent} from calling hooks, so that nothing would be asked");
        CliError::new(ErrorKind::ToolDenied, message).hint(format!("leave it out, or run {agent} without sayso"))
    };
    if let Some(argument) = disabling_argument(agent, rest) {
        return Err(refuse(argument));
    }
    if agent == Agent::Claude
        && std::env::var_os("CLAUDE_CODE_SAFE_MODE").is_some_and(|value| !value.is_empty() && value != "0")
    {
        return Err(refuse("CLAUDE_CODE_SAFE_MODE"));
    }
    // Without a terminal, Codex cannot ask if it may trust a hook, and skips it.
    let is_headless = rest.iter().any(|word| word == "exec" || word == "e");
    let bypasses_trust = rest.iter().any(|word| word == "--dangerously-bypass-hook-trust");
    if agent == Agent::Codex && !codex_trusts_hooks() && !bypasses_trust {
        if is_headless {
            let message = "Codex has not been told to trust sayso's hooks, and `codex exec` would leave them out";
            return Err(CliError::new(ErrorKind::ToolDenied, message).hint(codex_trust_advice()));
        }
        say(&format!("note: {}", codex_trust_advice()));
    }
    Ok(())
}

/// `true` if Codex trusts hooks at the places of sayso's. Codex itself compares their text with the trusted one; if it differs, it calls
/// no hook, and the run reports that at its end.
pub(crate) fn codex_trusts_hooks() -> bool {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(home) = absolute("CODEX_HOME").or_else(|| absolute("HOME").map(|home| home.join(".codex"))) else {
        return false;
    };
    let config = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
    let Ok(config) = config.parse::<toml::Table>() else { return false };
    let states = config.get("hooks").and_then(|hooks| hooks.get("state"));
    codex_trust_keys().all(|key| {
        let state = states.and_then(|states| states.get(&key));
        let field = |name: &str| state.and_then(|state| state.get(name));
        let is_enabled = field("enabled").and_then(toml::Value::as_bool) != Some(false);
        is_enabled && field("trusted_hash").and_then(toml::Value::as_str).is_some_and(|hash| !hash.is_empty())
    })
}

/// Returns the command of the agent's hooks. It is always the same, because Codex trusts a hook by its text.
fn hook_command(agent: Agent) -> Result<String, CliError> {
    let program = std::env::current_exe().map_err(|error| CliError::io("cannot find the path of sayso", &error))?;
    let program = program.to_str().ok_or_else(|| {
        CliError::invalid_input(format!("the path of sayso `{}` is not UTF-8", program.display()))
            .hint("install it elsewhere")
    })?;
    let timeout = TIMEOUT_SECONDS - HOOK_MARGIN_SECONDS;
    Ok(format!("{} hook {} --timeout {timeout}", quote_for_shell(program), agent.name()))
}

/// Returns the agent's arguments with sayso's hooks.
fn with_hooks(agent: Agent, rest: &[String], command: &str) -> Result<Vec<String>, CliError> {
    if agent == Agent::Codex {
        return Ok([codex_arguments(command), rest.to_vec()].concat());
    }
    let mut words = Vec::new();
    let mut settings = json!({});
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        // Claude Code uses the last `--settings` only, so that the user's own are merged into ours.
        let given = match word.strip_prefix("--settings=") {
            Some(given) => Some(given.to_owned()),
            None if word == "--settings" => rest.next().cloned(),
            None if word == "--" => {
                words.push(word.clone());
                words.extend(rest.by_ref().cloned());
                None
            }
            None => {
                words.push(word.clone());
                None
            }
        };
        if let Some(given) = given {
            settings = read_settings(&given)?;
        }
    }
    let settings = claude_settings_with(settings, command).to_string();
    Ok([vec!["--settings".to_owned(), settings], words].concat())
}

/// Reads the user's `--settings`: a file or JSON.
fn read_settings(given: &str) -> Result<Value, CliError> {
    let bad = || CliError::invalid_input(format!("cannot read `--settings {given}`")).hint("give a file of JSON");
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).map_err(|error| bad().caused_by(&error))?
    };
    serde_json::from_str(&text).map_err(|error| bad().caused_by(&error))
}

/// Runs the agent in our terminal, and returns its exit code.
fn spawn(
    program: &Path,
    words: &[String],
    variables: &[(String, String)],
    location: &WorkspaceLocation,
    registration: &Registration,
) -> Result<i32, CliError> {
    let own: [(&str, OsString); 4] = [
        (MARK, "run".into()),
        (WORKSPACE_VARIABLE, location.root.clone().into()),
        (JOURNAL_VARIABLE, location.folder.clone().into()),
        (own_rules::VARIABLE, own_rules::of_arguments(words).into()),
    ];
    let mut command = child::guarded(program);
    let variables = variables.iter().map(|(name, value)| (name, value));
    // The token of the server is for persons.
    command.args(words).env_remove("SAYSO_AUTH_TOKEN").envs(variables).envs(own);
    let code = child::run(&mut command, |child| registration.track_child(child))
        .map_err(|error| start_error(program, &error))?;
    if code == KILLED {
        // If the agent killed its guardian, the processes that the guardian would have ended are our descendants now.
        under_gate::end_all(None);
    }
    Ok(code)
}

/// Ends the sessions of this run, and returns their number.
fn end_sessions(engine: &EngineConnection, registration: &Registration) -> Result<usize, CliError> {
    let sessions =
        registration.sessions().map_err(|error| CliError::io("cannot read the sessions of the run", &error))?;
    let mut failed = None;
    for session in &sessions {
        match engine.wait(engine.client().end_session(session)) {
            // The engine does not know a session without recorded events.
            Ok(()) | Err(ClientError::Remote(_)) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sessions.len()), |error| Err(error.into()))
}
