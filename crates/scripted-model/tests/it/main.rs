//! Tests of the scripted model server over real connections.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail")]

mod client;
mod model;
mod model_faults;
mod script;
