//! The five real agents under `sayso run`, headless, against a scripted model: a person pauses, edits and resumes their requests with
//! `sayso request` in another terminal.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use sayso_testkit::agents::{Agent, Home};
use sayso_testkit::model::{Answer, ModelServer, Received, Turn};
use sayso_testkit::programs::run_with;
use sayso_testkit::skip::skip;
use serde_json::{Value, json};

/// Time limit on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
/// The user's prompt, and the person's edit of it.
const SAID: &str = "PINEAPPLE";
const MEANT: &str = "MANGO";

/// A person's terminal beside an agent that runs.
pub(crate) struct Terminal<'s> {
    pub(crate) workspace: &'s Path,
    pub(crate) home: &'s Home,
}

impl Terminal<'_> {
    pub(crate) fn type_in(&self, arguments: &[&str]) -> Output {
        run_with(self.workspace, env!("CARGO_BIN_EXE_sayso"), arguments, &self.home.environment(), b"")
    }

    pub(crate) fn done(&self, arguments: &[&str]) -> Value {
        let output = self.type_in(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
    }

    /// The number of the request that waits, once one does.
    pub(crate) fn waiting(&self) -> String {
        let started = Instant::now();
        loop {
            let listed = self.done(&["request", "list", "--waiting"]);
            if let Some(request) = listed["requests"].as_array().and_then(|requests| requests.first()) {
                return request["request"].to_string().replace('"', "");
            }
            assert!(started.elapsed() < LIMIT, "no request waits");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the innermost section with a text.
    fn place(&self, request: &str, said: &str) -> String {
        let shown = self.done(&["request", "show", request, "--full"]);
        let sections = shown["sections"].as_array().cloned().unwrap_or_default();
        let holds = |section: &&Value| {
            section["content"].as_str().is_some_and(|content| content.contains(said))
                && section["editable"] == "EDITABLE_YES"
                // A piece between tags is edited with what is around it.
                && section["node"] != "NODE_TYPE_TAG"
        };
        let found = sections.iter().rev().find(holds).unwrap_or_else(|| panic!("nothing says {said}: {shown:#}"));
        found["rawPath"].as_str().unwrap().to_owned()
    }
}

/// A harmless call of each agent's shell.
fn call(agent: Agent) -> Turn {
    match agent {
        Agent::Claude | Agent::Copilot | Agent::Opencode => {
            let name = if agent == Agent::Claude { "Bash" } else { "bash" };
            Turn::calls(name, json!({"command": "true", "description": "nothing"}))
        }
        Agent::Codex => Turn::calls("exec_command", json!({"cmd": "true"})),
        Agent::Gemini => Turn::calls("run_shell_command", json!({"command": "true"})),
    }
}

fn text(received: &Received) -> String {
    String::from_utf8_lossy(&received.decoded).into_owned()
}

/// Returns the path of an agent, or prints that it is not installed.
pub(crate) fn program(agent: Agent) -> Option<PathBuf> {
    let missing = match agent.program() {
        Ok(program) => return Some(program),
        Err(missing) => missing,
    };
    #[allow(clippy::print_stderr, reason = "whoever runs the tests is told what was not tried")]
    {
        skip(missing);
    }
    None
}

/// Runs an agent under the gate beside a person's actions. `None` if it is not installed.
fn beside(
    agent: Agent,
    model: &ModelServer,
    prompt: &str,
    before: &[&[&str]],
    person: impl FnOnce(&Terminal<'_>) + Send,
) -> Option<Output> {
    configured(agent, "", model, prompt, before, person)
}

/// The same with more in the user's configuration.
fn configured(
    agent: Agent,
    configuration: &str,
    model: &ModelServer,
    prompt: &str,
    before: &[&[&str]],
    person: impl FnOnce(&Terminal<'_>) + Send,
) -> Option<Output> {
    let program = program(agent)?;
    let workspace = tempfile::tempdir().unwrap();
    let home = agent.home(&agent.base_url(&model.url()), workspace.path());
    let config = home.path().join(".config/sayso");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("config.toml"),
        format!("[policy]\nrun = 'allow'\nread = 'allow'\ntool = 'allow'\ndelegate = 'allow'\n{configuration}"),
    )
    .unwrap();
    let terminal = Terminal { workspace: workspace.path(), home: &home };
    for command in before {
        terminal.done(command);
    }
    let arguments = agent.arguments(prompt);
    let mut words = vec!["run", "--", program.to_str().unwrap()];
    words.extend(arguments.iter().map(String::as_str));
    if agent == Agent::Codex {
        words.push("--dangerously-bypass-hook-trust");
    }
    let output = std::thread::scope(|scope| {
        let runs = scope.spawn(|| terminal.type_in(&words));
        let did = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| person(&terminal)));
        if did.is_err() {
            // Or the agent would wait for ever.
            terminal.type_in(&["request", "mode", "normal"]);
        }
        let output = runs.join().unwrap();
        did.unwrap_or_else(|_| panic!("the person failed; the agent said {output:?}"));
        output
    });
    Some(output)
}

/// A request is paused, one leaf of it edited, and it is resumed; and the edit sticks on the whole history that the next turn sends.
fn paused_edited_and_resumed(agent: Agent) {
    let model = ModelServer::start([call(agent), Turn::says("done")]);
    let prompt = format!("say {SAID} and nothing else");
    let capture: &[&str] = &["request", "mode", "auto-apply"];
    let ran = beside(agent, &model, &prompt, &[capture], |person| {
        let request = person.waiting();
        assert_eq!(model.hits(Received::asks_for_a_turn), 0, "it was sent before anybody resumed it");
        let path = person.place(&request, SAID);
        let shown = person.done(&["request", "show", &request, "--section", &path, "--full"]);
        let sections = shown["sections"].as_array().unwrap();
        let said = sections.iter().find(|section| section["rawPath"] == path.as_str()).unwrap();
        let said = said["content"].as_str().unwrap().replace(SAID, MEANT);
        person.done(&["request", "edit", &request, &format!("{path}={said}")]);
        person.done(&["request", "resume", &request]);
    });
    let Some(output) = ran else { return };
    let turns: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert!(turns.len() >= 2, "{agent:?}: {output:?}");
    for turn in &turns {
        assert!(text(turn).contains(MEANT), "{agent:?}: the model did not get what was meant");
        assert!(!text(turn).contains(SAID), "{agent:?}: the model got what was said");
    }
    assert!(output.status.success(), "{agent:?}: {output:?}");
}

#[test]
fn claude_code_request_is_paused_edited_and_resumed() {
    paused_edited_and_resumed(Agent::Claude);
}

#[test]
fn codex_request_is_paused_edited_and_resumed() {
    paused_edited_and_resumed(Agent::Codex);
}

#[test]
fn gemini_cli_request_is_paused_edited_and_resumed() {
    paused_edited_and_resumed(Agent::Gemini);
}

#[test]
fn copilot_cli_request_is_paused_edited_and_resumed() {
    paused_edited_and_resumed(Agent::Copilot);
}

#[test]
fn opencode_request_is_paused_edited_and_resumed() {
    paused_edited_and_resumed(Agent::Opencode);
}

/// The README's example: the next turn waits once, its prompt is edited, and the model never reads what was said, however many
/// requests the turn has.
fn edit_stays_for_the_turn(agent: Agent) {
    const DROP: &str = "Drop the table orders in shop.db.";
    const COUNT: &str = "Count the rows of orders in shop.db.";
    let model = ModelServer::start([call(agent), call(agent), Turn::says("done")]);
    let next: &[&str] = &["request", "mode", "pause-next"];
    let ran = beside(agent, &model, DROP, &[next], |person| {
        let request = person.waiting();
        let path = person.place(&request, DROP);
        let shown = person.done(&["request", "show", &request, "--section", &path, "--full"]);
        let sections = shown["sections"].as_array().unwrap();
        let said = sections.iter().find(|section| section["rawPath"] == path.as_str()).unwrap();
        let said = said["content"].as_str().unwrap().replace(DROP, COUNT);
        person.done(&["request", "edit", &request, &format!("{path}={said}")]);
        let resumed = person.type_in(&["request", "resume", &request]);
        let resumed = String::from_utf8_lossy(&resumed.stdout).into_owned();
        assert!(resumed.contains("1 edit stays for the rest of this turn"), "{resumed}");
        assert!(resumed.contains("--from-now-on"), "{resumed}");
    });
    let Some(output) = ran else { return };
    let turns: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert!(turns.len() >= 3, "{agent:?}: {output:?}");
    for turn in &turns {
        assert!(text(turn).contains(COUNT), "{agent:?}: the model did not get what was meant");
        assert!(!text(turn).contains(DROP), "{agent:?}: the model got what was said: {}", text(turn));
    }
    assert!(output.status.success(), "{agent:?}: {output:?}");
    quote(agent, &turns, COUNT);
}

/// Writes what the model got where `SAYSO_QUOTE` says, for a report.
fn quote(agent: Agent, turns: &[Received], said: &str) {
    let Some(folder) = std::env::var_os("SAYSO_QUOTE") else { return };
    let around = |turn: &Received| {
        let text = text(turn);
        let at = text.find(said).unwrap_or_default();
        let from = text[..at].char_indices().rev().nth(80).map_or(0, |(at, _)| at);
        let to = text[at..].char_indices().nth(600).map_or(text.len(), |(more, _)| at + more);
        format!("{} …{}…\n", turn.target, &text[from..to])
    };
    let quoted: String = turns.iter().map(around).collect();
    std::fs::write(Path::new(&folder).join(format!("{agent:?}.txt")), quoted).unwrap();
}

#[test]
fn claude_code_edit_stays_for_the_turn() {
    edit_stays_for_the_turn(Agent::Claude);
}

#[test]
fn codex_edit_stays_for_the_turn() {
    edit_stays_for_the_turn(Agent::Codex);
}

#[test]
fn gemini_cli_edit_stays_for_the_turn() {
    edit_stays_for_the_turn(Agent::Gemini);
}

#[test]
fn copilot_cli_edit_stays_for_the_turn() {
    edit_stays_for_the_turn(Agent::Copilot);
}

#[test]
fn opencode_edit_stays_for_the_turn() {
    edit_stays_for_the_turn(Agent::Opencode);
}

/// A request is held beyond the grace period: its agent gets the status and keep-alives, and accepts the response.
fn kept_alive(agent: Agent) {
    let model = ModelServer::start([Turn::says("done")]);
    let configuration = "[request]\ngrace = '1 s'\nkeep_alive = '1 s'\n";
    let every: &[&str] = &["request", "mode", "pause-every"];
    let ran = configured(agent, configuration, &model, "say done", &[every], |person| {
        let request = person.waiting();
        // Past the status and some signs of life: an agent that stumbles over one has done so by then.
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(person.waiting(), request, "its agent has not gone away");
        person.done(&["request", "resume", &request]);
    });
    let Some(output) = ran else { return };
    assert!(output.status.success(), "{agent:?}: {output:?}");
    assert_eq!(model.hits(Received::asks_for_a_turn), 1, "{agent:?}: {output:?}");
}

#[test]
fn claude_code_is_kept_alive_while_its_request_waits() {
    kept_alive(Agent::Claude);
}

#[test]
fn codex_is_kept_alive_while_its_request_waits() {
    kept_alive(Agent::Codex);
}

#[test]
fn gemini_cli_is_kept_alive_while_its_request_waits() {
    kept_alive(Agent::Gemini);
}

#[test]
fn copilot_cli_is_kept_alive_while_its_request_waits() {
    kept_alive(Agent::Copilot);
}

#[test]
fn opencode_is_kept_alive_while_its_request_waits() {
    kept_alive(Agent::Opencode);
}

/// A request is cancelled before or after the grace period: the model does not get it, and its agent gets an error and gives up by itself,
/// however often it tries.
fn cancelled(agent: Agent) {
    for (grace, waits) in [("1 h", Duration::ZERO), ("1 s", Duration::from_secs(3))] {
        let model = ModelServer::start([Turn::says("never")]);
        let configuration = format!("[request]\ngrace = '{grace}'\nkeep_alive = '1 s'\n");
        let every: &[&str] = &["request", "mode", "pause-every"];
        let ran = configured(agent, &configuration, &model, "say done", &[every], |person| {
            let request = person.waiting();
            // Past the status, where there is to be one.
            std::thread::sleep(waits);
            person.done(&["request", "cancel", &request]);
        });
        let Some(output) = ran else { return };
        assert_eq!(model.hits(Received::asks_for_a_turn), 0, "{agent:?} after {grace}: {output:?}");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("Request canceled before sending"), "{agent:?} after {grace}: {said}");
    }
}

