//! What a client may send again: it is not asked about twice, and never for ever.

use std::collections::VecDeque;

use sayso_review::{BodyRecord, RequestId, SavedEdits as SavedOutcome};

use super::whose::Conversation;
use super::{Captures, Work};

/// How many are remembered.
pub(super) const MOST: usize = 128;
/// How long one that was cancelled is refused again, in milliseconds: clients try again within seconds, people later.
const CANCELED: i64 = 30_000;
/// The same in all, however often it comes: some clients try for a minute, and nobody is kept out for ever.
const CANCELED_IN_ALL: i64 = 2 * 60_000;
/// How long others are remembered.
const OTHERS: i64 = 5 * 60_000;

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Fate {
    /// A person cancelled it: should it come again, nobody is asked again.
    Canceled,
    /// A person let it go on, and there is no answer yet: should it come again, it goes on in the same way.
    Approved {
        /// With its edits, if there were any.
        work: Work,
    },
    /// Its client went away while it waited: should it come again, its edits are still there.
    Gone {
        /// With the edits.
        work: Work,
        /// Whether they are to be saved.
        captures: Captures,
    },
    /// It was at an engine that is gone, and has no answer: should it come again, its edits are in the journal.
    HandedOver {
        /// The edits.
        edits: Box<RecordedWork>,
        /// Whether they are to be saved.
        captures: Captures,
        /// What had become of it.
        verdict: Handed,
    },
}

/// What had become of a request at an engine that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It waited.
    Waiting,
    /// A person had let it go on.
    Approved,
}

/// What was made of a request, in the journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedWork {
    pub(super) request: RequestId,
    /// All edits, as a JSON Patch; `None` if there were none.
    pub(super) edited: Option<BodyRecord>,
    /// Those that saved edits made.
    pub(super) laid: Option<BodyRecord>,
    pub(super) saved: SavedOutcome,
}

impl Fate {
    /// Whether the same waits should it come again.
    fn waits(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::HandedOver { verdict: Handed::Waiting, .. })
    }

    fn lasts(&self) -> i64 {
        if matches!(self, Self::Canceled) { CANCELED } else { OTHERS }
    }
}

#[derive(Debug)]
struct Remembered {
    request: RequestId,
    conversation: Conversation,
    /// What it is, by its hash.
    identity: String,
    fate: Fate,
    /// When that was, and when it was first.
    time: i64,
    first: i64,
}

/// What became of the last requests that waited.
#[derive(Debug, Default)]
pub(crate) struct Past {
    requests: VecDeque<Remembered>,
}

impl Past {
    pub(crate) fn remember(
        &mut self,
        request: RequestId,
        conversation: Conversation,
        identity: String,
        fate: Fate,
        now: i64,
    ) {
        self.forget_old(now);
        self.requests.retain(|other| !(other.conversation == conversation && other.identity == identity));
        if self.requests.len() == MOST {
            self.requests.pop_front();
        }
        self.requests.push_back(Remembered { request, conversation, identity, fate, time: now, first: now });
    }

    /// What became of a request that comes again. One that was cancelled stays so; the others are taken up.
    pub(crate) fn take(&mut self, conversation: &Conversation, identity: &str, now: i64) -> Option<(RequestId, Fate)> {
        let same = |other: &Remembered| other.conversation == *conversation && other.identity == identity;
        let place = self.requests.iter().position(same)?;
        let found = &mut self.requests[place];
        if matches!(found.fate, Fate::Canceled) {
            found.time = now.min(found.first + CANCELED_IN_ALL - CANCELED);
            return Some((found.request, Fate::Canceled));
        }
        self.requests.remove(place).map(|found| (found.request, found.fate))
    }

    /// The edits of a request that was at another engine.
    pub(crate) fn handed_over(&self, conversation: &Conversation, identity: &str) -> Option<RecordedWork> {
        let same = |other: &&Remembered| other.conversation == *conversation && other.identity == identity;
        match &self.requests.iter().find(same)?.fate {
            Fate::HandedOver { edits, .. } => Some(RecordedWork::clone(edits)),
            Fate::Canceled | Fate::Approved { .. } | Fate::Gone { .. } => None,
        }
    }

    /// A request that had been let go on is cancelled after all.
    pub(crate) fn cancel(&mut self, request: RequestId, now: i64) {
        for same in self.requests.iter_mut().filter(|other| other.request == request) {
            (same.fate, same.time, same.first) = (Fate::Canceled, now, now);
        }
    }

    /// A request still has no answer: it is remembered from here on.
    pub(crate) fn renew(&mut self, request: RequestId, now: i64) {
        for same in self.requests.iter_mut().filter(|other| other.request == request) {
            same.time = now;
        }
    }

