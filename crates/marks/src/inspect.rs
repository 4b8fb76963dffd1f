//! Reading marks and namespaces of a process from `/proc`.

use std::io;

use thiserror::Error;

/// The marks of a process, as `/proc/PID/status` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// `true` if neither the process nor its descendants can gain privileges.
    pub no_new_privs: bool,
    /// Seccomp filters in force. Kernels before 5.9 report only whether there are any, which counts as one.
    pub filters: u32,
}

/// The namespaces that tell a process apart from one in a container of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// The link text of `/proc/PID/ns/user`.
    pub user: String,
    /// The link text of `/proc/PID/ns/pid`.
    pub pid: String,
}

/// Marks and namespaces of a process, which decide its authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    pub marks: Marks,
    pub namespaces: Namespaces,
}

/// The reason why a process could not be inspected. Callers treat that process as marked.
#[derive(Debug, Error)]
pub enum InspectError {
    /// The process has ended, or another one has its number.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The kernel denies this process the information.
    #[error("cannot inspect process {process}: {error}")]
    Hidden { process: u32, error: io::Error },
}

impl Marks {
    /// `true` if a process with these marks runs under the gate: it has `no_new_privs` and more filters than the engine. The engine may
    /// itself be in a container with a filter of its own.
    pub fn is_marked_beside(self, engine: Self) -> bool {
        self.no_new_privs && self.filters > engine.filters
    }

    /// `true` if a process with these marks seems to run under the gate, when the engine's marks are not known. A container may look the
    /// same.
    pub fn is_marked(self) -> bool {
        self.is_marked_beside(Self { no_new_privs: false, filters: 0 })
    }

    /// The marks of this process.
    pub fn own() -> Result<Self, InspectError> {
        Ok(Inspection::of(std::process::id())?.marks)
    }

    /// Reads the text of `/proc/PID/status`. `None` if the process has ended or the text is not understood.
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        // The main thread of a zombie has released its filters, although other threads may go on.
        if field("State")?.starts_with(['Z', 'X']) {
            return None;
        }
        let no_new_privs = field("NoNewPrivs")? == "1";
        let filters = match field("Seccomp_filters") {
            Some(count) => count.parse().ok()?,
            None => u32::from(field("Seccomp").is_some_and(|mode| mode != "0")),
        };
        Some(Self { no_new_privs, filters })
    }
}

impl Inspection {
    /// Inspects the process that has this number now. [`crate::PeerProcess`] detects a reused number.
    pub fn of(process: u32) -> Result<Self, InspectError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => InspectError::Ended(process),
            _ => InspectError::Hidden { process, error },
        };
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).map_err(failed)?;
        let marks = Marks::parse(&status).ok_or(InspectError::Ended(process))?;
        let namespace = |name: &str| {
            let link = std::fs::read_link(format!("/proc/{process}/ns/{name}")).map_err(failed)?;
            Ok(link.to_string_lossy().into_owned())
        };
        Ok(Self { marks, namespaces: Namespaces { user: namespace("user")?, pid: namespace("pid")? } })
    }

    pub fn own() -> Result<Self, InspectError> {
        Self::of(std::process::id())
    }
}

/// The start time of a process in clock ticks since boot, which tells it apart from a later one of the same number.
pub(crate) fn start_time(process: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may hold anything, so fields are counted from its end.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &str, expected: Option<(bool, u32)>) {
        let expected = expected.map(|(no_new_privs, filters)| Marks { no_new_privs, filters });
        assert_eq!(Marks::parse(status), expected, "{status}");
    }

    #[test]
    fn status_text_gives_marks() {
        check("State:\tS (sleeping)\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n", Some((true, 3)));
        check("State:\tR (running)\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n", Some((false, 0)));
        // Before Linux 5.9.
        check("State:\tR (running)\nNoNewPrivs:\t1\nSeccomp:\t2\n", Some((true, 1)));
        check("State:\tR (running)\nNoNewPrivs:\t1\n", Some((true, 0)));
        check("State:\tZ (zombie)\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n", None);
        check("", None);
        check("Name:\tNoNewPrivs: 0\n", None);
    }

    #[test]
    fn marks_count_beside_those_of_the_engine() {
        let marks = |no_new_privs, filters| Marks { no_new_privs, filters };
        assert!(marks(true, 1).is_marked_beside(marks(false, 0)));
        // An engine and a reviewer in one container.
        assert!(!marks(false, 1).is_marked_beside(marks(false, 1)));
        assert!(!marks(true, 1).is_marked_beside(marks(true, 1)));
        assert!(marks(true, 2).is_marked_beside(marks(true, 1)));
        // A filter alone is not ours: root may install one without `no_new_privs`.
        assert!(!marks(false, 2).is_marked_beside(marks(false, 0)));
        assert!(!marks(true, 0).is_marked());
    }

    #[test]
    fn process_without_number_has_ended() {
        assert!(matches!(Inspection::of(u32::MAX), Err(InspectError::Ended(u32::MAX))));
        assert_eq!(start_time(u32::MAX), None);
        assert!(start_time(std::process::id()).is_some());
    }
}
