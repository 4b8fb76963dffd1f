//! Takeover of an engine: a process that will serve the workspace leaves a file beside the socket, and an engine that runs only for
//! the duration of a command stops in its favour.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use sayso_gate::Process;

use crate::agent_registry::{AgentRegistry, parse_process};
use crate::engine_socket::{EngineSocket, remove};
use crate::kernel_marks;

/// A request of this process to take the engine over, withdrawn on drop. After a crash, the file names a dead process and is ignored.
#[derive(Debug)]
pub struct TakeoverRequest {
    path: PathBuf,
    process: Process,
}

impl EngineSocket {
    pub fn request_takeover(&self) -> io::Result<TakeoverRequest> {
        let unknown = || io::Error::other("cannot read this process from /proc");
        let process = Process::find_running(std::process::id()).ok_or_else(unknown)?;
        self.create_directory()?;
        let path = self.takeover_file();
        // Written under another name and renamed, so that no reader sees half of it.
        let own = path.with_extension(process.id.to_string());
        remove(&own)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
        write!(file, "{}-{}", process.id, process.started)?;
        std::fs::rename(&own, &path)?;
        Ok(TakeoverRequest { path, process })
    }

    /// The running process that requested a takeover. Ignores processes of agents.
    pub fn takeover_requested(&self, agents: &AgentRegistry) -> Option<Process> {
        let process = parse_process(&std::fs::read_to_string(self.takeover_file()).ok()?)?;
        let runs = process.id != std::process::id() && Process::find_running(process.id) == Some(process);
        // A marked engine yields to any process: it accepts no verdicts, and the kernel does not let it inspect others.
        (runs && (kernel_marks::is_marked() || agents.reject(process.id).is_ok())).then_some(process)
    }
}

impl Drop for TakeoverRequest {
    fn drop(&mut self) {
        let is_own = std::fs::read_to_string(&self.path).ok().and_then(|text| parse_process(&text));
        if is_own == Some(self.process) {
            // If this fails, the file soon names a dead process.
            let _ = remove(&self.path);
        }
    }
}
