//! Tests of policy, over its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]
#![allow(clippy::print_stdout, reason = "tests print the figures that they hold")]
#![allow(clippy::disallowed_methods, reason = "tests read the grammar files")]

mod attacks;
mod clauses;
mod denied;
mod families;
mod grammars;
mod outside;
mod policy;
mod policy_laws;
mod speed;
mod typical;

// The build script's own code, so that a mistake in a grammar fails a test that names it.
#[path = "../../build/tables.rs"]
mod tables;
#[allow(dead_code, reason = "the library uses the rest")]
#[path = "../../src/grammar/vocabulary.rs"]
mod vocabulary;
