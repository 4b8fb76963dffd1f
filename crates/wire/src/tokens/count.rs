//! A number of tokens, and how far to trust it.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// How far a count can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// What the model's own encoding gives.
    #[default]
    Exact,
    /// An estimate.
    About,
}

/// A number of tokens; nothing at all is exactly zero.
///
/// It prints as `1,234`, or as `≈ 1,234` where it is an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tokens {
    /// How many.
    pub count: u64,
    /// How far to trust it.
    pub exactness: Exactness,
}

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self::exact(0);

    /// So many tokens, and no doubt.
    pub const fn exact(count: u64) -> Self {
        Self { count, exactness: Exactness::Exact }
    }

    /// So many tokens, more or less.
    pub const fn about(count: u64) -> Self {
        Self { count, exactness: Exactness::About }
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
        if self.exactness == Exactness::About {
            text.push_str("≈ ");
        }
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        // Padding is for whoever aligns a column.
        formatter.pad(&text)
    }
}
