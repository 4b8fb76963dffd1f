//! Tests of the reader, over its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod program;
mod shell;
