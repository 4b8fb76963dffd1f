//! One test binary for the crate.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and make files to read")]

mod apply;
mod change;
mod confinement;
mod escapes;
mod faults;
mod git;
mod git_refusals;
mod git_states;
mod interleaving;
mod metadata;
mod recovering;
mod respawn;
mod scan;
mod scan_limits;
mod scan_random;
