//! The protocol: generated messages, conversions to the types of `review`, the error mapping and a typed client.
//!
//! Messages are generated from `proto/sayso/v1` and hold plain data. [`convert`] checks each received message once; from there on it
//! is a type of `review`. [`error`] maps errors both ways, in one place.
//!
//! # Limits
//!
//! - A value of a newer peer that this version does not know is an error that names the field. Two exceptions: unknown notes are
//!   dropped, and unknown events keep their number only.

pub mod client;
pub mod conversation;
pub mod convert;
pub mod diff;
pub mod error;
pub mod inbox;
mod local;
pub mod request;

pub use error::ErrorData;
pub use local::LocalStream;

/// Generated messages and services. The values of `oneof` fields are in [`proto::oneof`].
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
