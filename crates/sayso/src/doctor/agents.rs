//! Agents on this machine, and processes whose sayso is gone.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sayso_adapters::Agent;
use sayso_adapters::hook::codex_trust_advice;
use sayso_server::agent_registry::AgentRegistry;

use super::DoctorFinding;
use crate::run::{codex_trusts_hooks, find_program};
use crate::workspace_location::recorded_root;

/// Time for an agent to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn findings() -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for agent in Agent::ALL {
        let Ok(program) = find_program(agent.name()) else {
            findings.push(DoctorFinding::fine(format!("{agent} is not installed")));
            continue;
        };
        let place = program.display();
        let version = match version(&program) {
            Ok(version) => version,
            Err(why) => {
                let text = format!("{agent} at {place} does not print its version: {why}");
                findings.push(DoctorFinding::problem(text, format!("run `{place} --version` to see what is wrong")));
                continue;
            }
        };
        let text = format!("{agent} {version} at {place}");
        findings.push(match (agent.has_hooks(), agent) {
            (false, _) => DoctorFinding::note(
                format!("{text}\nits requests come through sayso; what it writes and runs is not asked about"),
                "for single commands there is `sayso exec`",
            ),
            (true, Agent::Codex) if !codex_trusts_hooks() => {
                DoctorFinding::problem(format!("{text}\nit does not trust sayso's hooks"), codex_trust_advice())
            }
            (true, _) => DoctorFinding::fine(format!("{text}: `sayso run -- {}`", agent.name())),
        });
    }
    findings
}

/// Returns the version that a program prints: the first line with a digit.
fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let stdout = child.stdout.take();
    let (sender, output) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(4_096).read_to_string(&mut text);
        }
        let _ = sender.send(text);
    });
    let printed = output.recv_timeout(VERSION_TIMEOUT);
    // Fails for a process that has ended.
    let _ = child.kill();
    let _ = child.wait();
    let printed = printed.map_err(|_| "it takes too long".to_owned())?;
    let line = printed.lines().find(|line| line.contains(|character: char| character.is_ascii_digit()));
    line.map(|line| line.trim().to_owned()).ok_or_else(|| "it prints no number".to_owned())
}

/// Reports commands that still run although their sayso is gone.
pub(super) fn processes(home: &Path, folders: &[PathBuf]) -> Vec<DoctorFinding> {
    let notes = AgentRegistry::new(home);
    let mut findings = Vec::new();
    for folder in folders {
        let place = recorded_root(folder).unwrap_or_else(|| folder.clone());
        for abandoned in notes.abandoned(folder) {
            let what = abandoned.change.map_or_else(|| "an agent".to_owned(), |change| format!("change {change}"));
            if abandoned.running.is_empty() {
                continue;
            }
            let ids = abandoned.running.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            let text = format!("{what} in {} still runs, though its sayso is gone: process {ids}", place.display());
            findings.push(DoctorFinding::problem(text, format!("wait for it, or end it: `kill {ids}`")));
        }
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::fine("nothing runs whose sayso is gone"));
    }
    findings
}
