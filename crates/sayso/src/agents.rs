//! Processes that act for an agent: the children of `sayso exec` and `sayso run`. None of them may decide.

use sayso_server::agent_registry::AgentRegistry;
pub(crate) use sayso_server::agent_registry::{MARK, Registration};
pub(crate) use sayso_server::is_marked;

use crate::error::CliError;
use crate::output::say;
use crate::workspace_location::WorkspaceLocation;

fn registry(location: &WorkspaceLocation) -> AgentRegistry {
    AgentRegistry::new(&location.home)
}

/// Registers the children of this process as acting for an agent, for a change. If this process is killed, the engine cancels the change.
pub(crate) fn register(location: &WorkspaceLocation, change: u64) -> Result<Registration, CliError> {
    registry(location).register(Some(change), &location.folder).map_err(|error| registration_error(&error))
}

pub(crate) fn registration_error(error: &std::io::Error) -> CliError {
    CliError::io("cannot register the process under the gate", error).hint("look at the disk's free space")
}

/// Fails if an agent started this process.
pub(crate) fn refuse(location: &WorkspaceLocation) -> Result<(), CliError> {
    Ok(registry(location).reject(std::process::id())?)
}

/// `true` if an agent started this process.
pub(crate) fn acts_for_agent(location: &WorkspaceLocation) -> bool {
    refuse(location).is_err()
}

/// Reports commands that still run although their `sayso exec` was killed.
pub(crate) fn report_orphaned_commands(location: &WorkspaceLocation) {
    for abandoned in registry(location).abandoned(&location.folder) {
        if let (Some(change), false) = (abandoned.change, abandoned.running.is_empty()) {
            say(&format!(
                "note: change {change} still runs, though its `sayso exec` is gone; it is settled when it is over"
            ));
        }
    }
}
