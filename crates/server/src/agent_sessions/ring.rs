//! Events of a session with numbers, for clients that join, lose their connection and come back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use buffa::Message as _;
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;
use tokio::sync::watch;

/// Events that are kept. A client that is further behind reads the conversation again.
const MAX_EVENTS: usize = 20_000;
/// Size of the kept events, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The last events of a session, numbered from 1 without gaps.
#[derive(Debug)]
pub(crate) struct EventRing {
    state: Mutex<RingState>,
    /// Number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct RingState {
    events: VecDeque<Arc<proto::InvokeEvent>>,
    bytes: usize,
    last: u64,
    /// Number of the first event of the running or last invocation.
    invocation_start: u64,
    /// Id of the invocation of the last event.
    invocation: String,
}

/// Result of a read.
#[derive(Debug, PartialEq)]
pub(crate) enum RingRead {
    /// The events after the number, oldest first. Empty if there are none yet.
    Events(Vec<Arc<proto::InvokeEvent>>),
    /// Events after the number are no longer kept, or the number is of an earlier engine. Reading continues after this number.
    Reset { next: u64 },
}

impl Default for EventRing {
    fn default() -> Self {
        Self { state: Mutex::default(), last: watch::Sender::new(0) }
    }
}

impl EventRing {
    fn state(&self) -> MutexGuard<'_, RingState> {
        // Each change is complete before a panic could occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event and returns its number.
    pub(crate) fn push(&self, time_ms: i64, invocation: &str, event: Event) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if !invocation.is_empty() && state.invocation != invocation {
            invocation.clone_into(&mut state.invocation);
            state.invocation_start = number;
        }
        let event = proto::InvokeEvent {
            number,
            time_ms,
            invocation: invocation.to_owned(),
            event: Some(event),
            ..Default::default()
        };
        state.bytes += size(&event);
        state.events.push_back(Arc::new(event));
        while state.events.len() > MAX_EVENTS || (state.bytes > MAX_BYTES && state.events.len() > 1) {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= size(&oldest);
            }
        }
        drop(state);
        self.last.send_replace(number);
        number
    }

    /// Continues after a number, which is higher than those of an earlier engine. No effect if there are events.
    pub(crate) fn continue_after(&self, number: u64) {
        let mut state = self.state();
        if state.last == 0 {
            (state.last, state.invocation_start) = (number, number + 1);
        }
    }

    /// Returns the number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.state().last
    }

    /// Returns the number before the first event of the running or last invocation.
    pub(crate) fn before_invocation(&self) -> u64 {
        self.state().invocation_start.saturating_sub(1)
    }

    /// Returns the events after a number.
    pub(crate) fn after(&self, number: u64) -> RingRead {
        let state = self.state();
        let first = state.last + 1 - state.events.len() as u64;
        if number > state.last || number + 1 < first {
            return RingRead::Reset { next: state.invocation_start.max(first).saturating_sub(1) };
        }
        let skipped = usize::try_from(number + 1 - first).unwrap_or(usize::MAX);
        RingRead::Events(state.events.iter().skip(skipped).map(Arc::clone).collect())
    }

    /// Wakes all readers, because the session became idle.
    pub(crate) fn notify(&self) {
        self.last.send_modify(|_| {});
    }

    /// Returns a receiver that changes with each event.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

fn size(event: &proto::InvokeEvent) -> usize {
    event.encode_to_vec().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Event {
        proto::TextDelta { text: text.to_owned(), ..Default::default() }.into()
    }

    fn numbers(read: &RingRead) -> Vec<u64> {
        match read {
            RingRead::Events(events) => events.iter().map(|event| event.number).collect(),
            RingRead::Reset { next } => panic!("reset to {next}"),
        }
    }

    #[test]
    fn reading_continues_without_gap_or_duplicate() {
        let ring = EventRing::default();
        assert_eq!(numbers(&ring.after(0)), [0_u64; 0]);
        for _ in 0..3 {
            ring.push(1, "i1", text("a"));
        }
        assert_eq!(numbers(&ring.after(0)), [1, 2, 3]);
        assert_eq!(numbers(&ring.after(2)), [3]);
        assert_eq!(numbers(&ring.after(3)), [0_u64; 0]);
        ring.push(1, "i2", text("b"));
        assert_eq!((ring.before_invocation(), ring.last()), (3, 4));
    }

    #[test]
    fn number_of_earlier_engine_resets() {
        let ring = EventRing::default();
        ring.push(1, "i1", text("a"));
        assert_eq!(ring.after(57), RingRead::Reset { next: 0 });
    }

    #[test]
    fn dropped_events_reset_reader() {
        let ring = EventRing::default();
        let large = "x".repeat(MAX_BYTES / 4);
        for _ in 0..8 {
            ring.push(1, "i1", text(&large));
        }
        let RingRead::Reset { next } = ring.after(0) else { panic!("the first events are gone") };
        let kept = numbers(&ring.after(next));
        assert_eq!(kept.last(), Some(&8));
        assert_eq!(kept.first(), Some(&(next + 1)));
    }

    #[tokio::test]
    async fn push_wakes_subscriber() {
        let ring = EventRing::default();
        let mut changed = ring.subscribe();
        ring.push(1, "", text("a"));
        assert!(changed.changed().await.is_ok());
        assert_eq!(*changed.borrow(), 1);
    }
}
