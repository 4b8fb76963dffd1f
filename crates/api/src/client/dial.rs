//! Connections to an engine.

use std::fmt::Debug;
use std::io::Result;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::path::PathBuf;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::LocalStream;

pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub type Connection = Box<dyn Bytes>;

/// Kind of transport, which decides how the client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A Unix socket. The kernel tells the engine the client's process.
    Local,
    /// TCP. The client sends a token.
    Network,
}

/// Locates an engine and connects to it. The client dials for every new connection, so that it finds a restarted engine.
pub trait Dial: Debug + Send + Sync + 'static {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>>;

    fn reach(&self) -> Reach {
        Reach::Local
    }

    /// Value of the `Host` header.
    fn authority(&self) -> String {
        "localhost".to_owned()
    }
}

/// Path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket(pub PathBuf);

impl Dial for Socket {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>> {
        let path = self.0.clone();
        async move {
            let stream = UnixStream::connect(path).await?.into_std()?;
            Ok(Box::new(LocalStream::new(stream)?) as Connection)
        }
        .boxed()
    }
}

/// Name of an abstract Unix socket, on which the engine accepts verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbstractSocket(pub String);

impl Dial for AbstractSocket {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>> {
        let name = self.0.clone();
        async move {
            // A blocking connect is fine: an abstract socket touches no file system.
            let stream = std::os::unix::net::UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)?;
            Ok(Box::new(LocalStream::new(stream)?) as Connection)
        }
        .boxed()
    }
}

/// TCP address on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback {
    pub address: SocketAddr,
}

impl Dial for Loopback {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>> {
        let address = self.address;
        async move {
            let stream = TcpStream::connect(address).await?;
            // Calls are small and sequential, so Nagle's algorithm would only delay them.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Connection)
        }
        .boxed()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn authority(&self) -> String {
        self.address.to_string()
    }
}
