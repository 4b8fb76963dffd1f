//! Other agents' words to and from ours.
//!
//! [`hook`] translates what an agent hands to its hooks into intents, and what was decided into what the agent expects. All of it
//! is bytes in, values out, but for [`hook::HookCall::respond`], which asks an engine in between; whoever runs `sayso hook` does
//! the reading and the writing.
//!
//! [`traffic`] says how each agent is told to send its requests to models through us.
//!
//! What an agent's own tools do with bytes was found by trying (the versions are in `sayso-testkit`'s `agents`), and a test runs
//! the real programs against it: see `hook::rewrite`.

pub mod hook;
pub mod traffic;
