//! Tests of policy, over its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod clauses;
mod families;
mod policy;
mod policy_laws;
mod speed;
mod typical;
