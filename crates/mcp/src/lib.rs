//! Client of the user's MCP servers.
//!
//! An [`McpServers`] holds the configured servers. It starts a server when its tools are first needed, lists the tools as
//! [`ExternalTool`](sayso_tools::ExternalTool)s, and calls them. It decides nothing: the agent submits a call to the gate first.
//!
//! A server is an untrusted program. Everything that it sends is bounded: the length of a message, the number of tools, the
//! size of a result, its standard error. A server that dies, hangs or sends garbage ends its own calls with an error that names
//! the server and the cause; the next call starts it again.
//!
//! A local server is started through a prefix of words that the host gives, which puts the process under the kernel marks of an
//! agent. This crate does not mark processes itself.
//!
//! # Limits
//!
//! - Requests of a server to the client (sampling, elicitation, roots) are declined.
//! - Over HTTP, credentials are headers of the configuration. OAuth is not supported.

mod config;
mod connection;
mod error;
mod http;
mod line_limit;
mod names;
mod process;
mod result;
mod server;
mod servers;

pub use config::{BadServerConfig, ServerConfig, ServerTransport};
pub use connection::{CallProgress, ProgressSink};
pub use error::McpError;
pub use names::tool_name;
pub use process::ProcessSettings;
pub use server::ServerStatus;
pub use servers::McpServers;
