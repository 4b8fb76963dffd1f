//! How long an engine that is not there is waited for.

use std::time::Duration;

/// How long an engine that is not there is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// This long in all.
    For(Duration),
    /// Until it comes.
    Always,
}

/// The first pause.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest one.
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses between attempts, each twice as long as the one before.
#[derive(Debug)]
pub(super) struct Backoff {
    patience: Patience,
    next: Duration,
    waited: Duration,
}

impl Backoff {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, next: SHORTEST, waited: Duration::ZERO }
    }

    /// Begins anew: there was an engine.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.patience);
    }

    /// Pauses before the next attempt; says `why` not, if there is none.
    pub(super) async fn pause(&mut self, why: String) -> Result<(), String> {
        let pause = match self.patience {
            Patience::Always => self.next,
            Patience::For(limit) => self.next.min(limit.saturating_sub(self.waited)),
        };
        if pause.is_zero() {
            return Err(why);
        }
        tokio::time::sleep(pause).await;
        self.waited += pause;
        self.next = (self.next * 2).min(LONGEST);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_end_with_patience() {
        let start = tokio::time::Instant::now();
        let mut backoff = Backoff::new(Patience::For(Duration::from_secs(10)));
        let mut pauses = Vec::new();
        let mut before = start;
        while backoff.pause("gone".to_owned()).await.is_ok() {
            pauses.push(before.elapsed().as_millis());
            before = tokio::time::Instant::now();
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 850]);
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_no_patience_does_not_wait() {
        assert_eq!(Backoff::new(Patience::For(Duration::ZERO)).pause("gone".to_owned()).await, Err("gone".to_owned()));
    }
}
