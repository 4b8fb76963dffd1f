//! What is said where nobody looks: a count of what waits, to a terminal that we own and to a command of the user's choice.

use std::fmt;

use sayso_review::{ChangeId, RequestId};

/// Something began to wait for a person, and no surface is attached that would show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// How many changes wait.
    pub changes: usize,
    /// How many requests to models wait.
    pub requests: usize,
    /// The one that came.
    pub came: Announced,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// A change.
    Change(ChangeId),
    /// A request to a model.
    Request(RequestId),
}

/// Whoever makes people look.
pub trait Announce: Send + Sync + fmt::Debug {
    /// Says that something waits. Must not wait for anything itself.
    fn announce(&self, announcement: &Announcement);
}

/// Says nothing, where nobody is to be disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Silence;

impl Announce for Silence {
    fn announce(&self, _: &Announcement) {}
}

impl Announcement {
    /// What a terminal gets: the bell, and a notification where it knows how to show one (OSC 9).
    pub fn for_terminal(&self) -> String {
        format!("\x07\x1b]9;{self}\x1b\\")
    }
}

impl fmt::Display for Announcement {
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
