//! The protocol, as its clients use it.

mod client_calls;
mod client_engine;
mod client_watch;
