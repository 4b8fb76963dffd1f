//! The intercepting gateway for model traffic.
//!
//! An agent's base URL points at an [`AgentEndpoint`]. [`Proxy::serve`] routes each request: most are forwarded while they are received,
//! byte for byte, and recorded on the side. A request that might have to be held is buffered and passed to the [`Interceptor`], which
//! forwards, holds or rejects it. While a request is held, its client gets keep-alive events in the format of its API.
//!
//! # Invariants
//!
//! - The bytes of an unedited request are never re-encoded.
//! - A held request blocks no other request.
//! - No credential reaches the journal, a log or an event. Credential headers are omitted, and credentials in bodies are masked. Exact
//!   values stay in memory for replays.
//! - A client's own retry does not ask a person again, and is not rejected forever.

#![allow(
    clippy::disallowed_methods,
    reason = "the gateway owns sockets and the clock, and stores overrides and endpoints beside the journal"
)]

mod bodies;
mod endpoint;
mod http;
pub mod interceptor;
mod proxy;
mod recorder;
mod settings;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use endpoint::{AgentEndpoint, AgentEndpoints};
pub use http::{BodyError, FetchError, FetchLimits, Fetched, ReplayError, ReplayForm, ReplayReport, Reply};
pub use interceptor::Interceptor;
pub use proxy::Proxy;
pub use settings::{Keep, Pause, PauseRule, Retry, Settings, Upstream};

/// Locks a mutex. No code of this crate panics with a half-changed value under a lock, so a poisoned value is still valid.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
