//! `sayso demo`: the whole thing in a throw-away workspace, with a scripted model and the built-in agent.
//!
//! The demo runs this program as a person would, prints each command with its output, and checks the effects. The model's script checks
//! what the agent sends. The person's own configuration, state and keys are not used.

mod stage;
mod web;

use std::io::{BufRead as _, IsTerminal as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use sayso_review::ErrorKind;
use sayso_scripted_model::{ModelServer, Script};

use crate::cli::DemoArguments;
use crate::error::{CliError, DENIED};
use crate::output::{print, say};
use stage::{Agent, Failed, Stage};

/// The model's part.
const SCRIPT: &str = include_str!("script.yaml");
/// The file that the agent works on.
const FILE: &str = "greet.sh";
const ORIGINAL: &str = r#"#!/bin/sh
# Greets someone.

NAME=${1:-world}

# The greeting.
GREETING="Hello"

# Who is greeted, if nobody is named: everyone.
# A name with blanks is one argument: "the world".
# Names are printed as they are given.
# Nothing is written to a file.

# Prints the greeting.
say_hello() {
  echo "$GREETING, $NAME!"
}

# The rest of the script.
echo "Ready."

# Start.
say_hello
"#;

pub(crate) fn run(arguments: &DemoArguments) -> Result<ExitCode, CliError> {
    if arguments.web {
        return web::run();
    }
    let is_interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let script = Script::parse(SCRIPT, "the demo's script")
        .map_err(|error| CliError::new(ErrorKind::Internal, error.to_string()).hint(error.hint()))?;
    let model = ModelServer::play(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
        .map_err(|error| CliError::io("cannot start the scripted model", &error))?;
    let stage = Stage::new(&model.url(), &[(FILE, ORIGINAL)])?;
    let mut demo = Demo { stage, waits: is_interactive && !arguments.auto, step: 0 };
    match demo.play() {
        Ok(()) if model.mismatches().is_empty() => {
            print("\nAll steps did what they said. The workspace is removed.\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(()) => Ok(report(&Failed(model.mismatches().join("; ")))),
        Err(failed) => {
            for mismatch in model.mismatches() {
                say(&format!("The model's script: {mismatch}"));
            }
            Ok(report(&failed))
        }
    }
}

fn report(failed: &Failed) -> ExitCode {
    say(&format!("\nThe demo failed: {}", failed.0));
    ExitCode::from(DENIED)
}

struct Demo {
    stage: Stage,
    /// Waits for Enter after each step.
    waits: bool,
    step: usize,
}

impl Demo {
    fn play(&mut self) -> Result<(), Failed> {
        self.title("The built-in agent gets a task. Its model is a script; no key, no network.")?;
        self.stage.show_file(FILE)?;
        let mut agent = self.stage.start_agent(&["Make the greeting friendlier."])?;
        let session = agent.session.clone();
        let change = agent.next_waiting_change()?;
        self.title("It reads the file and proposes two hunks. Nothing is written before you decide.")?;
        let shown = self.stage.run(&["show", &change.to_string(), "--color", "never"], 0)?;
        check(shown.contains("Good morning") && shown.contains("say_hello"), "the proposal is not shown")?;
        check(self.stage.read(FILE)? == ORIGINAL, "the file changed before the decision")?;

        self.title("You take the first hunk and refuse the others, with a reason.")?;
        let comment = format!("{FILE}:15:keep the old name");
        self.stage.run(&["review", &change.to_string(), "--approve", "1", "--comment", &comment], 1)?;
        let expected = ORIGINAL.replace("GREETING=\"Hello\"", "GREETING=\"Good morning\"");
        check(self.stage.read(FILE)? == expected, "not exactly the approved hunk was written")?;

        self.title(
            "The reason reaches the model in its next request, and it reacts. Its command is under the gate, too.",
        )?;
        self.finish(agent)?;

        self.title("You pause its next request to the model, and change your own words in it before it is sent.")?;
        self.stage.run(&["request", "mode", "pause-next", "--session", &session], 0)?;
        let mut agent = self.stage.start_agent(&["--resume", &session, "Now a haiku about it."])?;
        let request = agent.next_paused_request()?.to_string();
        let path = self.stage.path_of_text(&request, "Now a haiku about it.")?;
        self.stage.run(&["request", "edit", &request, &format!("{path}=Now a limerick about it.")], 0)?;
        self.stage.run(&["request", "diff", &request, "--color", "never"], 1)?;
        self.stage.run(&["request", "resume", &request], 0)?;
        self.finish(agent)?;

        self.title("Everything that the session changed is undone, byte for byte. Git is not needed.")?;
        self.stage.run(&["undo", "--session", &session], 0)?;
        check(self.stage.read(FILE)? == ORIGINAL, "undo did not restore the exact bytes")?;
        let log = self.stage.run(&["log", "--color", "never"], 0)?;
        check(log.contains(FILE), "the log does not tell what happened")?;
        Ok(())
    }

    /// Approves what the agent still asks for, until it has finished.
    fn finish(&self, mut agent: Agent) -> Result<(), Failed> {
        while let Some(change) = agent.waiting_change_or_end()? {
            self.stage.run(&["review", &change.to_string(), "--approve", "all"], 0)?;
        }
        agent.finish()
    }

    fn title(&mut self, text: &str) -> Result<(), Failed> {
        if self.waits && self.step > 0 {
            say("\n[Enter]");
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map_err(|error| Failed(format!("no input: {error}")))?;
        }
        self.step += 1;
        print(&format!("\n{}. {text}\n\n", self.step)).map_err(|error| Failed(error.message()))
    }
}

fn check(holds: bool, failure: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(Failed(failure.to_owned())) }
}
