//! Tests of the repository itself: who may depend on whom, what is where, whether the documents are true.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail and read the repository")]

mod agents;
mod architecture;
mod client;
mod dependencies;
mod documents;
mod model;
mod model_faults;
mod test_files;
