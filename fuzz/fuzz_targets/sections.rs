//! Any text read as a `*** Begin Patch`, and applied to any base; and our own patches from one text to another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [patch, old, new] = laws::three_parts(data).map(String::from_utf8_lossy);
    laws::section_laws(&patch, &old);
    laws::section_round_trip_laws(&old, &new);
});
