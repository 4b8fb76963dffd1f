//! The engine behind its protocol: over HTTP on this machine, and over a Unix socket.
//!
//! One `Host` holds the gate of a workspace; the services read a call, carry it out on a thread of its own, and answer from
//! what the journal says. Whoever calls is known by their process on the socket and by a token over TCP, and whoever speaks for an
//! agent decides nothing by either way. Streams pull: nothing is queued for anybody, so that a client that is slow or gone costs
//! only itself.
//!
//! # What must not happen
//!
//! - No request over TCP reaches a service without the token, under a foreign host or from a page of a foreign origin.
//! - No call changes the tree but through the gate; this crate writes only its socket and its notes, beside the journal.
//! - Nothing that is secret is logged: neither the token nor what a request holds.
//!
//! # Limits
//!
//! - Processes are told apart as Linux tells of them. Elsewhere a caller on the socket is known by their user alone.

#![allow(
    clippy::disallowed_methods,
    reason = "the server owns sockets, the clock, and the notes beside the journal by which it is found"
)]

pub mod agents;
mod answer;
mod authority;
mod bodies;
mod branch;
mod caller;
mod calls;
mod explain;
mod failure;
mod guard;
mod host;
mod listen;
mod login;
mod place;
mod progress;
mod service;
mod settings;
mod standing;
mod start;
mod token;
mod traffic;
mod wanted;

pub use calls::{CallFiles, CallReport};
pub use failure::Failure;
pub use listen::Timing;
pub use login::Logins;
pub use place::{EnginePlace, ServerNote};
pub use settings::{Current, Settings};
pub use standing::{is_marked, marked_peer};
pub use start::{EngineOptions, Here, HttpOptions, PORT, PortChoice, Server, StartError, Stop, loopback};
pub use token::{BadToken, Token};
pub use wanted::Wanting;
