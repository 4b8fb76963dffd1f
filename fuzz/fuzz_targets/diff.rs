//! Checks the laws of diffs for any two contents.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [old, new, _] = laws::three_parts(data);
    laws::diff_laws(old, new);
    laws::presence_laws(old);
});
