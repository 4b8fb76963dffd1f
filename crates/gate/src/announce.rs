//! What is said where nobody looks: a count of what waits, to a terminal that we own and to a command of the user's choice.

use std::fmt;

use sayso_review::ChangeId;

/// Something began to wait for a verdict, and no surface is attached that would show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// How many wait.
    pub pending: usize,
    /// The one that came.
    pub change: ChangeId,
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
        match self.pending {
            1 => f.write_str("sayso: 1 decision waits for you"),
            pending => write!(f, "sayso: {pending} decisions wait for you"),
        }
    }
}
