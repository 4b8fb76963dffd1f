//! One test binary for the server: engines in this process, reached as any client reaches them.
#![allow(
    clippy::expect_used,
    clippy::large_futures,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests panic to fail, make files to look at, and say what they measured"
)]

mod agents;
mod channels;
mod entering;
mod findings;
mod paths;
mod raw;
mod requests;
mod runs;
mod scene;
mod sizes;
mod traffic;
mod users;
mod verdicts;
mod watchers;
