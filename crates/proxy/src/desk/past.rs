//! What a client may send again: it is not asked about twice, and never for ever.

use std::collections::VecDeque;
use std::sync::Arc;

use sayso_review::RequestId;
use sayso_wire::ModelRequest;

use super::Captures;
use super::whose::Conversation;

/// How many are remembered.
const MOST: usize = 128;
/// How long one that was cancelled is refused again, in milliseconds: clients try again within seconds, people later.
const CANCELED: i64 = 30_000;
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
        edited: Option<Arc<ModelRequest>>,
    },
    /// Its client went away while it waited: should it come again, its edits are still there.
    Gone {
        /// With the edits.
        edited: Option<Arc<ModelRequest>>,
        /// Whether they are to be saved.
        captures: Captures,
    },
}

impl Fate {
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
    time: i64,
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
        self.requests.push_back(Remembered { request, conversation, identity, fate, time: now });
    }

    /// What became of a request that comes again. One that was cancelled stays so; the others are taken up.
    pub(crate) fn take(&mut self, conversation: &Conversation, identity: &str, now: i64) -> Option<(RequestId, Fate)> {
        let same = |other: &Remembered| other.conversation == *conversation && other.identity == identity;
        let place = self.requests.iter().position(same)?;
        let found = &mut self.requests[place];
        if matches!(found.fate, Fate::Canceled) {
            found.time = now;
            return Some((found.request, Fate::Canceled));
        }
        self.requests.remove(place).map(|found| (found.request, found.fate))
    }

    /// A request was answered: should it come again, it is another one.
    pub(crate) fn answered(&mut self, request: RequestId) {
        self.requests.retain(|other| other.request != request);
    }

    /// Forgets all that belongs to sessions that are over.
    pub(crate) fn forget(&mut self, over: impl Fn(&str) -> bool) {
        self.requests.retain(|other| !over(other.conversation.session()));
    }

    /// Forgets those that would wait again, in sessions in which nothing waits any more.
    pub(crate) fn forget_gone(&mut self, sent_normally: impl Fn(&str) -> bool) {
        let waits = |other: &Remembered| matches!(other.fate, Fate::Gone { .. });
        self.requests.retain(|other| !(waits(other) && sent_normally(other.conversation.session())));
    }

    /// Whether there is nothing to look out for.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn forget_old(&mut self, now: i64) {
        self.requests.retain(|other| now - other.time < other.fate.lasts());
    }
}
