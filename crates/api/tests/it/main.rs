//! Tests of the protocol: conversions, errors and the client.
#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

mod arbitrary;
mod arbitrary_change;
mod arbitrary_described;
mod arbitrary_event;
mod arbitrary_file;
mod arbitrary_intent;
mod arbitrary_request;
mod arbitrary_request_view;
mod arbitrary_subject;
mod arbitrary_verdict;
mod client_calls;
mod client_engine;
mod client_watch;
mod diff_rows;
mod errors;
mod events;
mod garbage;
mod previews;
mod refused;
mod requests;
mod round_trip;
mod variants;
