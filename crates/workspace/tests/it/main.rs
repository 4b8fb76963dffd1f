//! One test binary for the crate.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and make files to read")]

mod confinement;
