//! The inbox of a reviewer: pending changes in the order in which they are asked about.

use std::collections::VecDeque;

use sayso_api::proto::RequestSummary;
use sayso_review::{Cause, ChangeId, ChangeRecord, Event, RequestId, RequestStep, Ruling};

use crate::change::{applied_file_summary, change_summary, list_files};
use crate::escape::escape_unprintable;
use crate::file_review::Leave;
use crate::request::pause_reason_text;
use crate::words::{count, format_size, join_numbers};

/// An event that concerns the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// A change was proposed.
    Arrived(ChangeId),
    /// A change is no longer pending.
    Settled(ChangeId),
    /// A request to a model is held. Requests are decided elsewhere.
    RequestHeld(RequestId),
}

impl InboxEvent {
    /// Returns the effect of an event on the inbox, if it has one.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Proposed { change, .. } => Some(Self::Arrived(*change)),
            Event::Decided { change, .. } | Event::Ended { change, .. } => Some(Self::Settled(*change)),
            Event::Request(event) if matches!(event.step, RequestStep::Paused { .. }) => {
                Some(Self::RequestHeld(event.request))
            }
            _ => None,
        }
    }
}

/// The answer of [`Inbox::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveResult {
    /// Call [`Inbox::next_change`].
    Continue,
    /// There is no previous change. The current one is asked about again.
    NoPrevious,
    /// The person quits. So many changes are still pending.
    Quit { pending: usize },
}

/// Pending changes, each once. A change that was put off comes again after the others.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: VecDeque<ChangeId>,
    /// The last so many of `waiting` were put off since the last decision.
    put_off: usize,
    /// The change that the person is asked about. Empty again once others have decided it.
    current: Option<ChangeId>,
}

impl Inbox {
    /// Starts with changes, oldest first.
    pub fn new(changes: impl IntoIterator<Item = ChangeId>) -> Self {
        let mut inbox = Self::default();
        inbox.waiting.extend(changes);
        inbox
    }

    /// Applies an event of the stream.
    pub fn apply(&mut self, event: InboxEvent) {
        match event {
            InboxEvent::Arrived(change) if !self.waiting.contains(&change) => self.waiting.push_back(change),
            InboxEvent::Arrived(_) | InboxEvent::RequestHeld(_) => {}
            InboxEvent::Settled(change) => {
                self.waiting.retain(|waiting| *waiting != change);
                self.current = self.current.filter(|current| *current != change);
            }
        }
    }

    /// Takes the next change. `None` if every change is decided or was put off.
    pub fn next_change(&mut self) -> Option<ChangeId> {
        self.current = if self.put_off < self.waiting.len() { self.waiting.pop_front() } else { None };
        self.current
    }

    /// The change that the person is asked about, while it is pending.
    pub fn current(&self) -> Option<ChangeId> {
        self.current
    }

    /// Records that the current change was decided.
    pub fn decided(&mut self) {
        self.current = None;
        self.put_off = 0;
    }

    /// Drops the current change. It stays pending.
    pub fn skip(&mut self) {
        self.current = None;
    }

    /// Records that the person left `change` without a decision.
    pub fn leave(&mut self, change: ChangeId, leave: Leave) -> LeaveResult {
        self.current = None;
        match leave {
            Leave::Later => {
                self.waiting.push_back(change);
                self.put_off += 1;
                LeaveResult::Continue
            }
            Leave::Back => {
                self.waiting.push_front(change);
                // The change that was put off last is the previous one.
                if self.put_off == 0 {
                    return LeaveResult::NoPrevious;
                }
                self.waiting.rotate_right(1);
                self.put_off -= 1;
                LeaveResult::Continue
            }
            Leave::Quit => LeaveResult::Quit { pending: self.waiting.len() + 1 },
        }
    }

    /// Changes that were put off.
    pub fn put_off(&self) -> usize {
        self.put_off
    }
}

/// `true` if a person has to decide a pending change.
///
/// A change that a rule lets through is pending until it is applied, or until an earlier change of the same files is decided. An undo,
/// redo or restore is a person's own decision.
pub fn needs_person(record: &ChangeRecord) -> bool {
    let is_own = matches!(record.cause, Cause::Undo { .. } | Cause::Redo { .. } | Cause::Restore { .. });
    let is_ruled = record.ruling.as_ref().is_some_and(|ruling| ruling.ruling != Ruling::Ask);
    !is_own && (!is_ruled || !record.predecessors.is_empty())
}

