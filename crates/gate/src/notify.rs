//! Notifications for a user without an attached surface: a count of pending decisions, for a terminal or a configured
//! command.

use std::fmt;

use sayso_review::{ChangeId, RequestId};

/// A decision became pending while no surface was attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Number of pending changes.
    pub changes: usize,
    /// Number of paused requests to models.
    pub requests: usize,
    /// The decision that triggered the notification.
    pub subject: NotificationSubject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationSubject {
    Change(ChangeId),
    Request(RequestId),
}

/// Delivery of notifications.
pub trait Notify: Send + Sync + fmt::Debug {
    /// Delivers a notification. Must not block.
    fn notify(&self, announcement: &Notification);
}

/// Discards all notifications.
#[derive(Clone, Copy, Debug)]
pub struct NoNotify;

impl Notify for NoNotify {
    fn notify(&self, _: &Notification) {}
}

impl Notification {
    /// Returns the escape codes for a terminal: the bell and a desktop notification (OSC 9).
    pub fn for_terminal(&self) -> String {
        format!("\x07\x1b]9;{self}\x1b\\")
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {one}s")),
        };
        let waiting: Vec<String> =
            [count(self.changes, "decision"), count(self.requests, "request")].into_iter().flatten().collect();
        let verb = if self.changes + self.requests == 1 { "waits" } else { "wait" };
        write!(f, "sayso: {} {verb} for you", waiting.join(" and "))
    }
}
