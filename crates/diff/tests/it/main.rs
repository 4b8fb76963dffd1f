//! One test binary for the crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests panic to fail, and make files for other programs"
)]

mod applied_by_others;
mod inline;
mod laws;
mod like;
mod merging;
mod patches;
mod sections;
mod unified;
