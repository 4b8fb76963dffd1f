//! State shared by connections and the test: the script and the recorded requests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use super::endpoint::{self, Endpoint};
use super::{Answer, Received, SIDE_TEXT, Turn};

type Predicate = Box<dyn Fn(&Received) -> bool + Send>;

/// Lifetime of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Always,
}

pub(super) struct Rule {
    pub(super) predicate: Predicate,
    pub(super) answer: Answer,
    pub(super) times: Times,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    queue: VecDeque<Answer>,
    received: Vec<Received>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes waiting threads.
    changed: Condvar,
    /// Wakes waiting tasks.
    version: watch::Sender<u64>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("received", &self.received().len()).finish_non_exhaustive()
    }
}

/// An answer with an id that is unique on the server.
pub(super) struct Chosen {
    pub(super) answer: Answer,
    pub(super) id: String,
}

impl Shared {
    pub(super) fn new(queue: VecDeque<Answer>) -> Self {
        let state = State { queue, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new(), version: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test's predicate may panic while the lock is held; the state stays valid.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn add_rule(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    pub(super) fn add_next(&self, answer: Answer) {
        self.state().queue.push_back(answer);
    }

    pub(super) fn queued(&self) -> usize {
        self.state().queue.len()
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// Wakes all waiting threads and tasks.
    pub(super) fn notify(&self) {
        self.version.send_modify(|version| *version += 1);
        // Taking the lock ensures that no thread is between its check and its wait.
        drop(self.state());
        self.changed.notify_all();
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Blocks until the predicate holds. Returns the recorded requests as an error after `limit`.
    pub(super) fn wait(
        &self,
        mut holds: impl FnMut(&[Received]) -> bool,
        limit: Duration,
    ) -> Result<(), Vec<Received>> {
        let start = Instant::now();
        let mut state = self.state();
        while !holds(&state.received) {
            let Some(left) = limit.checked_sub(start.elapsed()) else { return Err(state.received.clone()) };
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        Ok(())
    }

    /// Records a request and chooses its answer under one lock, so that the n-th request gets the n-th turn.
    pub(super) fn choose(&self, received: &Received) -> Chosen {
        let chosen = {
            let mut state = self.state();
            state.received.push(received.clone());
            let turn = received.asks_for_a_turn();
            let id = if turn {
                state.received.iter().filter(|received| received.asks_for_a_turn()).count().to_string()
            } else {
                format!("side_{}", state.received.len())
            };
            let answer = if let Some(index) = state.rules.iter().position(|rule| (rule.predicate)(received)) {
                match state.rules[index].times {
                    Times::Once => state.rules.remove(index).answer,
                    Times::Always => state.rules[index].answer.clone(),
                }
            } else if let Some(answer) = turn.then(|| state.queue.pop_front()).flatten() {
                answer
            } else {
                unscripted(received)
            };
            Chosen { answer, id }
        };
        self.notify();
        chosen
    }
}

/// Returns the default answer for a request that no rule and no turn answers.
fn unscripted(received: &Received) -> Answer {
    let ok = |body: serde_json::Value| Answer::status(200, body.to_string());
    match Endpoint::of(received) {
        Endpoint::Answer(_) | Endpoint::Stream(_) => Turn::says(SIDE_TEXT).into(),
        Endpoint::CountTokens(api) => ok(endpoint::token_count(api, received)),
        Endpoint::Models => ok(json!({"object": "list", "data": [], "models": []})),
        Endpoint::Health => ok(json!({})),
        Endpoint::Upgrade => Answer::status(426, "{}"),
        Endpoint::Unknown => {
            let Received { method, target, .. } = received;
            Answer::error(404, &format!("the scripted model knows no {method} {target}"))
        }
    }
}
