//! `sayso run`: another agent under the gate.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread::JoinHandle;

use sayso_adapters::hook::{
    Agent, TIMEOUT_SECONDS, claude_settings_with, codex_arguments, codex_trust_advice, codex_trust_keys,
    switches_hooks_off,
};
use sayso_adapters::traffic::Speaker;
use sayso_api::client::{ClientError, Extent, Patience, Role};
use sayso_review::{ErrorKind, OutsidePath};
use sayso_server::agents::{MARK, Notes, Registered};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::child;
use crate::cli::RunArguments;
use crate::config;
use crate::engine::{Connected, runtime};
use crate::failure::Failure;
use crate::hook::{JOURNAL, WORKSPACE, own_rules};
use crate::output::say;
use crate::settings::tell_of_unconfirmed_rules;
use crate::state::{REFUSED, State};
use crate::traffic::Entrance;
use crate::under_gate;

/// Seconds between our answer and the moment in which the agent no longer waits for it.
const MARGIN: u32 = 60;

/// The exit code of a program that SIGKILL has ended.
const KILLED: i32 = 137;

/// What, coming first, has an agent print something and end.
const INFORMS: [&str; 5] = ["--version", "-v", "-V", "--help", "-h"];

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::bad_input("there is no agent to run").hint("such as `sayso run -- claude`"));
    };
    let speaker = known(program)?;
    let hooked = hooks_of(speaker);
    let found = find(program)?;
    if rest.first().is_some_and(|word| INFORMS.contains(&word.as_str())) {
        return inform(&found, rest);
    }
    if let Some(agent) = hooked {
        check(agent, rest)?;
    }
    let state = State::find(&arguments.place)?;
    state.tell_where();
    tell_of_unconfirmed_rules(&state);
    let words = match hooked {
        Some(agent) => with_hooks(agent, rest, &hook_command(agent)?)?,
        None => rest.to_vec(),
    };
    let connected = Connected::to(&state)?;
    let entrance = Entrance::open(&connected, &state, speaker)?;
    let words = [entrance.telling().arguments.clone(), words].concat();
    let notes = Notes::new(&state.home);
    let registered = notes.register_run(speaker.name(), &state.folder).map_err(|error| {
        Failure::bad_input("what runs under the gate cannot be noted").why(&error).hint("look at the disk's free space")
    })?;
    if let Some(agent) = hooked {
        registered.adds(&added_folders(agent, rest)).map_err(|error| {
            Failure::bad_input("the folders of `--add-dir` cannot be noted")
                .why(&error)
                .hint("look at the disk's free space")
        })?;
    }
    let place = state.root.display();
    if hooked.is_some() {
        say(&format!("sayso: {speaker} runs under the gate in {place}"));
        say("sayso: decide in another terminal: sayso review --follow");
    } else {
        say(&format!("sayso: {speaker}'s requests come through sayso in {place}"));
        say(&format!("warning: sayso has no hooks of {speaker} yet: what it writes and runs is not asked about"));
    }
    say("sayso: its requests wait if you say so: sayso request mode pause-next");
    let staying = Staying::new(&connected)?;
    let code = spawn(&found, &words, &entrance.telling().variables, &state, &registered);
    staying.end();
    let closed = entrance.close(&connected);
    // Whatever it was at, it is no longer.
    let sessions = hooked.map(|_| end_sessions(&connected, &registered));
    config::inspect(&state);
    let left = registered.leaves();
    if !left.is_empty() {
        say(&format!("sayso: {}", child::still_running(&left)));
    }
    let code = code?;
    closed?;
    if let (Some(agent), Some(0)) = (hooked, sessions.transpose()?) {
        say(&format!("warning: {agent} called no hook, so that nothing it did was under the gate"));
        if agent == Agent::Codex {
            say(codex_trust_advice());
        }
        return Ok(ExitCode::from(if code == 0 { REFUSED } else { u8::try_from(code).unwrap_or(1) }));
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The folders that the user hands to the agent, as they are. One that is not there is none of them.
fn added_folders(agent: Agent, rest: &[String]) -> Vec<OutsidePath> {
    let real = |folder: &str| Path::new(folder).canonicalize().ok();
    let named = agent.added_folders(rest).into_iter().filter_map(real);
    named.filter_map(|folder| OutsidePath::parse(folder.to_str()?).ok()).collect()
}

/// Keeps an engine there while the agent runs: should it have been in another process that ends, one is started here.
struct Staying {
    over: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Staying {
    fn new(connected: &Connected) -> Result<Self, Failure> {
        let (over, runtime, client) = (Arc::new(Notify::new()), runtime()?, connected.finding().client());
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let last = client.status(Extent::Counts).await.map_or(0, |status| status.last_event);
                let mut watch = client.watch(last, Role::Observer, Patience::Always);
                let follow = async { while watch.next().await.is_ok() {} };
                tokio::select! {
                    () = follow => {}
                    () = told.notified() => {}
                }
            });
        });
        Ok(Self { over, thread })
    }

    fn end(self) {
        self.over.notify_one();
        // It has nothing left to wait for.
        let _ = self.thread.join();
    }
}

