//! Tools for tests. No product crate depends on this crate.
//!
//! - [`laws`]: properties that hold for any input, shared by property tests and fuzz targets.
//! - [`hostile_inputs`]: generators of inputs that have broken diff tools.
//! - [`programs`]: runs `git` and `patch` in a temporary directory.
//! - [`agents`]: finds and runs real coding agents.
//! - [`model`]: a scripted model server for them.
//! - [`requests`]: generated requests like those of a coding agent.
//! - [`skip`](mod@skip): the only way to skip a test that cannot run on this machine.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "tests panic to fail, and this crate runs programs for them"
)]

#[cfg(feature = "programs")]
pub mod agents;
#[cfg(feature = "programs")]
pub mod hostile_inputs;
pub mod laws;
#[cfg(feature = "programs")]
pub mod model;
#[cfg(feature = "programs")]
pub mod programs;
pub mod requests;
#[cfg(feature = "programs")]
pub mod skip;
