//! Delays between attempts.

/// Maximum number of attempts of one request.
const MAX_ATTEMPTS: u32 = 8;
const FIRST_DELAY_MS: i64 = 1_000;
const MAX_DELAY_MS: i64 = 60_000;
/// Longest delay that an upstream may ask for.
const MAX_REQUESTED_DELAY_MS: i64 = 10 * 60_000;

/// Exponential backoff with jitter.
#[derive(Debug, Default)]
pub(crate) struct RetryDelays {
    attempts: u32,
}

impl RetryDelays {
    /// Returns the delay before the next attempt; `None` if there is none. `requested_ms` is the delay that the upstream asked for.
    pub(crate) fn next_delay_ms(&mut self, requested_ms: Option<i64>, random: u64) -> Option<i64> {
        self.attempts += 1;
        if self.attempts >= MAX_ATTEMPTS || requested_ms.is_some_and(|delay| delay > MAX_REQUESTED_DELAY_MS) {
            return None;
        }
        let full = FIRST_DELAY_MS.saturating_mul(1 << (self.attempts - 1)).min(MAX_DELAY_MS);
        // Up to half of the delay at random, so that clients of one upstream spread out. A requested delay is a minimum.
        let jitter = i64::try_from(random % (full.unsigned_abs() / 2 + 1)).unwrap_or(0);
        Some(requested_ms.map_or(full - jitter, |delay| delay.max(0) + jitter.min(500)))
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }
}
