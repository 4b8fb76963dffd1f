//! Real agents with the settings that `sayso env` prints.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use sayso_testkit::agents::Agent;
use sayso_testkit::model::{ModelServer, Received, Turn};
use sayso_testkit::programs::run_with;

use crate::live_requests::{Terminal, program};

/// A running `sayso serve`. Killed when dropped.
struct Serving(Child);

impl Serving {
    fn start(terminal: &Terminal<'_>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--json", "--port", "0"])
            .current_dir(terminal.workspace)
            .env_clear()
            .envs(terminal.home.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("http://127.0.0.1:"), "{said}");
        Self(child)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent that is started by a shell which has taken the printed lines: its request waits here, and then goes to the model.
fn by_what_is_printed(agent: Agent) {
    let Some(program) = program(agent) else { return };
    let model = ModelServer::start([Turn::says("done")]);
    let workspace = tempfile::tempdir().unwrap();
    let home = agent.home(&agent.base_url(&model.url()), workspace.path());
    let terminal = Terminal { workspace: workspace.path(), home: &home };
    let _serving = Serving::start(&terminal);
    terminal.done(&["request", "mode", "pause-every"]);
    let (name, sayso) = (agent.name(), env!("CARGO_BIN_EXE_sayso"));
    // A line of its own, as a person would write it: an alias counts from the next line on.
    let script = format!("lines=$('{sayso}' env {name}) || exit 9\neval \"$lines\"\n{name} \"$@\"\n");
    let search = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut environment = home.environment();
    environment.push(("PATH", &search));
    let arguments = agent.arguments("say done");
    let words: Vec<&str> = ["-c", &script, "sh"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let output = std::thread::scope(|scope| {
        let runs = scope.spawn(|| run_with(workspace.path(), "sh", &words, &environment, b""));
        let did = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let request = terminal.waiting();
            assert_eq!(model.hits(Received::asks_for_a_turn), 0, "it went past us");
            terminal.done(&["request", "resume", &request]);
        }));
        if did.is_err() {
            // Or the agent would wait for ever.
            terminal.type_in(&["request", "mode", "normal"]);
        }
        let output = runs.join().unwrap();
        did.unwrap_or_else(|_| panic!("{agent:?} said {output:?}"));
        output
    });
    assert!(output.status.success(), "{agent:?}: {output:?}");
    assert_eq!(model.hits(Received::asks_for_a_turn), 1, "{agent:?}: {output:?}");
}

#[test]
fn claude_code_uses_printed_settings() {
    by_what_is_printed(Agent::Claude);
}

#[test]
fn codex_uses_printed_settings() {
    by_what_is_printed(Agent::Codex);
}

#[test]
fn gemini_cli_uses_printed_settings() {
    by_what_is_printed(Agent::Gemini);
}

#[test]
fn copilot_cli_uses_printed_settings() {
    by_what_is_printed(Agent::Copilot);
}

#[test]
fn opencode_uses_printed_settings() {
    by_what_is_printed(Agent::Opencode);
}
