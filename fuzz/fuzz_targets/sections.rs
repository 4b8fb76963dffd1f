//! Parses any text as a `*** Begin Patch` and applies it to any base. Checks generated patches between any two texts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [patch, old, new] = laws::three_parts(data).map(String::from_utf8_lossy);
    laws::section_laws(&patch, &old);
    laws::section_round_trip_laws(&old, &new);
});
