//! The engine behind its protocol: over HTTP, and over Unix sockets.
//!
//! One `Host` holds the gate of a workspace. A service reads a call, runs it on a blocking thread and responds from the journal. Over
//! a Unix socket, the kernel identifies the caller's process; over TCP, a token or login does, and `/proc` where the peer is local.
//! Processes of agents never decide, on any channel. Streams are pulled by their client and queue nothing, so that a slow client
//! costs no memory.
//!
//! # What must not happen
//!
//! - No request over TCP reaches a service without a token, with a foreign host or from a page of a foreign origin.
//! - No call changes the tree except through the gate. This crate writes only its sockets and files beside the journal.
//! - No secret is logged: neither tokens nor contents of requests.
//!
//! # Limits
//!
//! - Processes are identified through Linux's `/proc`. Elsewhere, the user id alone identifies a caller on the socket.

#![allow(clippy::disallowed_methods, reason = "the server owns sockets, the clock and the files beside the journal")]

mod agent_conversation;
mod agent_host;
pub mod agent_registry;
mod agent_sessions;
mod authority;
mod body_timeout;
mod branch;
mod call_files;
mod caller;
mod change_details;
mod conversation;
mod diff_cache;
mod editors;
mod engine_socket;
mod explain;
mod failure;
mod guard;
mod host;
mod inbox;
mod kernel_marks;
mod listen;
mod login;
mod proxy_thread;
mod respond;
mod service;
mod settings;
mod start;
mod surfaces;
mod takeover;
mod token;
mod web_app;
mod work;

pub use agent_sessions::SurfaceTiming;
pub use call_files::{CallFiles, CallReport};
pub use editors::EditorTiming;
pub use engine_socket::{EngineSocket, ServerNote};
pub use failure::Failure;
pub use kernel_marks::{is_marked, marked_peer};
pub use listen::Timing;
pub use login::Logins;
pub use sayso_mcp::ServerConfig as McpServerConfig;
pub use settings::{AgentDefaults, CredentialHeader, Current, RuleText, Settings};
pub use start::{EngineOptions, HttpOptions, InProcessEngine, PORT, PortChoice, Server, StartError, Stop, loopback};
pub use takeover::TakeoverRequest;
pub use token::{BadToken, Token};
pub use work::{WorkCounts, WorkMonitor};
