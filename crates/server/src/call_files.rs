//! Call orders and reports, as files that only the user can read.
//!
//! The engine writes an order for a permitted command. `sayso call` runs it and writes a report beside it. The engine removes both
//! when the command is finished.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sayso_gate::CallOrder;
use serde::{Deserialize, Serialize};

const FOLDER: &str = "calls";
/// Age at which orders without a reported end are removed.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// The folder of call orders.
#[derive(Clone, Debug)]
pub struct CallFiles {
    folder: PathBuf,
}

/// Result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReport {
    /// Working directory at the end, in which some agents start their next command.
    pub directory: String,
    /// Exit code; `None` if unknown.
    pub code: Option<i32>,
    /// The reason why it was stopped early: the rules deny a command with its actual arguments.
    pub stopped: Option<String>,
}

impl CallFiles {
    /// Uses a folder below sayso's state directory `home`.
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Writes an order and returns its id.
    pub fn write(&self, order: &CallOrder) -> io::Result<String> {
        match DirBuilder::new().recursive(true).mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.remove_old();
        let id = new_id()?;
        let text = serde_json::to_vec(order).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.order_file(&id))?;
        file.write_all(&text)?;
        Ok(id)
    }

    /// Reads an order; `None` if the id is unknown or its command has finished.
    pub fn read(&self, id: &str) -> io::Result<Option<CallOrder>> {
        if !is_id(id) {
            return Ok(None);
        }
        match std::fs::read(self.order_file(id)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the report of a call.
    pub fn report(&self, id: &str, report: &CallReport) -> io::Result<()> {
        let text = serde_json::to_vec(report).map_err(io::Error::other)?;
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(self.report_file(id))?;
        file.write_all(&text)
    }

    /// Reads the report of a call; `None` if it wrote none.
    pub fn read_report(&self, id: &str) -> Option<CallReport> {
        if !is_id(id) {
            return None;
        }
        serde_json::from_slice(&std::fs::read(self.report_file(id)).ok()?).ok()
    }

    /// Reads the report of a finished call and removes both files.
    pub fn take_report(&self, id: &str) -> Option<CallReport> {
        let report = self.read_report(id);
        if is_id(id) {
            // `remove_old` retries after a failure.
            let _ = std::fs::remove_file(self.order_file(id));
            let _ = std::fs::remove_file(self.report_file(id));
        }
        report
    }

    fn order_file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn report_file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.report"))
    }

    /// Removes files older than [`MAX_AGE`]. A failure is retried with the next order.
    fn remove_old(&self) {
        let Some(oldest) = SystemTime::now().checked_sub(MAX_AGE) else { return };
        for file in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let modified = file.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|modified| modified < oldest) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// Returns 128 random bits in hexadecimal digits.
fn new_id() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
