//! Tests of model requests and streams.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests panic to fail, and read their corpus"
)]

mod corpus;
mod json_laws;
mod patching;
mod prompt_cache;
mod review_findings;
mod saved_edits;
mod sdk;
mod seed_model;
mod stream_corpus;
mod stream_laws;
mod stream_replies;
mod stream_sse;
mod tokens;
mod transcript;
mod validation;
