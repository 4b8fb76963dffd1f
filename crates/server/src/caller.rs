//! Identification of callers: by process on Unix sockets, by credential and, on this machine, process over TCP.

use std::net::SocketAddr;
use std::path::Path;

use connectrpc::RequestContext;
use sayso_review::{ChangeId, ErrorKind};

use crate::agent_registry::{AgentRegistry, Run};
use crate::authority::Authority;
use crate::failure::Failure;
use crate::kernel_marks;

/// The other end of a connection, as an extension of every request on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    Process {
        /// Process id. 0 if unknown.
        id: u32,
        socket: SocketKind,
    },
    /// A client over TCP.
    Address {
        /// Address of the client.
        theirs: SocketAddr,
        /// Address of this server.
        ours: SocketAddr,
        shown: Credential,
    },
}

/// Unix sockets of an engine that serve calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// The socket with a path, for agents and their hooks.
    Path,
    /// The abstract socket, which marked processes cannot reach.
    Verdicts,
}

/// Credentials of a request over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The bearer token, which is stored in a file; or no credential, if the server requires none.
    Token,
    /// A login, which was created on the verdict socket.
    Login,
}

impl Peer {
    /// The peer of the connection of a call.
    pub(crate) fn of(context: &RequestContext) -> Option<Self> {
        context.extensions().get::<Self>().copied()
    }

    /// Sets the credential of a request over TCP.
    pub(crate) fn with_credential(self, credential: Credential) -> Self {
        match self {
            Self::Address { theirs, ours, .. } => Self::Address { theirs, ours, shown: credential },
            Self::Process { .. } => self,
        }
    }

    /// The run of an agent that the peer belongs to.
    pub(crate) fn run(peer: Option<Self>, agents: &AgentRegistry) -> Option<Run> {
        peer?.processes().into_iter().find_map(|process| agents.run_of(process))
    }

    /// `true` if the peer has registered itself for a change of the workspace with that journal.
    pub(crate) fn is_registered(peer: Option<Self>, agents: &AgentRegistry, change: ChangeId, journal: &Path) -> bool {
        let mut processes = peer.map(Self::processes).unwrap_or_default().into_iter();
        processes.any(|process| agents.is_registered(process, change, journal))
    }

    /// Known processes that hold the peer end of the connection.
    fn processes(self) -> Vec<u32> {
        match self {
            Self::Process { id, .. } => vec![id],
            Self::Address { theirs, ours, .. } => match tcp::owners(theirs, ours) {
                tcp::Owners::Known(processes) => processes,
                tcp::Owners::Gone | tcp::Owners::Elsewhere => Vec::new(),
            },
        }
    }

    /// Rejects processes that act for an agent (invariant 13: an agent cannot approve its own changes).
    pub(crate) fn require_person(peer: Option<Self>, agents: &AgentRegistry) -> Result<(), Failure> {
        match peer {
            Some(Self::Process { id, .. }) => agents.reject(id)?,
            Some(Self::Address { theirs, ours, .. }) => {
                // An agent may have stolen a token or a login, so its process is checked, too.
                match tcp::owners(theirs, ours) {
                    // A process of this machine that hides its files.
                    tcp::Owners::Known(processes) if processes.is_empty() => return Err(unverified()),
                    tcp::Owners::Known(processes) => {
                        for process in processes {
                            agents.reject(process)?;
                        }
                    }
                    // The client has disconnected, so its process cannot be identified.
                    tcp::Owners::Gone => return Err(unverified()),
                    tcp::Owners::Elsewhere => {}
                }
            }
            None => return Err(unverified()),
        }
        Ok(())
    }

    /// Rejects callers whose verdicts this engine would reject: agents, and all callers on a channel that agents can reach.
    pub(crate) fn require_decider(peer: Option<Self>, agents: &AgentRegistry) -> Result<(), Failure> {
        let Some(known) = peer else { return Err(unverified()) };
        known.require_channel(Authority::Decide)?;
        Self::require_person(peer, agents)
    }

