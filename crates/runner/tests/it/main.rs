//! Runs of programs, compared with bash and with a trace of their own.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]
#![allow(clippy::print_stdout, reason = "the oracles print their figures")]
#![allow(clippy::disallowed_methods, reason = "tests start bash and look at files")]

mod day;
mod generator;
mod likeness;
mod refusal;
mod safety;
mod stage;
