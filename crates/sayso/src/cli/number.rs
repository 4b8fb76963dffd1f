//! Numbers on the command line: what is not one is answered with a sentence, and with an example of one that would be.

use std::str::FromStr;

/// The number of a change.
pub(super) fn change(text: &str) -> Result<u64, String> {
    read(text, "the number of a change, as `sayso log` lists it, such as 3")
}

/// The number of a request.
pub(super) fn request(text: &str) -> Result<u64, String> {
    read(text, "the number of a request, as `sayso request list` lists it, such as 3")
}

/// A number of bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    read(text, "a number of bytes, such as 2000")
}

/// The number of an event.
pub(super) fn event(text: &str) -> Result<u64, String> {
    read(text, "the number of an event, such as 120, or 0 for all of them")
}

/// A number of days.
pub(super) fn days(text: &str) -> Result<u32, String> {
    read(text, "a number of days, such as 30")
}

/// A number of megabytes.
pub(super) fn megabytes(text: &str) -> Result<u64, String> {
    read(text, "a number of megabytes, such as 500")
}

/// How many of something.
pub(super) fn count(text: &str) -> Result<usize, String> {
    read(text, "a number, such as 20")
}

/// A port.
pub(super) fn port(text: &str) -> Result<u16, String> {
    read(text, "a port from 0 to 65535, such as 7777")
}

fn read<N: FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("this has to be {what}"))
}