    /// A request was answered: should it come again, it is another one.
    pub(crate) fn answered(&mut self, request: RequestId) {
        self.requests.retain(|other| other.request != request);
    }

    /// Forgets all that belongs to sessions that are over, and says which of it would have waited again.
    pub(crate) fn forget(&mut self, over: impl Fn(&str) -> bool) -> Vec<RequestId> {
        let waited = self.forget_gone(&over);
        self.requests.retain(|other| !over(other.conversation.session()));
        waited
    }

    /// Has those go on that would wait again, in sessions in which nothing waits any more.
    pub(crate) fn approve_gone(&mut self, sent_normally: impl Fn(&str) -> bool) {
        for other in self.requests.iter_mut().filter(|other| sent_normally(other.conversation.session())) {
            match &mut other.fate {
                Fate::Gone { work, .. } => other.fate = Fate::Approved { work: std::mem::take(work) },
                Fate::HandedOver { verdict, .. } => *verdict = Handed::Approved,
                Fate::Canceled | Fate::Approved { .. } => {}
            }
        }
    }

    /// Forgets those that would wait again, in sessions in which nothing waits any more, and says which.
    pub(crate) fn forget_gone(&mut self, sent_normally: impl Fn(&str) -> bool) -> Vec<RequestId> {
        let ends = |other: &&Remembered| other.fate.waits() && sent_normally(other.conversation.session());
        let ended: Vec<RequestId> = self.requests.iter().filter(ends).map(|other| other.request).collect();
        self.requests.retain(|other| !(other.fate.waits() && sent_normally(other.conversation.session())));
        ended
    }

    /// Whether there is nothing to look out for.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn forget_old(&mut self, now: i64) {
        self.requests.retain(|other| now - other.time < other.fate.lasts());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(fate: Fate) -> Past {
        let mut past = Past::default();
        past.remember(1, Conversation::default(), "same".to_owned(), fate, 0);
        past
    }

    fn take(past: &mut Past, now: i64) -> Option<(RequestId, Fate)> {
        past.forget_old(now);
        past.take(&Conversation::default(), "same", now)
    }

    #[test]
    fn one_that_was_cancelled_can_be_asked_about_again_later() {
        let mut past = remembered(Fate::Canceled);
        assert!(take(&mut past, CANCELED - 1).is_some());
        let again = 2 * (CANCELED - 1);
        assert!(take(&mut past, again).is_some(), "its client still tries");
        assert!(take(&mut past, again + CANCELED).is_none(), "nobody tried for long");
        assert!(past.is_empty());
    }

    #[test]
    fn one_that_was_cancelled_is_not_refused_for_ever_however_often_it_comes() {
        let mut past = remembered(Fate::Canceled);
        let refused = (0..).step_by(1_000).take_while(|now| take(&mut past, *now).is_some()).last();
        assert_eq!(refused, Some(CANCELED_IN_ALL - 1_000));
    }

    #[test]
    fn others_are_taken_up_once_and_not_after_long() {
        let gone = || Fate::Gone { work: Work::default(), captures: Captures::No };
        let mut past = remembered(gone());
        assert!(matches!(take(&mut past, OTHERS - 1), Some((1, Fate::Gone { .. }))));
        assert!(take(&mut past, OTHERS - 1).is_none());
        assert!(take(&mut remembered(gone()), OTHERS).is_none());
    }

    #[test]
    fn only_so_many_are_remembered_the_last_ones() {
        let mut past = Past::default();
        for request in 0..=MOST as u64 {
            past.remember(request, Conversation::default(), request.to_string(), Fate::Canceled, 0);
        }
        let known = |past: &mut Past, request: usize| past.take(&Conversation::default(), &request.to_string(), 1);
        assert!(known(&mut past, 0).is_none());
        assert!(known(&mut past, 1).is_some() && known(&mut past, MOST).is_some());
    }

    #[test]
    fn where_requests_are_sent_normally_none_waits_because_it_comes_again() {
        let over =
            |verdict| Fate::HandedOver { edits: Box::new(RecordedWork::default()), captures: Captures::No, verdict };
        for (fate, stays) in [
            (Fate::Canceled, true),
            (Fate::Approved { work: Work::default() }, true),
            (over(Handed::Approved), true),
            (over(Handed::Waiting), false),
        ] {
            let mut past = remembered(fate);
            past.forget_gone(|_| false);
            assert!(!past.is_empty());
            past.forget_gone(|_| true);
            assert_eq!(!past.is_empty(), stays);
        }
    }
}
