//! Marks that the kernel keeps on every process under the gate, and that no process can shed.
//!
//! A supervisor is no proof: a child of the same user can kill it, and its orphans go to init. The marks survive `env -i`, `setsid`,
//! a double fork, reparenting, and new user and PID namespaces:
//!
//! - `no_new_privs` and one allow-all seccomp filter. `/proc/PID/status` reports both; a process with `NoNewPrivs: 1` and more filters
//!   than the engine is *marked*, see [`Marks::is_marked_beside`].
//! - A Landlock domain with scopes only (ABI 6, Linux 6.12). From inside, abstract Unix sockets and processes outside are out of reach:
//!   `connect` fails with `EPERM`, `ptrace` and `/proc/PID/{environ,fd,mem}` with `EACCES`. Files, mounts and networks are unaffected.
//!
//! [`apply`] marks the calling thread. Its future children and `exec` inherit the marks. [`PeerProcess`] recognises them at the
//! other end of a socket. [`KernelSupport`] lists which of them this kernel has.
//!
//! # What must not happen
//!
//! - A marked thread never shares memory with an unmarked one: a process in the same Landlock domain may trace it, and with it the whole
//!   program. Apply the marks in a process of their own, between `fork` and `exec`.
//! - A process that cannot be inspected never counts as unmarked.
//!
//! # Limits
//!
//! - Other sandboxes leave the same traces: a terminal inside Flatpak has `no_new_privs` and a filter, and counts as marked.
//! - Below ABI 6 there is no domain. The engine still recognises the marks, but a marked process can trace an unmarked one of the
//!   same user, unless the system forbids it (Yama).

#![allow(clippy::disallowed_methods, reason = "marks are read where the kernel reports them, under /proc")]

mod domain;
mod inspect;
mod kernel;
mod peer;

pub use domain::Domain;
pub use inspect::{InspectError, Inspection, Marks, Namespaces};
pub use kernel::KernelSupport;
pub use peer::PeerProcess;

use std::io;

use seccompiler::sock_filter;
use thiserror::Error;

/// Kinds of programs to mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A single command. It may still send signals to processes outside, as in `kill $(cat dev.pid)`.
    Command,
    /// A whole agent. It may send signals only to processes that it started.
    Agent,
}

/// The marks that [`apply`] put on the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The Landlock domain, which older kernels do not have.
    pub domain: Domain,
}

/// The reason why a thread could not be marked.
#[derive(Debug, Error)]
pub enum MarkError {
    /// The kernel rejects `PR_SET_NO_NEW_PRIVS`.
    #[error("cannot set no_new_privs: {0}")]
    NoNewPrivs(io::Error),
    /// The kernel rejects the filter.
    #[error("cannot install a seccomp filter: {0}")]
    Filter(seccompiler::Error),
    /// The kernel has scopes and rejects the domain.
    #[error("cannot enter a Landlock domain: {0}")]
    Domain(String),
}

impl MarkError {
    /// The remedy, as an imperative.
    pub fn hint(&self) -> &'static str {
        "run `sayso doctor` to list which marks this kernel has"
    }
}

/// `BPF_RET | BPF_K` with `SECCOMP_RET_ALLOW`. A constant verdict: since Linux 5.11 the kernel evaluates it once per system call number
/// and caches the result, so the filter costs nothing afterwards.
const ALLOW_ALL: sock_filter = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };

/// Marks the calling thread, irrevocably, and all that it starts or becomes from now on.
///
/// Call it in a process with one thread, just before `exec`. Where the kernel has no Landlock scopes the result says so, and the other
/// marks are in place.
pub fn apply(scope: Scope) -> Result<Applied, MarkError> {
    rustix::thread::set_no_new_privs(true).map_err(|error| MarkError::NoNewPrivs(error.into()))?;
    seccompiler::apply_filter(&[ALLOW_ALL]).map_err(MarkError::Filter)?;
    Ok(Applied { domain: domain::enter(scope)? })
}
