//! The protocol: what its messages are in Rust, how they become our own types and back, and what its errors mean.
//!
//! The messages are generated from `proto/sayso/v1` and are nothing but data: whatever comes over the wire is checked once, in
//! [`convert`], and is one of our own types from there on. Errors are mapped in one place, [`error`], both ways.
//!
//! # Limits
//!
//! - What a newer peer sends and this version does not know is an error that names the field, except for notes, which inform only
//!   and are left out.

pub mod client;
pub mod convert;
pub mod error;
mod local;

pub use local::LocalStream;

/// The messages and services as they are generated; the values of `oneof` fields are in [`proto::oneof`].
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "generated code"
)]
pub mod proto {
    connectrpc::include_generated!();
    pub use sayso::v1::__buffa::oneof;
    pub use sayso::v1::*;
}