#[test]
fn claude_code_gives_up_when_its_request_is_cancelled() {
    cancelled(Agent::Claude);
}

#[test]
fn codex_gives_up_when_its_request_is_cancelled() {
    cancelled(Agent::Codex);
}

#[test]
fn gemini_cli_gives_up_when_its_request_is_cancelled() {
    cancelled(Agent::Gemini);
}

#[test]
fn copilot_cli_gives_up_when_its_request_is_cancelled() {
    cancelled(Agent::Copilot);
}

#[test]
fn opencode_gives_up_when_its_request_is_cancelled() {
    cancelled(Agent::Opencode);
}

#[test]
fn claude_code_subagent_appears_in_monitor() {
    let task = json!({"description": "look", "prompt": "look around", "subagent_type": "general-purpose"});
    let model = ModelServer::start([Turn::calls("Agent", task)]);
    model.when(
        |request| text(request).contains("look around") && request.header("x-claude-code-agent-id").is_some(),
        Answer::from(Turn::says("nothing there")),
    );
    model.then(Turn::says("done"));
    let every: &[&str] = &["request", "mode", "pause-every"];
    let ran = beside(Agent::Claude, &model, "have somebody look", &[every], |person| {
        for _ in 0..2 {
            let request = person.waiting();
            let runs = person.done(&["request", "monitor"]);
            if model.hits(|request| request.header("x-claude-code-agent-id").is_some()) > 0 {
                assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs:#}");
            }
            person.done(&["request", "resume", &request]);
        }
    });
    let Some(output) = ran else { return };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.hits(|request| request.header("x-claude-code-agent-id").is_some()), 1, "it did not wait");
}

#[test]
fn codex_falls_back_from_its_web_socket() {
    let model = ModelServer::start([Turn::says("done"), Turn::says("done")]);
    let Some(program) = program(Agent::Codex) else { return };
    let workspace = tempfile::tempdir().unwrap();
    let home = Agent::Codex.home(&Agent::Codex.base_url(&model.url()), workspace.path());
    home.prefer_websockets();
    let arguments = Agent::Codex.arguments("say done");
    let mut words = vec!["run", "--", program.to_str().unwrap()];
    words.extend(arguments.iter().map(String::as_str));
    words.push("--dangerously-bypass-hook-trust");
    let terminal = Terminal { workspace: workspace.path(), home: &home };
    let output = terminal.type_in(&words);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.hits(Received::is_upgrade), 0, "{output:?}");
    assert_eq!(model.hits(Received::asks_for_a_turn), 1, "{output:?}");
    // By itself it does ask the model for one, so that it was sayso who sent it back.
    let output = Agent::Codex.command(&home, workspace.path(), "say done").unwrap().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(model.hits(Received::is_upgrade) > 0, "{output:?}");
}
