//! The protocol.
#[allow(missing_docs)]
pub mod proto {
    connectrpc::include_generated!();
}
