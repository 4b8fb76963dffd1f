//! Numbers on the command line. An error names an example.

use std::str::FromStr;

pub(super) fn change(text: &str) -> Result<u64, String> {
    read(text, "the number of a change, as `sayso log` lists it, such as 3")
}

pub(super) fn request(text: &str) -> Result<u64, String> {
    read(text, "the number of a request, as `sayso request list` lists it, such as 3")
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    read(text, "a number of bytes, such as 2000")
}

pub(super) fn event(text: &str) -> Result<u64, String> {
    read(text, "the number of an event, such as 120, or 0 for all of them")
}

pub(super) fn revision(text: &str) -> Result<u64, String> {
    read(text, "the revision of a request, as `sayso request show` has it, such as 2")
}

pub(super) fn days(text: &str) -> Result<u32, String> {
    read(text, "a number of days, such as 30")
}

pub(super) fn megabytes(text: &str) -> Result<u64, String> {
    read(text, "a number of megabytes, such as 500")
}

pub(super) fn count(text: &str) -> Result<usize, String> {
    read(text, "a number, such as 20")
}

pub(super) fn port(text: &str) -> Result<u16, String> {
    read(text, "a port from 0 to 65535, such as 7777")
}

fn read<N: FromStr>(text: &str, expected: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("this has to be {expected}"))
}
