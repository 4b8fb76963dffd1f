//! Tests of policy, over its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod clauses;
mod families;
mod speed;
mod policy;
mod policy_laws;
mod typical;
