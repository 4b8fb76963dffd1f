//! The demo's throw-away workspace, and this program run in it.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::error::CliError;
use crate::output::print;

/// Lines of a command's output that are shown.
const MAX_SHOWN_LINES: usize = 40;

/// A step that did not do what it says.
pub(super) struct Failed(pub(super) String);

/// A workspace with state and configuration of its own. Removed when dropped, after its engine.
pub(super) struct Stage {
    engine: Option<Child>,
    folder: TempDir,
    model: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            let pid = i32::try_from(engine.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = engine.wait();
        }
    }
}

impl Stage {
    /// Creates the workspace and starts its engine.
    pub(super) fn new(model: &str, files: &[(&str, &str)]) -> Result<Self, CliError> {
        let failed = |error: &std::io::Error| CliError::io("cannot prepare the workspace of the demo", error);
        let folder = tempfile::Builder::new().prefix("sayso-demo-").tempdir().map_err(|error| failed(&error))?;
        let mut stage = Self { engine: None, folder, model: model.to_owned() };
        for path in [stage.workspace(), stage.folder.path().join("config/sayso"), stage.folder.path().join("state")] {
            fs::create_dir_all(path).map_err(|error| failed(&error))?;
        }
        for (name, content) in files {
            fs::write(stage.workspace().join(name), content).map_err(|error| failed(&error))?;
        }
        let mut engine = stage.command(&["serve", "--port", "0", "--json"]);
        let mut engine = engine.stdout(Stdio::piped()).spawn().map_err(|error| failed(&error))?;
        let mut line = String::new();
        if let Some(stdout) = engine.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| failed(&error))?;
        }
        stage.engine = Some(engine);
        if line.is_empty() {
            return Err(CliError::invalid_input("the engine of the demo did not start"));
        }
        Ok(stage)
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns this program with the demo's surroundings only.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("/proc/self/exe");
        let folder = self.folder.path();
        command.args(arguments).current_dir(self.workspace()).stdin(Stdio::null()).env_clear();
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).env("HOME", folder).env("SAYSO_ANTHROPIC_UPSTREAM", &self.model);
        command.env("XDG_STATE_HOME", folder.join("state")).env("XDG_CONFIG_HOME", folder.join("config"));
        command
    }

    /// Runs a command, prints it with its output, and checks how it ended. Returns the output.
    pub(super) fn run(&self, arguments: &[&str], expected: i32) -> Result<String, Failed> {
        let quoted: Vec<String> = arguments.iter().map(|word| sayso_present::escape::quote_for_shell(word)).collect();
        let shown = quoted.join(" ").replace(" --color never", "");
        let output = self.command(arguments).output();
        let output = output.map_err(|error| Failed(format!("cannot run `sayso {shown}`: {error}")))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().take(MAX_SHOWN_LINES).collect();
        say_on_stdout(&format!("$ sayso {shown}\n{}\n", lines.join("\n")))?;
        let code = output.status.code();
        if code != Some(expected) {
            return Err(Failed(format!("`sayso {shown}` ended with {code:?}, not {expected}")));
        }
        Ok(text)
    }

    pub(super) fn read(&self, file: &str) -> Result<String, Failed> {
        fs::read_to_string(self.workspace().join(file)).map_err(|error| Failed(format!("cannot read {file}: {error}")))
    }

    pub(super) fn show_file(&self, file: &str) -> Result<(), Failed> {
        say_on_stdout(&format!("$ cat {file}\n{}", self.read(file)?))
    }

    /// Starts the agent with a task.
    pub(super) fn start_agent(&self, arguments: &[&str]) -> Result<Agent, Failed> {
        let quoted: Vec<String> = arguments.iter().map(|word| sayso_present::escape::quote_for_shell(word)).collect();
        say_on_stdout(&format!("$ sayso -p {}\n", quoted.join(" ")))?;
        let mut words = vec!["-p", "--json"];
        words.extend(arguments);
        let spawned = self.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| Failed(format!("cannot start the agent: {error}")))?;
        let stdout = child.stdout.take().ok_or_else(|| Failed("the agent has no output".to_owned()))?;
        let mut agent = Agent { child, lines: BufReader::new(stdout).lines(), session: String::new(), end: None };
        let first = agent.next()?.ok_or_else(|| agent.no_output())?;
        first["session"].as_str().unwrap_or_default().clone_into(&mut agent.session);
        if agent.session.is_empty() { Err(Failed(format!("the agent did not start: {first}"))) } else { Ok(agent) }
    }

    /// Returns a link that logs a browser in, once, and opens a view.
    pub(super) fn login_link(&self, view: &str) -> Result<String, Failed> {
        let output = self.command(&["open", "--json", view]).output();
        let output = output.map_err(|error| Failed(format!("cannot get a login link: {error}")))?;
        let shown: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let link = shown.as_ref().and_then(|shown| shown["link"].as_str());
        link.map(str::to_owned)
            .ok_or_else(|| Failed(format!("there is no login link: {}", String::from_utf8_lossy(&output.stderr))))
    }

    /// Returns the path of the section of a request that has a text.
    pub(super) fn path_of_text(&self, request: &str, text: &str) -> Result<String, Failed> {
        let output = self.command(&["request", "show", request, "--full", "--json"]).output();
        let output = output.map_err(|error| Failed(format!("cannot show request {request}: {error}")))?;
        let shown: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failed(format!("cannot read request {request}: {error}")))?;
        find_path(&shown, text).ok_or_else(|| Failed(format!("request {request} does not have the text `{text}`")))
    }
}

