//! The kernel's marks on callers, compared with those on this process.

use std::os::fd::AsFd;
use std::sync::LazyLock;

use sayso_gate::GateError;
use sayso_marks::{InspectError, Inspection, PeerProcess};

/// Marks and namespaces of this process, which change neither in an engine nor in a command. `None` where the system tells of no
/// process.
static OWN: LazyLock<Option<Inspection>> = LazyLock::new(|| Inspection::own().ok());

/// `true` if this process runs under the gate: an engine in it takes no verdicts.
pub fn is_marked() -> bool {
    OWN.as_ref().is_some_and(|own| own.marks.is_marked())
}

/// Refuses a process that the kernel marks, or that is in other namespaces than this one.
pub(crate) fn refuse_marked(process: u32) -> Result<(), GateError> {
    if process == std::process::id() {
        return if is_marked() { Err(GateError::Marked(process)) } else { Ok(()) };
    }
    judge(process, Inspection::of(process))
}

/// The same for the other end of a socket, which no later process of the same number is confused with.
pub(crate) fn refuse_marked_peer(peer: &PeerProcess) -> Result<(), GateError> {
    if peer.id() == std::process::id() { refuse_marked(peer.id()) } else { judge(peer.id(), peer.inspect()) }
}

/// The process at the other end of a socket, if it runs under the gate.
pub fn marked_peer(socket: &impl AsFd) -> Option<u32> {
    let peer = PeerProcess::of_socket(socket).ok()?;
    matches!(refuse_marked_peer(&peer), Err(GateError::Marked(_))).then(|| peer.id())
}

fn judge(process: u32, inspected: Result<Inspection, InspectError>) -> Result<(), GateError> {
    // Where the system tells of no process at all, none is known by its marks.
    let Some(own) = OWN.as_ref() else { return Ok(()) };
    let Inspection { marks, namespaces } =
        inspected.map_err(|error| GateError::Unknown { process, reason: error.to_string() })?;
    if marks.is_marked_beside(own.marks) {
        return Err(GateError::Marked(process));
    }
    if namespaces == own.namespaces { Ok(()) } else { Err(GateError::OtherNamespace(process)) }
}
