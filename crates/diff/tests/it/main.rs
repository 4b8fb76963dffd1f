//! Tests of the crate `sayso-diff`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests panic to fail, and make files for other programs"
)]

mod applied_by_others;
mod encode_like;
mod inline;
mod laws;
mod merging;
mod patches;
mod rows;
mod rows_laws;
mod sections;
mod unified;
