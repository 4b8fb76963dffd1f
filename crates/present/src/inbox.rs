//! The inbox of a reviewer: pending changes in the order in which they are asked about.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sayso_api::inbox::{InboxList, InboxUpdate};
use sayso_api::proto::InboxItem;
use sayso_api::proto::oneof::inbox_item::Subject;
use sayso_review::{Cause, ChangeId, ChangeRecord, RequestId, RequestRecord, Ruling};

use crate::change::{applied_file_summary, change_summary, list_files};
use crate::escape::escape_unprintable;
use crate::file_review::Leave;
use crate::request::pause_reason_text;
use crate::words::{count, format_size, join_numbers};

/// A change of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// A change or the review of a turn awaits a verdict.
    Arrived(ChangeId),
    /// A change no longer awaits a verdict.
    Settled(ChangeId),
    /// A request to a model is held. Requests are decided elsewhere.
    RequestHeld(RequestId),
}

/// Tells what is new in the engine's list.
#[derive(Debug, Default)]
pub struct InboxTracker {
    /// Start of a session id. `None` is all sessions.
    session: Option<String>,
    /// The listed items that a person can be asked about or pointed to, by key.
    listed: BTreeMap<String, ListedItem>,
    /// All changes that were ever listed.
    known: BTreeSet<ChangeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListedItem {
    Change(ChangeId),
    Request(RequestId),
}

impl ListedItem {
    /// `None` for a turn whose review is not open.
    fn of(item: &InboxItem) -> Option<Self> {
        match item.subject.as_ref()? {
            Subject::Change(subject) => Some(Self::Change(subject.change)),
            Subject::Turn(subject) => subject.review.map(Self::Change),
            Subject::Request(subject) => Some(Self::Request(subject.request)),
        }
    }
}

impl InboxTracker {
    /// Follows the sessions whose ids start with `session`. The requests of `list` are not reported.
    pub fn new(session: Option<String>, list: &InboxList) -> Self {
        let mut tracker = Self { session, ..Self::default() };
        for item in list.items() {
            if let Some(request @ ListedItem::Request(_)) = ListedItem::of(item) {
                tracker.listed.insert(item.key.clone(), request);
            }
        }
        tracker
    }

    /// `true` if a change was listed at any time.
    pub fn has_listed(&self, change: ChangeId) -> bool {
        self.known.contains(&change)
    }

    /// Returns the effects of an update of the list.
    pub fn apply(&mut self, update: &InboxUpdate, list: &InboxList) -> Vec<InboxEvent> {
        let mut events = Vec::new();
        match update {
            InboxUpdate::Unchanged => {}
            InboxUpdate::Removed { key } => self.remove(key, &mut events),
            InboxUpdate::Set { key } => {
                if let Some(item) = list.get(key) {
                    self.set(item, &mut events);
                }
            }
            InboxUpdate::Listed => {
                let keys: BTreeSet<&str> = list.items().iter().map(|item| item.key.as_str()).collect();
                let gone: Vec<String> =
                    self.listed.keys().filter(|key| !keys.contains(key.as_str())).cloned().collect();
                for key in &gone {
                    self.remove(key, &mut events);
                }
                list.items().iter().for_each(|item| self.set(item, &mut events));
            }
        }
        events
    }

    fn set(&mut self, item: &InboxItem, events: &mut Vec<InboxEvent>) {
        let is_followed = |session: &String| item.session.as_ref().is_some_and(|of| of.starts_with(session.as_str()));
        let now = ListedItem::of(item).filter(|_| self.session.as_ref().is_none_or(is_followed));
        if self.listed.get(&item.key).copied() == now {
            return;
        }
        self.remove(&item.key, events);
        match now {
            None => return,
            Some(ListedItem::Change(change)) => {
                self.known.insert(change);
                events.push(InboxEvent::Arrived(change));
            }
            Some(ListedItem::Request(request)) => events.push(InboxEvent::RequestHeld(request)),
        }
        self.listed.extend(now.map(|now| (item.key.clone(), now)));
    }