/// Summarises the changes of a turn that wait for a review: `review of 3, 4: a.rs (+1 -0)`.
pub fn turn_summary(records: &[&ChangeRecord]) -> String {
    let numbers: Vec<ChangeId> = records.iter().map(|record| record.change).collect();
    let files: Vec<_> =
        records.iter().flat_map(|record| record.files.iter().map(move |file| (*record, file))).collect();
    let files = if files.is_empty() {
        records.iter().map(|record| change_summary(record)).collect::<Vec<_>>().join(", ")
    } else {
        list_files(&files, |(record, file)| applied_file_summary(record, file))
    };
    format!("review of {}: {files}", join_numbers(&numbers))
}

/// Summarises a held request: its model, its size, edits and the reason for the pause.
pub fn request_summary(request: &RequestSummary) -> String {
    let received = request.received.as_option();
    let model = received.and_then(|received| received.model.as_deref()).unwrap_or("unknown model");
    let body = request.sent.as_option().or_else(|| received.and_then(|received| received.body.as_option()));
    let mut parts = vec![escape_unprintable(model).into_owned(), format_size(body.map_or(0, |body| body.size))];
    if request.edited {
        parts.push("edited".to_owned());
    }
    if let Some(reason) = request.pause_reason.as_option() {
        parts.push(pause_reason_text(reason));
    }
    format!("request to {}", parts.join(", "))
}

/// Points to the command for held requests. `None` if none is held.
pub fn held_requests_text(held: u64) -> Option<String> {
    let verb = if held == 1 { "waits" } else { "wait" };
    (held > 0).then(|| format!("{} {verb}: `sayso request list --waiting`", count(held, "request")))
}

/// Tells how many changes are still pending.
pub fn still_pending_text(pending: usize) -> String {
    let changes = count(pending as u64, "change");
    let verb = if pending == 1 { "still waits" } else { "still wait" };
    format!("{changes} {verb}: `sayso review`.")
}

/// Formats a number of pending changes with its verb: `1 waits`, `2 wait`.
pub fn waits_text(number: u64) -> String {
    format!("{number} {}", if number == 1 { "waits" } else { "wait" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_during_listing_is_shown_once() {
        let mut inbox = Inbox::new([1, 2]);
        inbox.apply(InboxEvent::Arrived(2));
        inbox.apply(InboxEvent::Arrived(3));
        assert_eq!([(); 4].map(|()| inbox.next_change()), [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn settled_change_ends_its_question() {
        let mut inbox = Inbox::new([1, 2]);
        assert_eq!(inbox.next_change(), Some(1));
        inbox.apply(InboxEvent::Settled(1));
        inbox.apply(InboxEvent::Settled(2));
        assert_eq!((inbox.current(), inbox.next_change()), (None, None));
    }

    #[test]
    fn put_off_change_returns_after_the_others() {
        let mut inbox = Inbox::new([1, 2]);
        assert_eq!(inbox.next_change(), Some(1));
        assert_eq!(inbox.leave(1, Leave::Later), LeaveResult::Continue);
        assert_eq!(inbox.next_change(), Some(2));
        inbox.decided();
        assert_eq!(inbox.next_change(), Some(1));
        assert_eq!(inbox.leave(1, Leave::Later), LeaveResult::Continue);
        assert_eq!((inbox.next_change(), inbox.put_off()), (None, 1));
    }

    #[test]
    fn back_returns_to_the_change_put_off_last() {
        let mut inbox = Inbox::new([1, 2]);
        assert_eq!(inbox.next_change(), Some(1));
        assert_eq!(inbox.leave(1, Leave::Back), LeaveResult::NoPrevious);
        assert_eq!(inbox.next_change(), Some(1));
        inbox.leave(1, Leave::Later);
        assert_eq!(inbox.next_change(), Some(2));
        assert_eq!(inbox.leave(2, Leave::Back), LeaveResult::Continue);
        assert_eq!([inbox.next_change(), inbox.next_change()], [Some(1), Some(2)]);
    }
}