/// The program itself, so that what is not there is said before anything else is.
pub(crate) fn find(program: &str) -> Result<PathBuf, Failure> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        if is_program(&path) {
            return Ok(path);
        }
        return Err(Failure::bad_input(format!("there is no program `{program}`")).hint("is it installed there?"));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(program));
    paths.find(|path| is_program(path)).ok_or_else(|| {
        Failure::bad_input(format!("there is no program `{program}` on the PATH"))
            .hint("install it, or name it with its path: `sayso run -- /path/to/claude`")
    })
}

/// Lets an agent say what it is, which is nothing to decide about.
fn inform(program: &Path, rest: &[String]) -> Result<ExitCode, Failure> {
    let failed =
        |error: std::io::Error| Failure::bad_input(format!("`{}` could not be started", program.display())).why(&error);
    let status = Command::new(program).args(rest).status().map_err(failed)?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Which agent a program is.
fn known(program: &str) -> Result<Speaker, Failure> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    name.parse().map_err(|_| {
        Failure::bad_input(format!("sayso does not know the agent `{name}`")).hint(
            "it runs claude, codex, gemini, copilot and opencode; for single commands of any program there is `sayso exec`",
        )
    })
}

/// The agent whose hooks are understood.
pub(crate) fn hooks_of(speaker: Speaker) -> Option<Agent> {
    match speaker {
        Speaker::Claude => Some(Agent::Claude),
        Speaker::Codex => Some(Agent::Codex),
        Speaker::Gemini | Speaker::Copilot | Speaker::Opencode => None,
    }
}

/// Refuses what would run without the gate.
fn check(agent: Agent, rest: &[String]) -> Result<(), Failure> {
    let ungated = |what: &str| {
        Failure::of(
            ErrorKind::ToolDenied,
            format!("`{what}` keeps {agent} from calling hooks, so that nothing would be asked"),
        )
        .hint(format!("leave it out, or run {agent} without sayso"))
    };
    if let Some(argument) = switches_hooks_off(agent, rest) {
        return Err(ungated(argument));
    }
    if agent == Agent::Claude
        && std::env::var_os("CLAUDE_CODE_SAFE_MODE").is_some_and(|value| !value.is_empty() && value != "0")
    {
        return Err(ungated("CLAUDE_CODE_SAFE_MODE"));
    }
    // Without a terminal Codex asks nobody whether it may trust a hook, and leaves it out.
    let silent = rest.iter().any(|word| word == "exec" || word == "e");
    let bypassed = rest.iter().any(|word| word == "--dangerously-bypass-hook-trust");
    if agent == Agent::Codex && !trusts_codex() && !bypassed {
        if silent {
            return Err(Failure::of(
                ErrorKind::ToolDenied,
                "Codex has not been told to trust sayso's hooks, and `codex exec` would leave them out",
            )
            .hint(codex_trust_advice()));
        }
        say(&format!("note: {}", codex_trust_advice()));
    }
    Ok(())
}

