//! What the connections and the test share: the script, and what arrived.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use super::asked::{self, Asked};
use super::{Answer, Received, SIDE_TEXT, Turn};

/// Says whether a rule is about a request.
type Predicate = Box<dyn Fn(&Received) -> bool + Send>;

/// How many requests a rule answers.
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
    /// For those who wait in a thread.
    changed: Condvar,
    /// For those who wait in a task.
    version: watch::Sender<u64>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("received", &self.received().len()).finish_non_exhaustive()
    }
}

/// An answer, and what tells it from others.
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
        // A predicate of a test that panicked says nothing about the rest.
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

    /// Says that something happened.
    pub(super) fn tell(&self) {
        self.version.send_modify(|version| *version += 1);
        // The lock makes sure that nobody is between looking and waiting.
        drop(self.state());
        self.changed.notify_all();
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits in this thread until something holds of what arrived, or says that it took too long.
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

    /// Records a request and gives it its answer in one step, so that the n-th request has the n-th turn.
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
        self.tell();
        chosen
    }
}

/// What a request gets that no script is about.
fn unscripted(received: &Received) -> Answer {
    let ok = |body: serde_json::Value| Answer::status(200, body.to_string());
    match Asked::of(received) {
        Asked::Answer(_) | Asked::Stream(_) => Turn::says(SIDE_TEXT).into(),
        Asked::CountTokens(api) => ok(asked::token_count(api, received)),
        Asked::Models => ok(json!({"object": "list", "data": [], "models": []})),
        Asked::Presence => ok(json!({})),
        Asked::Upgrade => Answer::status(426, "{}"),
        Asked::Unknown => {
            let Received { method, target, .. } = received;
            Answer::error(404, &format!("the scripted model knows no {method} {target}"))
        }
    }
}
