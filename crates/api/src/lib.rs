//! The protocol.
#[allow(missing_docs)]
pub mod proto {
    connectrpc::include_generated!();
}
pub mod client;
mod error;
pub use error::RemoteError;
