//! Checks the laws of merges for any base and two versions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [base, ours, theirs] = laws::three_parts(data);
    laws::merge_laws(base, ours, theirs);
});
