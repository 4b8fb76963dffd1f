//! Detection of a model that repeats the same call.

/// Number of equal calls in a row at which the agent asks.
const ASK_AT: u32 = 3;
/// Number of equal calls in a row at which the invocation fails if no surface answers.
const FAIL_AT: u32 = 6;

/// Counts equal calls in a row.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    last: Option<(String, String)>,
    count: u32,
}

/// The reaction to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    None,
    Ask,
    Fail,
}

impl Repeats {
    /// Counts a call with its arguments.
    pub(crate) fn count(&mut self, tool: &str, arguments: &str) -> Repetition {
        let key = (tool.to_owned(), arguments.to_owned());
        if self.last.as_ref() == Some(&key) {
            self.count += 1;
        } else {
            (self.last, self.count) = (Some(key), 1);
        }
        match self.count {
            ..ASK_AT => Repetition::None,
            FAIL_AT.. => Repetition::Fail,
            _ => Repetition::Ask,
        }
    }

    /// Starts over, because the user lets the agent go on.
    pub(crate) fn reset(&mut self) {
        self.count = 0;
    }
}
