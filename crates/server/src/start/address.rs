//! Where a server listens, and where it is reached.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

use super::StartError;

/// Where `sayso serve` listens unless told otherwise.
pub const PORT: u16 = 7777;
/// Ports that are tried after the first.
const MORE_PORTS: u16 = 100;

/// Whether another port will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The next free one will.
    OrNext,
    /// This one or none.
    Exactly,
}

/// Listens at an address, or at the next port that is free.
pub(super) fn listen(address: SocketAddr, choice: PortChoice) -> Result<TcpListener, StartError> {
    let last = match choice {
        PortChoice::Exactly => address.port(),
        PortChoice::OrNext => address.port().saturating_add(MORE_PORTS),
    };
    let mut failed = None;
    for port in address.port()..=last {
        match TcpListener::bind(SocketAddr::new(address.ip(), port)) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let error = failed.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    Err(StartError::Listen { address, error })
}

/// An address under which a server is reached from this machine: one that stands for all of them is the name of none.
pub(super) fn reached_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The address that only this machine reaches.
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port)
}
