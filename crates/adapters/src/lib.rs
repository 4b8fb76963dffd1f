//! Translates the formats of other coding agents.
//!
//! - [`hook`] parses hook input into intents and turns decisions into hook output. It is pure, except for
//!   [`hook::HookCall::respond`], which calls an engine. `sayso hook` reads the input and prints the output.
//! - [`routing`] computes the settings that send an agent's model requests through sayso.
//!
//! The effect of an agent's own tools on bytes was measured with the versions pinned in `crates/testkit/agents`. Tests run
//! the real programs against the models in `hook::rewrite`.

mod agent;
pub mod hook;
pub mod routing;

pub use agent::{Agent, UnknownAgent};
