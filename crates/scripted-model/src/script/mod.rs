//! Scripts in YAML. `docs/scripted-model.md` describes the format.

mod error;
mod format;

pub use error::ScriptError;

use crate::condition::Condition;
use crate::{Answer, Latch};

/// Bytes of a script.
pub const MAX_SCRIPT_BYTES: usize = 4 << 20;
/// Turns of a script, repetitions included.
const MAX_TURNS: usize = 10_000;

/// A script for a [`ModelServer`](crate::ModelServer).
#[derive(Clone, Debug)]
pub struct Script {
    /// Answers to the requests with tools, in order.
    pub(crate) turns: Vec<Answer>,
    pub(crate) rules: Vec<ScriptRule>,
    /// Answer to a request that no rule and no turn answers.
    pub(crate) otherwise: Option<Answer>,
    /// Releases what the script holds.
    pub(crate) steps: Latch,
}

/// An answer to the requests that meet a condition.
#[derive(Clone, Debug)]
pub(crate) struct ScriptRule {
    pub(crate) when: Condition,
    pub(crate) answer: Answer,
    pub(crate) times: Option<usize>,
}

impl Script {
    /// Reads a script. `file` is its name in errors.
    ///
    /// ```
    /// use sayso_scripted_model::Script;
    ///
    /// let script = Script::parse("turns:\n  - text: Hello", "hello.yaml")?;
    /// assert_eq!(script.turn_count(), 1);
    /// # Ok::<(), sayso_scripted_model::ScriptError>(())
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Self, ScriptError> {
        if text.len() > MAX_SCRIPT_BYTES {
            let message = format!("the script has more than {} MiB", MAX_SCRIPT_BYTES >> 20);
            return Err(ScriptError::new(file, None, message, "split it into several scripts"));
        }
        format::read(text, file)
    }

    /// Returns the number of turns, repetitions included.
    pub fn turn_count(&self) -> usize {
        self.turns.len()
    }

    /// Returns the number of rules.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }
}
