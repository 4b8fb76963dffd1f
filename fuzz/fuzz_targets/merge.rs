//! Any base and two versions of it: what a merge of them must hold to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [base, ours, theirs] = laws::three_parts(data);
    laws::merge_laws(base, ours, theirs);
});