/// Whether Codex was told to trust a hook at each place where ours are. That it says what it said then is for Codex to compare; should
/// it not, no hook is called, and the run says so at its end.
pub(crate) fn trusts_codex() -> bool {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(home) = absolute("CODEX_HOME").or_else(|| absolute("HOME").map(|home| home.join(".codex"))) else {
        return false;
    };
    let config = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
    // What cannot be read, Codex cannot read either.
    let Ok(config) = config.parse::<toml::Table>() else { return false };
    let states = config.get("hooks").and_then(|hooks| hooks.get("state"));
    codex_trust_keys().all(|key| {
        let state = states.and_then(|states| states.get(&key));
        let field = |name: &str| state.and_then(|state| state.get(name));
        let is_on = field("enabled").and_then(toml::Value::as_bool) != Some(false);
        is_on && field("trusted_hash").and_then(toml::Value::as_str).is_some_and(|hash| !hash.is_empty())
    })
}

/// The command that the agent's hooks run: the same every time, since Codex trusts it by its text.
fn hook_command(agent: Agent) -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::bad_input("sayso does not know where it is itself").why(&error))?;
    let program = program.to_str().ok_or_else(|| {
        Failure::bad_input(format!("sayso's own path `{}` is not UTF-8", program.display()))
            .hint("install it elsewhere")
    })?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./".contains(character);
    let program =
        if program.chars().all(plain) { program.to_owned() } else { format!("'{}'", program.replace('\'', r"'\''")) };
    Ok(format!("{program} hook {} --timeout {}", agent.name(), TIMEOUT_SECONDS - MARGIN))
}

/// The agent's arguments with our hooks among them.
fn with_hooks(agent: Agent, rest: &[String], command: &str) -> Result<Vec<String>, Failure> {
    match agent {
        Agent::Codex => Ok([codex_arguments(command), rest.to_vec()].concat()),
        Agent::Claude => {
            let mut words = Vec::new();
            let mut settings = json!({});
            let mut rest = rest.iter();
            while let Some(word) = rest.next() {
                // Claude Code heeds the last of several, so that the user's own are taken into ours.
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
    }
}

/// Settings as the user gives them: a file, or JSON itself.
fn read_settings(given: &str) -> Result<Value, Failure> {
    let bad = |why: &dyn ToString| {
        Failure::bad_input(format!("`--settings {given}` is not understood"))
            .why(&why.to_string())
            .hint("give a file of JSON")
    };
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).map_err(|error| bad(&error))?
    };
    serde_json::from_str(&text).map_err(|error| bad(&error))
}

/// Runs the agent with our terminal, and gives its exit code.
fn spawn(
    program: &Path,
    words: &[String],
    told: &[(String, String)],
    state: &State,
    registered: &Registered,
) -> Result<i32, Failure> {
    let failed = |error: std::io::Error| {
        Failure::bad_input(format!("`{}` could not be started", program.display())).why(&error).hint("is it installed?")
    };
    let variables: [(&str, OsString); 4] = [
        (MARK, "run".into()),
        (WORKSPACE, state.root.clone().into()),
        (JOURNAL, state.folder.clone().into()),
        (own_rules::VARIABLE, own_rules::of_arguments(words).into()),
    ];
    // Tokens are for people.
    let mut command = child::guarded(program);
    let told = told.iter().map(|(name, value)| (name, value));
    command.args(words).env_remove("SAYSO_AUTH_TOKEN").envs(told).envs(variables);
    let code = child::run(&mut command, |child| registered.runs(child)).map_err(failed)?;
    if code == KILLED {
        // Its guardian, perhaps, by its own hand: what the guardian would have ended is below us now.
        under_gate::end_all(None);
    }
    Ok(code)
}

/// Ends the conversations of this run, and no other's, and counts them.
fn end_sessions(connected: &Connected, registered: &Registered) -> Result<usize, Failure> {
    let sessions = registered
        .sessions()
        .map_err(|error| Failure::bad_input("it cannot be read which sessions the agent had").why(&error))?;
    let mut failed = None;
    for session in &sessions {
        match connected.wait(connected.client().end_session(session)) {
            // One of which nothing was recorded never began.
            Ok(()) | Err(ClientError::Remote(_)) => {}
            // The others are over all the same.
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sessions.len()), |error| Err(error.into()))
}
