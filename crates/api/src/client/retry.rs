//! Retries with exponential backoff.

use std::time::Duration;

/// Limit on the time that a call waits for an engine, summed over its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryBudget {
    Limited(Duration),
    Unlimited,
}

const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// Delays between attempts, each twice as long as the previous one.
#[derive(Debug)]
pub(super) struct Backoff {
    budget: RetryBudget,
    next_delay: Duration,
    waited: Duration,
}

impl Backoff {
    pub(super) fn new(budget: RetryBudget) -> Self {
        Self { budget, next_delay: FIRST_DELAY, waited: Duration::ZERO }
    }

    /// Restores the whole budget, after an engine has answered.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.budget);
    }

    /// Waits before the next attempt. Returns `cause` as the error once the budget is used up.
    pub(super) async fn pause(&mut self, cause: String) -> Result<(), String> {
        let delay = match self.budget {
            RetryBudget::Unlimited => self.next_delay,
            RetryBudget::Limited(limit) => self.next_delay.min(limit.saturating_sub(self.waited)),
        };
        if delay.is_zero() {
            return Err(cause);
        }
        tokio::time::sleep(delay).await;
        self.waited += delay;
        self.next_delay = (self.next_delay * 2).min(MAX_DELAY);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_until_budget_ends() {
        let start = tokio::time::Instant::now();
        let mut backoff = Backoff::new(RetryBudget::Limited(Duration::from_secs(10)));
        let mut delays = Vec::new();
        let mut before = start;
        while backoff.pause("gone".to_owned()).await.is_ok() {
            delays.push(before.elapsed().as_millis());
            before = tokio::time::Instant::now();
        }
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 850]);
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn zero_budget_fails_immediately() {
        let mut backoff = Backoff::new(RetryBudget::Limited(Duration::ZERO));
        assert_eq!(backoff.pause("gone".to_owned()).await, Err("gone".to_owned()));
    }
}
