//! Who calls: known by their process on the sockets, and by what they show and, where the system tells, their process over TCP.

use std::net::SocketAddr;
use std::path::Path;

use connectrpc::RequestContext;
use sayso_review::{ChangeId, ErrorKind};

use crate::agents::{Notes, Run};
use crate::authority::Authority;
use crate::failure::Failure;
use crate::standing;

/// The other end of a connection, as an extension of every request on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// A process on a Unix socket.
    Process {
        /// Its number.
        id: u32,
        /// The socket that it came by.
        socket: SocketKind,
    },
    /// Somebody over TCP.
    Address {
        /// Their end.
        theirs: SocketAddr,
        /// Ours.
        ours: SocketAddr,
        /// The credential that came with the request.
        shown: Credential,
    },
}

/// Unix sockets of an engine at which services are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// The one with a path, which agents and their hooks use.
    Path,
    /// The abstract one, which the kernel keeps marked processes from.
    Verdicts,
}

/// Credentials of a request over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The bearer token, which lies in a file; or none, where none is asked for.
    Token,
    /// A login that was handed out on the verdict socket.
    Login,
}

impl Peer {
    /// The other end of the connection that a call came by.
    pub(crate) fn of(context: &RequestContext) -> Option<Self> {
        context.extensions().get::<Self>().copied()
    }

    /// The same end of a connection, with what a request on it has shown.
    pub(crate) fn showing(self, credential: Credential) -> Self {
        match self {
            Self::Address { theirs, ours, .. } => Self::Address { theirs, ours, shown: credential },
            Self::Process { .. } => self,
        }
    }

    /// The run of an agent that the other end belongs to, if it does.
    pub(crate) fn run(peer: Option<Self>, notes: &Notes) -> Option<Run> {
        peer?.processes().into_iter().find_map(|process| notes.run_of(process))
    }

    /// Whether the other end has noted that it waits for a change of the workspace with that journal.
    pub(crate) fn has_noted(peer: Option<Self>, notes: &Notes, change: ChangeId, journal: &Path) -> bool {
        let mut processes = peer.map(Self::processes).unwrap_or_default().into_iter();
        processes.any(|process| notes.is_noted(process, change, journal))
    }

    /// The processes that have the other end, as far as they are known.
    fn processes(self) -> Vec<u32> {
        match self {
            Self::Process { id, .. } => vec![id],
            Self::Address { theirs, ours, .. } => match tcp::owners(theirs, ours) {
                tcp::Owners::Known(processes) => processes,
                tcp::Owners::Gone | tcp::Owners::Elsewhere => Vec::new(),
            },
        }
    }

    /// Refuses whoever speaks for an agent (invariant 13: an agent cannot approve itself).
    pub(crate) fn person(peer: Option<Self>, notes: &Notes) -> Result<(), Failure> {
        match peer {
            Some(Self::Process { id, .. }) => notes.refuse(id)?,
            Some(Self::Address { theirs, ours, .. }) => {
                // Should an agent have found a token or a login, its process gives it away.
                match tcp::owners(theirs, ours) {
                    // Somebody of this user who does not let themselves be looked at.
                    tcp::Owners::Known(processes) if processes.is_empty() => return Err(unknown()),
                    tcp::Owners::Known(processes) => {
                        for process in processes {
                            notes.refuse(process)?;
                        }
                    }
                    // Gone before the answer came, so that it cannot be asked who it was.
                    tcp::Owners::Gone => return Err(unknown()),
                    tcp::Owners::Elsewhere => {}
                }
            }
            // Of whom nothing is known, the worst is assumed.
            None => return Err(unknown()),
        }
        Ok(())
    }

    /// Refuses whoever could not give a verdict here: agents, and everybody on a channel that agents can reach.
    pub(crate) fn decides(peer: Option<Self>, notes: &Notes) -> Result<(), Failure> {
        let Some(known) = peer else { return Err(unknown()) };
        known.channel_takes(Authority::Decide)?;
        Self::person(peer, notes)
    }

    /// Refuses calls that the channel does not take, whoever calls.
    pub(crate) fn channel_takes(self, authority: Authority) -> Result<(), Failure> {
        if authority < Authority::Decide {
            return Ok(());
        }
        if standing::is_marked() {
            return Err(denied("this engine was started under the gate, and takes no verdicts")
                .hint("end the process that has it, or run `sayso serve` in a terminal that no agent started"));
        }
        match self {
            Self::Process { socket: SocketKind::Verdicts, .. } => Ok(()),
            Self::Process { socket: SocketKind::Path, .. } => {
                Err(denied("this socket takes proposals, not verdicts: agents can reach it, and an agent cannot decide")
                    .hint("use the command line, which finds the socket for verdicts"))
            }
            Self::Address { shown: Credential::Login, .. } if authority == Authority::Decide => Ok(()),
            Self::Address { shown: Credential::Login, .. } => {
                Err(denied("logins are handed out on the engine's own socket only").hint("run `sayso login`"))
            }
            Self::Address { shown: Credential::Token, .. } => Err(denied(
                "the token takes proposals, not verdicts: it lies in a file that agents can read, and an agent cannot decide",
            )
            .hint("run `sayso login` in a terminal, and show the login instead of the token")),
        }
    }
}

fn denied(message: &str) -> Failure {
    Failure::new(ErrorKind::ToolDenied, message)
}

fn unknown() -> Failure {
    let message = "whoever asks cannot be told from an agent, and an agent cannot decide about what it does";
    Failure::new(ErrorKind::ToolDenied, message).hint("stay connected until the answer is there")
}

