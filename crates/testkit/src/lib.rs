//! For tests only.
//!
//! [`laws`] states what must hold for any input, once; the property tests and the fuzz targets both call it. [`contents`]
//! makes inputs that have broken diff tools before. [`programs`] runs the real `git` and `patch` in a throw-away directory.
//! [`agents`] finds the real coding agents and [`model`] is what they talk to. [`requests`] makes up what they would send.
//! [`skip`] is for tests that cannot run on this machine.

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
pub mod contents;
pub mod laws;
#[cfg(feature = "programs")]
pub mod model;
#[cfg(feature = "programs")]
pub mod programs;
pub mod requests;
#[cfg(feature = "programs")]
pub mod skip;
