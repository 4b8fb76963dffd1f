//! Kernel marks of callers, compared with the marks of this process.

use std::os::fd::AsFd;
use std::sync::LazyLock;

use sayso_gate::GateError;
use sayso_marks::{InspectError, Inspection, PeerProcess};

/// Marks and namespaces of this process, which never change. `None` if `/proc` is not readable.
static OWN: LazyLock<Option<Inspection>> = LazyLock::new(|| Inspection::own().ok());

/// `true` if this process runs under the gate. An engine in such a process accepts no verdicts.
pub fn is_marked() -> bool {
    OWN.as_ref().is_some_and(|own| own.marks.is_marked())
}

/// Rejects a process with kernel marks, or in other namespaces than this process.
pub(crate) fn reject_marked(process: u32) -> Result<(), GateError> {
    if process == std::process::id() {
        return if is_marked() { Err(GateError::Marked(process)) } else { Ok(()) };
    }
    check(process, Inspection::of(process))
}

/// Same as [`reject_marked`] for the peer of a socket. Safe against reuse of its process id.
pub(crate) fn reject_marked_peer(peer: &PeerProcess) -> Result<(), GateError> {
    if peer.id() == std::process::id() { reject_marked(peer.id()) } else { check(peer.id(), peer.inspect()) }
}

/// Id of the process at the other end of a socket, if it runs under the gate.
pub fn marked_peer(socket: &impl AsFd) -> Option<u32> {
    let peer = PeerProcess::of_socket(socket).ok()?;
    matches!(reject_marked_peer(&peer), Err(GateError::Marked(_))).then(|| peer.id())
}

fn check(process: u32, inspected: Result<Inspection, InspectError>) -> Result<(), GateError> {
    // Without a readable /proc, no marks are known and other checks decide.
    let Some(own) = OWN.as_ref() else { return Ok(()) };
    let Inspection { marks, namespaces } =
        inspected.map_err(|error| GateError::Unknown { process, reason: error.to_string() })?;
    if marks.is_marked_beside(own.marks) {
        return Err(GateError::Marked(process));
    }
    if namespaces == own.namespaces { Ok(()) } else { Err(GateError::OtherNamespace(process)) }
}