    fn remove(&mut self, key: &str, events: &mut Vec<InboxEvent>) {
        if let Some(ListedItem::Change(change)) = self.listed.remove(key) {
            events.push(InboxEvent::Settled(change));
        }
    }
}

/// Returns the pending changes of a list, without the reviews of turns.
pub fn pending_changes(list: &InboxList) -> Vec<ChangeId> {
    let changes = list.items().iter().filter_map(|item| match item.subject.as_ref()? {
        Subject::Change(subject) => Some(subject.change),
        Subject::Turn(_) | Subject::Request(_) => None,
    });
    changes.collect()
}

/// Returns the turns to review of a list, each as a session and a turn.
pub fn turns_to_review(list: &InboxList) -> Vec<(String, String)> {
    let turns = list.items().iter().filter_map(|item| match item.subject.as_ref()? {
        Subject::Turn(subject) => Some((subject.session.clone(), subject.turn.clone())),
        Subject::Change(_) | Subject::Request(_) => None,
    });
    turns.collect()
}

/// Counts the held requests of a list.
pub fn held_requests(list: &InboxList) -> u64 {
    list.items().iter().filter(|item| matches!(item.subject, Some(Subject::Request(_)))).count() as u64
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
pub fn request_summary(request: &RequestRecord) -> String {
    let model = request.received.model.as_deref().unwrap_or("unknown model");
    let body = request.sent.as_ref().unwrap_or(&request.received.body);
    let mut parts = vec![escape_unprintable(model).into_owned(), format_size(body.size)];
    if request.is_edited() {
        parts.push("edited".to_owned());
    }
    parts.extend(request.paused.as_ref().map(pause_reason_text));
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
    use sayso_api::proto::inbox_item::{ChangeSubject, RequestSubject, TurnSubject};
    use sayso_api::proto::oneof::watch_inbox_response::Kind;
    use sayso_api::proto::watch_inbox_response::Page;

    use super::*;

    fn item(key: &str, session: &str, subject: impl Into<Subject>) -> InboxItem {
        let (key, session) = (key.to_owned(), Some(session.to_owned()));
        InboxItem { key, session, subject: Some(subject.into()), ..Default::default() }
    }

    fn change(change: u64, session: &str) -> InboxItem {
        item(&format!("change:{change}"), session, ChangeSubject { change, ..Default::default() })
    }

    fn turn(review: Option<u64>) -> InboxItem {
        item("turn:s/t", "s", TurnSubject { review, ..Default::default() })
    }

    fn request(request: u64) -> InboxItem {
        item(&format!("request:{request}"), "s", RequestSubject { request, ..Default::default() })
    }

    #[test]
    fn tracker_reports_what_is_new() {
        use InboxEvent::{Arrived, RequestHeld, Settled};
        let mut list = InboxList::new(vec![request(4)]);
        let mut tracker = InboxTracker::new(Some("s".to_owned()), &list);
        let apply = |tracker: &mut InboxTracker, list: &mut InboxList, message: Kind| {
            let update = list.apply(message);
            tracker.apply(&update, list)
        };
        let page = |items: Vec<InboxItem>| Kind::Page(Box::new(Page { items, ..Default::default() }));
        let mut send = |message| apply(&mut tracker, &mut list, message);
        let listed = page(vec![change(1, "s1"), change(2, "other"), turn(None), request(4), request(5)]);
        assert_eq!(send(listed), [Arrived(1), RequestHeld(5)]);
        assert_eq!(send(Kind::Updated(Box::new(change(1, "s1")))), []);
        assert_eq!(send(Kind::Updated(Box::new(turn(Some(7))))), [Arrived(7)]);
        assert_eq!(send(Kind::Updated(Box::new(turn(Some(8))))), [Settled(7), Arrived(8)]);
        assert_eq!(send(Kind::Removed("request:5".to_owned())), []);
        assert_eq!(send(page(vec![turn(Some(8)), change(3, "s")])), [Settled(1), Arrived(3)]);
        assert_eq!([1, 2, 3, 7].map(|change| tracker.has_listed(change)), [true, false, true, true]);
    }

    #[test]
    fn list_divides_into_changes_turns_and_requests() {
        let list = InboxList::new(vec![change(1, "s"), turn(Some(7)), request(4), change(2, "s")]);
        assert_eq!(pending_changes(&list), [1, 2]);
        assert_eq!(turns_to_review(&list), [(String::new(), String::new())]);
        assert_eq!(held_requests(&list), 1);
    }

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