/// Finds an object with a path whose text is this one.
fn find_path(value: &Value, text: &str) -> Option<String> {
    match value {
        Value::Object(object) => {
            let is_text = object.values().any(|value| value.as_str().is_some_and(|found| found.trim() == text));
            let path = ["path", "rawPath"].iter().find_map(|key| object.get(*key)).and_then(Value::as_str);
            let path = path.filter(|path| is_text && !path.is_empty());
            path.map(str::to_owned).or_else(|| object.values().find_map(|value| find_path(value, text)))
        }
        Value::Array(values) => values.iter().find_map(|value| find_path(value, text)),
        _ => None,
    }
}

/// The running agent and its events.
pub(super) struct Agent {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) session: String,
    /// The last event.
    end: Option<Value>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Has ended already, except after a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    fn next(&mut self) -> Result<Option<Value>, Failed> {
        let Some(line) = self.lines.next() else { return Ok(None) };
        let line = line.map_err(|error| Failed(format!("cannot read the agent's events: {error}")))?;
        serde_json::from_str(&line).map(Some).map_err(|error| Failed(format!("`{line}` is not JSON: {error}")))
    }

    /// Prints the agent's events until `wait` returns, and ends the agent.
    pub(super) fn show_until(&mut self, wait: impl FnOnce()) -> Result<(), Failed> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        std::thread::scope(|scope| {
            let shown = scope.spawn(|| {
                while let Some(event) = self.next()? {
                    Self::show(&event)?;
                }
                say_on_stdout("")
            });
            wait();
            if let Some(pid) = pid {
                // It may have ended already. Nothing has waited for it, so that its id is its own.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            shown.join().unwrap_or_else(|_| Err(Failed("the agent's events were not shown".to_owned())))
        })
    }

    fn no_output(&mut self) -> Failed {
        let mut errors = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut errors);
        }
        Failed(format!("the agent ended early: {}", errors.trim()))
    }

    /// Prints an event as `sayso -p` does, in short.
    fn show(event: &Value) -> Result<(), Failed> {
        let line = if let Some(text) = event["textDelta"]["text"].as_str() {
            return print(text).map_err(|error| Failed(error.message()));
        } else if let Some(summary) = event["toolCall"]["summary"].as_str() {
            format!("\n· {summary}\n")
        } else {
            return Ok(());
        };
        say_on_stdout(line.trim_end())
    }

    /// Reads events up to a wait for a person, and returns the field of its subject. `None` at the end.
    fn next_waiting(&mut self) -> Result<Option<Value>, Failed> {
        while let Some(event) = self.next()? {
            Self::show(&event)?;
            let status = &event["status"];
            if status["state"] == "STATE_WAITING" {
                say_on_stdout("")?;
                return Ok(Some(status.clone()));
            }
            if event.get("finished").is_some() || event.get("failed").is_some() {
                self.end = Some(event);
            }
        }
        say_on_stdout("")?;
        Ok(None)
    }

    pub(super) fn waiting_change_or_end(&mut self) -> Result<Option<u64>, Failed> {
        Ok(self.next_waiting()?.and_then(|status| number(&status["change"])))
    }

    pub(super) fn next_waiting_change(&mut self) -> Result<u64, Failed> {
        self.waiting_change_or_end()?.ok_or_else(|| self.no_output())
    }

    pub(super) fn next_paused_request(&mut self) -> Result<u64, Failed> {
        let status = self.next_waiting()?;
        status.and_then(|status| number(&status["request"])).ok_or_else(|| self.no_output())
    }

    /// Checks that the agent has finished its task.
    pub(super) fn finish(mut self) -> Result<(), Failed> {
        let end = self.end.take().unwrap_or_default();
        let status = self.child.wait().map_err(|error| Failed(format!("the agent is lost: {error}")))?;
        if end["finished"]["reason"] == "REASON_COMPLETED" && status.success() {
            return Ok(());
        }
        Err(Failed(format!("the agent did not finish its task: {end}")))
    }
}

/// Reads a number, which is text in the JSON of the protocol.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn say_on_stdout(text: &str) -> Result<(), Failed> {
    print(&format!("{text}\n")).map_err(|error| Failed(error.message()))
}
