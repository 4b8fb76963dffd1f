//! One test binary for the crate.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic to fail")]

mod applied_by_others;
mod inline;
mod laws;
mod merging;
mod patches;
mod unified;
