//! The agents on this machine, and what is left of those that ran.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sayso_adapters::hook::codex_trust_advice;
use sayso_adapters::traffic::Speaker;
use sayso_server::agents::Notes;

use super::Finding;
use crate::run::{find, hooks_of, trusts_codex};
use crate::state::root_of;

/// How long an agent may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for speaker in Speaker::ALL {
        let Ok(program) = find(speaker.name()) else {
            findings.push(Finding::fine(format!("{speaker} is not installed")));
            continue;
        };
        let place = program.display();
        let version = match version(&program) {
            Ok(version) => version,
            Err(why) => {
                let text = format!("{speaker} at {place} does not say its version: {why}");
                findings.push(Finding::problem(text, format!("run `{place} --version` to see what is wrong")));
                continue;
            }
        };
        let text = format!("{speaker} {version} at {place}");
        findings.push(match (hooks_of(speaker), speaker) {
            (None, _) => Finding::note(
                format!("{text}\nits requests come through sayso; what it writes and runs is not asked about"),
                "for single commands there is `sayso exec`",
            ),
            (Some(_), Speaker::Codex) if !trusts_codex() => {
                Finding::problem(format!("{text}\nit does not trust sayso's hooks"), codex_trust_advice())
            }
            (Some(_), _) => Finding::fine(format!("{text}: `sayso run -- {}`", speaker.name())),
        });
    }
    findings
}

/// What a program says of its version: the first line that holds a digit.
fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let stdout = child.stdout.take();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(4_096).read_to_string(&mut text);
        }
        let _ = tell.send(text);
    });
    let said = told.recv_timeout(PATIENCE);
    // One that has ended is not there to be killed.
    let _ = child.kill();
    let _ = child.wait();
    let said = said.map_err(|_| "it takes too long".to_owned())?;
    let line = said.lines().find(|line| line.contains(|character: char| character.is_ascii_digit()));
    line.map(|line| line.trim().to_owned()).ok_or_else(|| "it prints no number".to_owned())
}

/// Commands that go on although whoever started them is gone.
pub(super) fn processes(home: &Path, folders: &[PathBuf]) -> Vec<Finding> {
    let notes = Notes::new(home);
    let mut findings = Vec::new();
    for folder in folders {
        let place = root_of(folder).unwrap_or_else(|| folder.clone());
        for abandoned in notes.abandoned(folder) {
            let what = abandoned.change.map_or_else(|| "an agent".to_owned(), |change| format!("change {change}"));
            if abandoned.running.is_empty() {
                continue;
            }
            let ids = abandoned.running.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            let text = format!("{what} in {} still runs, though its sayso is gone: process {ids}", place.display());
            findings.push(Finding::problem(text, format!("wait for it, or end it: `kill {ids}`")));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fine("nothing runs whose sayso is gone"));
    }
    findings
}