    /// Rejects calls that need more authority than the channel has.
    pub(crate) fn require_channel(self, authority: Authority) -> Result<(), Failure> {
        if authority < Authority::Decide {
            return Ok(());
        }
        if kernel_marks::is_marked() {
            return Err(denied("an agent started this engine, so it accepts no verdicts")
                .hint("stop its process, or run `sayso serve` in a terminal of your own"));
        }
        match self {
            Self::Process { socket: SocketKind::Verdicts, .. } => Ok(()),
            Self::Process { socket: SocketKind::Path, .. } => {
                Err(denied("this socket accepts no verdicts, because agents can reach it")
                    .hint("decide with the command line, which uses the verdict socket"))
            }
            Self::Address { shown: Credential::Login, .. } if authority == Authority::Decide => Ok(()),
            Self::Address { shown: Credential::Login, .. } => {
                Err(denied("logins are created on the verdict socket only").hint("run `sayso login`"))
            }
            Self::Address { shown: Credential::Token, .. } => {
                Err(denied("the token authorizes no verdicts, because agents can read its file")
                    .hint("run `sayso login` in a terminal and send the login in place of the token"))
            }
        }
    }
}

fn denied(message: &str) -> Failure {
    Failure::new(ErrorKind::ToolDenied, message)
}

fn unverified() -> Failure {
    let message = "cannot verify that this caller is not an agent; agents may not approve their own changes";
    Failure::new(ErrorKind::ToolDenied, message).hint("keep the connection open until the response arrives")
}

/// Lookup of the processes that hold the client end of a connection within this machine.
mod tcp {
    use std::net::{IpAddr, SocketAddr, UdpSocket};
    use std::path::PathBuf;
    use std::time::Duration;

    /// Owners of the client end.
    pub(super) enum Owners {
        /// Processes that hold it. Empty if they hide their files.
        Known(Vec<u32>),
        /// It was on this machine and is closed.
        Gone,
        /// It is on another machine, or `/proc` is not readable.
        Elsewhere,
    }

    // A single lookup can miss a live connection: the kernel returns the table in pieces, and an exiting process closes its files
    // before the table changes.
    const LOOKUP_ATTEMPTS: usize = 4;
    const LOOKUP_DELAY: Duration = Duration::from_millis(2);

    pub(super) fn owners(theirs: SocketAddr, ours: SocketAddr) -> Owners {
        if !std::fs::exists("/proc/net/tcp").unwrap_or(false) {
            return Owners::Elsewhere;
        }
        // Addresses cannot prove that a client is remote: a local process may use any address of this machine. If this one is not
        // local and not in the table, one lookup is enough.
        if !is_within(theirs, ours) && inode(theirs, ours).is_none() {
            return Owners::Elsewhere;
        }
        let mut found = None;
        for attempt in 0..LOOKUP_ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(LOOKUP_DELAY);
            }
            found = inode(theirs, ours);
            let owners = found.map(holders).unwrap_or_default();
            if !owners.is_empty() {
                return Owners::Known(owners);
            }
        }
        if found.is_some() { Owners::Known(Vec::new()) } else { Owners::Gone }
    }

    /// `true` if both ends of a connection are on this machine. The loopback address accepts local clients only, whatever their
    /// source address. Otherwise, a source address that can be bound belongs to this machine.
    pub(super) fn is_within(theirs: SocketAddr, ours: SocketAddr) -> bool {
        let (theirs, ours) = (theirs.ip().to_canonical(), ours.ip().to_canonical());
        ours.is_loopback() || theirs.is_loopback() || theirs == ours || UdpSocket::bind((theirs, 0)).is_ok()
    }

    /// Processes with an open file descriptor for a socket.
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

    /// Inode of the socket with these local and remote addresses.
    fn inode(theirs: SocketAddr, ours: SocketAddr) -> Option<u64> {
        let wanted = (table_forms(theirs), table_forms(ours));
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

    /// The forms of an address in the kernel's table: hexadecimal words in native byte order.
    fn table_forms(address: SocketAddr) -> Vec<String> {
        let port = address.port();
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        // For an IPv6 server, the entry of an IPv4 client is in the table of its own socket: IPv4, or IPv4-mapped IPv6.
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

    #[test]
    fn loopback_client_is_never_remote() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (theirs, ours) in [
            ("203.0.113.9:50000", "127.0.0.1:7777"),
            ("[2001:db8::2]:50000", "[::1]:7777"),
            ("[::ffff:203.0.113.9]:50000", "[::ffff:127.0.0.1]:7777"),
        ] {
            let (theirs, ours) = (address(theirs), address(ours));
            assert!(tcp::is_within(theirs, ours), "{theirs}");
            // Not connected, so no process holds them.
            assert!(matches!(tcp::owners(theirs, ours), tcp::Owners::Gone), "{theirs}");
        }
        // A remote client of a public address.
        assert!(!tcp::is_within(address("203.0.113.9:50000"), address("203.0.113.1:7777")));
    }

    #[test]
    fn ipv4_client_of_ipv6_server_is_identified() {
        // Not available on a machine without IPv6.
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
