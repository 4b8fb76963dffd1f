//! The marks that this kernel has.

use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt};

use crate::domain;
use crate::inspect::Inspection;

/// The marks that this kernel supports, as far as an unprivileged process can find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSupport {
    /// `no_new_privs` and seccomp filters, which `/proc/PID/status` reports.
    pub marks: bool,
    /// Landlock scopes: ABI 6, Linux 6.12.
    pub scopes: bool,
    /// `SO_PEERPIDFD`: Linux 6.5. Without it the start time tells processes apart.
    pub peer_handles: bool,
}

impl KernelSupport {
    /// Asks the kernel, without applying a mark.
    pub fn find() -> Self {
        let peer_handles = UnixStream::pair().is_ok_and(|(one, _other)| getsockopt(&one, sockopt::PeerPidfd).is_ok());
        Self { marks: Inspection::own().is_ok() && has_filters(), scopes: domain::is_supported(), peer_handles }
    }
}

/// `true` if the kernel was built with seccomp filters.
fn has_filters() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:"))
}
