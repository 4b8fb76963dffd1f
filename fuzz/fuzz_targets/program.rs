//! Parses any text as a script with the strict parser.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    laws::program_laws(&String::from_utf8_lossy(data));
});
