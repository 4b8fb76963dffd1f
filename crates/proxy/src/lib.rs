//! The intercepting gateway for model traffic.
//!
//! An agent points its base URL at us ([`Entrances`]). What nobody wants to look at is passed on while it comes, byte for byte, and
//! recorded on the side. What waits for a person lies on the [`Desk`]: it is shown in sections, edited leaf by leaf, resumed or
//! cancelled, while its client is held without breaking it ([`Proxy::serve`]).
//!
//! # What must not happen
//!
//! - No byte of a request that nobody edited is written anew.
//! - A request that waits stops nobody else.
//! - No credential reaches the journal, a log or an event: headers are left out, and values in bodies are masked. The exact ones are
//!   in memory only, for replaying.
//! - No client's own retry asks a person again for ever.

#![allow(
    clippy::disallowed_methods,
    reason = "the gateway owns sockets and the clock, and keeps saved edits and entrances beside the journal"
)]

pub mod desk;
mod entrance;
mod http;
mod log;
mod proxy;
mod route;
mod settings;

pub use desk::Desk;
pub use entrance::{Entrance, Entrances};
pub use http::{BodyError, ReplayError, Replayed, Reply, Which};
pub use proxy::Proxy;
pub use settings::{Keep, Pause, PauseRule, Retry, Settings, Upstream};