/// Which processes hold the other end of a connection within this machine.
mod tcp {
    use std::net::{IpAddr, SocketAddr, UdpSocket};
    use std::path::PathBuf;
    use std::time::Duration;

    /// What is known of the other end.
    pub(super) enum Owners {
        /// These processes hold it; none, if they hide.
        Known(Vec<u32>),
        /// It was within this machine, and is closed.
        Gone,
        /// It is on another machine, or the system does not tell.
        Elsewhere,
    }

    /// How often it is looked at again before it counts as gone, or as nobody's that is to be seen, and after which pause: a
    /// process that ends lets go of its files before they are gone from the table, and the table is read piece by piece.
    const LOOKS: usize = 4;
    const PAUSE: Duration = Duration::from_millis(2);

    pub(super) fn owners(theirs: SocketAddr, ours: SocketAddr) -> Owners {
        if !std::fs::exists("/proc/net/tcp").unwrap_or(false) {
            return Owners::Elsewhere;
        }
        // Looked for whatever address it shows: a process of this machine may show any of the machine's own. Only where it cannot be one
        // is a single look enough.
        if !is_within(theirs, ours) && inode(theirs, ours).is_none() {
            return Owners::Elsewhere;
        }
        let mut found = None;
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            found = inode(theirs, ours);
            let owners = found.map(holders).unwrap_or_default();
            if !owners.is_empty() {
                return Owners::Known(owners);
            }
        }
        if found.is_some() { Owners::Known(Vec::new()) } else { Owners::Gone }
    }

    /// Whether a connection begins and ends on this machine. What arrives at a loopback address does, whatever it says of where it began;
    /// elsewhere, an address that can be bound is one of this machine's own.
    pub(super) fn is_within(theirs: SocketAddr, ours: SocketAddr) -> bool {
        let (theirs, ours) = (theirs.ip().to_canonical(), ours.ip().to_canonical());
        ours.is_loopback() || theirs.is_loopback() || theirs == ours || UdpSocket::bind((theirs, 0)).is_ok()
    }

    /// The processes that have a socket open.
    fn holders(inode: u64) -> Vec<u32> {
        let socket = PathBuf::from(format!("socket:[{inode}]"));
        let mut holders = Vec::new();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let mut files = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            if files.any(|file| std::fs::read_link(file.path()).is_ok_and(|found| found == socket)) {
                holders.push(id);
            }
        }
        holders
    }

    /// The socket whose own end is theirs.
    fn inode(theirs: SocketAddr, ours: SocketAddr) -> Option<u64> {
        let wanted = (written(theirs), written(ours));
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let text = std::fs::read_to_string(table).unwrap_or_default();
            for line in text.lines().skip(1) {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                let (Some(own), Some(other), Some(inode)) = (fields.get(1), fields.get(2), fields.get(9)) else {
                    continue;
                };
                if wanted.0.iter().any(|text| text == own) && wanted.1.iter().any(|text| text == other) {
                    return inode.parse().ok().filter(|inode| *inode != 0);
                }
            }
        }
        None
    }

    /// An address as the system's table writes it, in each of the ways it may: words in the machine's own byte order.
    fn written(address: SocketAddr) -> Vec<String> {
        let port = address.port();
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        // An address of IPv4 that came in at a socket of IPv6 stands in the table of whoever made the connection, as either.
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let plain = word(ip.octets());
                vec![
                    format!("{plain}:{port:04X}"),
                    format!("0000000000000000{}{plain}:{port:04X}", word([0, 0, 255, 255])),
                ]
            }
            IpAddr::V6(ip) => {
                let octets = ip.octets();
                let words: String =
                    octets.chunks_exact(4).map(|chunk| word([chunk[0], chunk[1], chunk[2], chunk[3]])).collect();
                vec![format!("{words}:{port:04X}")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A loopback server is reached from any address of this machine, so that no address makes somebody a stranger.
    #[test]
    fn nobody_at_a_loopback_address_is_from_elsewhere() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (theirs, ours) in [
            ("203.0.113.9:50000", "127.0.0.1:7777"),
            ("[2001:db8::2]:50000", "[::1]:7777"),
            ("[::ffff:203.0.113.9]:50000", "[::ffff:127.0.0.1]:7777"),
        ] {
            let (theirs, ours) = (address(theirs), address(ours));
            assert!(tcp::is_within(theirs, ours), "{theirs}");
            // None of these is connected, so that nobody can be told from an agent.
            assert!(matches!(tcp::owners(theirs, ours), tcp::Owners::Gone), "{theirs}");
        }
        // What comes from another machine to an address that others reach does not.
        assert!(!tcp::is_within(address("203.0.113.9:50000"), address("203.0.113.1:7777")));
    }

    #[test]
    fn whoever_comes_by_ipv4_to_a_server_of_both_is_found() {
        // A machine without IPv6 has none.
        let Ok(listener) = TcpListener::bind(("::", 0)) else { return };
        let port = listener.local_addr().unwrap().port();
        let Ok(ours) = TcpStream::connect(("127.0.0.1", port)) else { return };
        let (accepted, theirs) = listener.accept().unwrap();
        let tcp::Owners::Known(processes) = tcp::owners(theirs, accepted.local_addr().unwrap()) else {
            panic!("{theirs} is not found")
        };
        assert!(processes.contains(&std::process::id()), "{processes:?}");
        drop(ours);
    }
}
