//! A number of tokens with its exactness.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// The exactness of a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// Counted with the model's own encoding.
    #[default]
    Exact,
    /// Counted with a similar encoding.
    Estimate,
}

/// A number of tokens.
///
/// An exact count is formatted as `1,234`, an estimate as `≈ 1,234`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tokens {
    pub count: u64,
    pub exactness: Exactness,
}

impl Tokens {
    /// No tokens; this count is exact.
    pub const ZERO: Self = Self::exact(0);

    /// Creates an exact count.
    pub const fn exact(count: u64) -> Self {
        Self { count, exactness: Exactness::Exact }
    }

    /// Creates an estimated count.
    pub const fn estimate(count: u64) -> Self {
        Self { count, exactness: Exactness::Estimate }
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), exactness: self.exactness.max(other.exactness) }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.count.to_string();
        let mut text = String::with_capacity(digits.len() * 2);
        if self.exactness == Exactness::Estimate {
            text.push_str("≈ ");
        }
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        // Apply the caller's width and alignment.
        formatter.pad(&text)
    }
}
