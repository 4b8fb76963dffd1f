//! How an engine is reached.

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

/// Bytes in both directions.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection to an engine.
pub type Connection = Box<dyn Bytes>;

/// What lies between a client and an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A socket file, which the system guards: the other end knows who we are.
    Local,
    /// A network, where whoever calls shows a token.
    Network,
}

/// Finds an engine and connects to it. Asked again whenever a connection is needed, so that an engine that was replaced is found.
pub trait Dial: Debug + Send + Sync + 'static {
    /// Connects to the engine.
    fn dial(&self) -> BoxFuture<'static, Result<Connection>>;

    /// What lies between.
    fn reach(&self) -> Reach {
        Reach::Local
    }

    /// The name by which the engine is called.
    fn authority(&self) -> String {
        "localhost".to_owned()
    }
}

/// An engine behind a Unix socket.
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

/// An engine behind an abstract Unix socket of this name, where it takes verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbstractSocket(pub String);

impl Dial for AbstractSocket {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>> {
        let name = self.0.clone();
        async move {
            // At once: an abstract socket never waits for a file system.
            let stream = std::os::unix::net::UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)?;
            Ok(Box::new(LocalStream::new(stream)?) as Connection)
        }
        .boxed()
    }
}

/// An engine behind an address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// The address.
    pub address: SocketAddr,
}

impl Dial for Loopback {
    fn dial(&self) -> BoxFuture<'static, Result<Connection>> {
        let address = self.address;
        async move {
            let stream = TcpStream::connect(address).await?;
            // Calls are small and wait for their answers.
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
