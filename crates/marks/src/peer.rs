//! The process at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::inspect::{InspectError, Inspection, start_time};

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug)]
pub struct PeerProcess {
    id: u32,
    user: u32,
    /// Clock ticks since boot; `None` if it had ended before the first inspection.
    started: Option<u64>,
    /// Refers to the process since it connected. Kernels before 6.5 do not give it.
    handle: Option<OwnedFd>,
}

impl PeerProcess {
    /// The process that connected to, or listens at, the other end of a Unix socket.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        let credentials = rustix::net::sockopt::socket_peercred(socket)?;
        // The handle comes first: it detects a later reuse of the number.
        let handle = getsockopt(socket, sockopt::PeerPidfd).ok();
        let id = u32::try_from(credentials.pid.as_raw_nonzero().get()).map_err(io::Error::other)?;
        Ok(Self { id, user: credentials.uid.as_raw(), started: start_time(id), handle })
    }

    /// The process that has this number now.
    pub fn of_number(id: u32, user: u32) -> Self {
        Self { id, user, started: start_time(id), handle: None }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its user when it connected.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Inspects the process. An error if it ended meanwhile, because another one may have its number.
    pub fn inspect(&self) -> Result<Inspection, InspectError> {
        let inspected = Inspection::of(self.id)?;
        // This order matters: a process that still runs now had its number during the inspection.
        if self.is_running() { Ok(inspected) } else { Err(InspectError::Ended(self.id)) }
    }

    fn is_running(&self) -> bool {
        let same = self.started.is_some() && start_time(self.id) == self.started;
        same && !self.handle.as_ref().is_some_and(has_exited)
    }
}

/// A handle of a process becomes readable when the process exits.
fn has_exited(handle: &OwnedFd) -> bool {
    let now = Timespec::try_from(Duration::ZERO).ok();
    let mut handles = [PollFd::new(handle, PollFlags::IN)];
    // After an error the process counts as exited.
    poll(&mut handles, now.as_ref()).map_or(true, |ready| ready > 0)
}
