//! Tests of the server, with engines in this process and clients over real sockets.
#![allow(
    clippy::expect_used,
    clippy::large_futures,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests panic to fail, create files, and print measurements"
)]

mod admission;
mod agent_actions;
mod agent_conversations;
mod agent_payloads;
mod agent_restart;
mod agent_service;
mod agent_sources;
mod agents;
mod channels;
mod confinement;
mod conversations;
mod diff_work;
mod diffs;
mod dispatch;
mod inbox;
mod inbox_requests;
mod inbox_scale;
mod limits;
mod model_agent;
mod raw;
mod regressions;
mod requests;
mod runs;
mod scene;
mod sessions;
mod users;
mod verdicts;
mod watchers;
mod web_pages;
