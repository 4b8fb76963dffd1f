//! Handing an engine over: a process that wants the engine for good says so beside the socket, and an engine that only happens to be
//! in a command makes room.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use sayso_gate::Process;

use crate::agents::{Notes, named};
use crate::place::{EnginePlace, remove};
use crate::standing;

/// A note that this process wants the engine, for as long as it is held. One that stays behind names a process that is gone, and
/// counts for nothing.
#[derive(Debug)]
pub struct Wanting {
    path: PathBuf,
    process: Process,
}

impl EnginePlace {
    /// Says that this process wants the engine.
    pub fn want(&self) -> io::Result<Wanting> {
        let unknown = || io::Error::other("the system does not tell of processes");
        let process = Process::find(std::process::id()).ok_or_else(unknown)?;
        self.make_folder()?;
        let path = self.wanted_file();
        // Whole when it appears, whoever else wants it at the same time.
        let own = path.with_extension(process.id.to_string());
        remove(&own)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
        write!(file, "{}-{}", process.id, process.started)?;
        std::fs::rename(&own, &path)?;
        Ok(Wanting { path, process })
    }

    /// Another process that runs and wants the engine. An agent gets none by asking for it.
    pub fn wanted(&self, notes: &Notes) -> Option<Process> {
        let process = named(&std::fs::read_to_string(self.wanted_file()).ok()?)?;
        let runs = process.id != std::process::id() && Process::find(process.id) == Some(process);
        // An engine under the gate makes room for everybody: it takes no verdicts, and the kernel does not let it inspect others.
        (runs && (standing::is_marked() || notes.refuse(process.id).is_ok())).then_some(process)
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        let ours = std::fs::read_to_string(&self.path).ok().and_then(|text| named(&text)) == Some(self.process);
        if ours {
            // Should it stay, it names a process that is gone before long.
            let _ = remove(&self.path);
        }
    }
}
