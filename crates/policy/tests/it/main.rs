//! Tests of policy, over its public types.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod attacks;
mod clauses;
mod denied;
mod families;
mod outside;
mod policy;
mod policy_laws;
mod speed;
mod typical;
