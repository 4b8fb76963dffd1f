//! State shared by connections and the test: the script and the recorded requests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use crate::endpoint::{self, Endpoint};
use crate::{Answer, Latch, Received, SIDE_TEXT, Script, Turn};

/// Requests that are kept. The oldest go first.
const MAX_KEPT_REQUESTS: usize = 10_000;
/// Unmet expectations that are kept.
const MAX_MISMATCHES: usize = 100;

/// Test of a request and its number among the requests with tools.
type Predicate = Box<dyn Fn(&Received, usize) -> bool + Send>;

pub(crate) struct Rule {
    pub(crate) predicate: Predicate,
    pub(crate) answer: Answer,
    /// Number of answers left. `None` is without limit.
    pub(crate) times: Option<usize>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    queue: VecDeque<Answer>,
    received: Vec<Received>,
    /// Number of requests, and of requests with tools.
    counts: (usize, usize),
    /// Answer to a request that no rule and no turn answers.
    fallback: Option<Answer>,
    mismatches: Vec<String>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes waiting threads.
    changed: Condvar,
    /// Wakes waiting tasks.
    version: watch::Sender<u64>,
    /// Holds the answers and chunks that a script releases step by step.
    pub(crate) steps: Latch,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("received", &self.received().len()).finish_non_exhaustive()
    }
}

/// An answer with an id that is unique on the server.
pub(crate) struct Chosen {
    pub(crate) answer: Answer,
    pub(crate) id: String,
}

impl Shared {
    pub(crate) fn new(queue: VecDeque<Answer>) -> Self {
        Self::with(State { queue, ..State::default() }, Latch::closed())
    }

    pub(crate) fn playing(script: Script) -> Self {
        let Script { turns, rules, otherwise, steps } = script;
        let rules = rules.into_iter().map(|rule| Rule {
            predicate: Box::new(move |received, number| rule.when.matches(received, number)),
            answer: rule.answer,
            times: rule.times,
        });
        let state = State { queue: turns.into(), rules: rules.collect(), fallback: otherwise, ..State::default() };
        Self::with(state, steps)
    }

    fn with(state: State, steps: Latch) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new(), version: watch::Sender::new(0), steps }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test's predicate may panic while the lock is held; the state stays valid.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn add_rule(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    pub(crate) fn add_next(&self, answer: Answer) {
        self.state().queue.push_back(answer);
    }

    pub(crate) fn queued(&self) -> usize {
        self.state().queue.len()
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    pub(crate) fn mismatches(&self) -> Vec<String> {
        self.state().mismatches.clone()
    }

    /// Wakes all waiting threads and tasks.
    pub(crate) fn notify(&self) {
        self.version.send_modify(|version| *version += 1);
        // Taking the lock ensures that no thread is between its check and its wait.
        drop(self.state());
        self.changed.notify_all();
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Blocks until the predicate holds. Returns the recorded requests as an error after `limit`.
    #[allow(clippy::disallowed_methods, reason = "the limit of a wait is real time")]
    pub(crate) fn wait(
        &self,
        mut holds: impl FnMut(&[Received]) -> bool,
        limit: Duration,
    ) -> Result<(), Vec<Received>> {
        #[expect(clippy::disallowed_methods, reason = "a blocked test has no clock that could be passed in")]
        let start = Instant::now();
        let mut state = self.state();
        while !holds(&state.received) {
            let Some(left) = limit.checked_sub(start.elapsed()) else { return Err(state.received.clone()) };
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        Ok(())
    }

    /// Records a request and chooses its answer under one lock, so that the n-th request gets the n-th turn.
    pub(crate) fn choose(&self, received: &Received) -> Chosen {
        let chosen = self.state().choose(received);
        self.notify();
        chosen
    }
}

impl State {
    fn choose(&mut self, received: &Received) -> Chosen {
        if self.received.len() == MAX_KEPT_REQUESTS {
            self.received.remove(0);
        }
        self.received.push(received.clone());
        self.counts.0 += 1;
        let is_turn = received.asks_for_a_turn();
        self.counts.1 += usize::from(is_turn);
        let (all, number) = self.counts;
        let id = if is_turn { number.to_string() } else { format!("side_{all}") };
        let answer = self
            .by_rule(received, number)
            .or_else(|| if is_turn { self.next_turn(received, number) } else { None })
            .unwrap_or_else(|| unscripted(received, self.fallback.as_ref()));
        Chosen { answer, id }
    }

    fn by_rule(&mut self, received: &Received, number: usize) -> Option<Answer> {
        let index = self.rules.iter().position(|rule| (rule.predicate)(received, number))?;
        let rule = &mut self.rules[index];
        match &mut rule.times {
            None => Some(rule.answer.clone()),
            Some(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 { Some(self.rules.remove(index).answer) } else { Some(rule.answer.clone()) }
            }
        }
    }

    fn next_turn(&mut self, received: &Received, number: usize) -> Option<Answer> {
        let expectation = self.queue.front()?.expectation.as_ref();
        let unmet = expectation.and_then(|expected| {
            let mismatch = expected.condition.mismatch(received, number)?;
            Some(format!("{}: the script expects another request: {mismatch}", expected.place))
        });
        let Some(mismatch) = unmet else { return self.queue.pop_front() };
        let answer = Answer::error(400, &mismatch);
        if self.mismatches.len() < MAX_MISMATCHES {
            self.mismatches.push(mismatch);
        }
        Some(answer)
    }
}

/// Returns the default answer for a request that no rule and no turn answers.
fn unscripted(received: &Received, fallback: Option<&Answer>) -> Answer {
    let ok = |body: serde_json::Value| Answer::status(200, body.to_string());
    match Endpoint::of(received) {
        Endpoint::Answer(_) | Endpoint::Stream(_) => fallback.cloned().unwrap_or_else(|| Turn::says(SIDE_TEXT).into()),
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
