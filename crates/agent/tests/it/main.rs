//! Tests of the built-in agent against a host without an engine and scripted models over HTTP.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests panic to fail, make files and open sockets")]

mod context;
mod dialects;
mod editor;
mod failures;
mod fake_host;
mod interrupts;
mod log_laws;
mod scenarios;
mod scene;
mod settings;
mod work;
