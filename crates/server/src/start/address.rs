//! Addresses of an HTTP server.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

use super::StartError;

/// Default port of `sayso serve`.
pub const PORT: u16 = 7777;
/// Number of ports to try after the first.
const FALLBACK_PORTS: u16 = 100;

/// Handling of a port that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// Use the next free port.
    OrNext,
    /// Fail.
    Exactly,
}

/// Binds an address, or one of the next ports. Returns the first error if all fail.
pub(super) fn listen(address: SocketAddr, choice: PortChoice) -> Result<TcpListener, StartError> {
    let last = match choice {
        PortChoice::Exactly => address.port(),
        PortChoice::OrNext => address.port().saturating_add(FALLBACK_PORTS),
    };
    let mut first_error = None;
    for port in address.port()..=last {
        match TcpListener::bind(SocketAddr::new(address.ip(), port)) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let error = first_error.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    Err(StartError::Listen { address, error })
}

/// Address for clients on this machine. Replaces an unspecified address, which cannot be connected to, by loopback.
pub(super) fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// IPv4 loopback address with a port.
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port)
}
