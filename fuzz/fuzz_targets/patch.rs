//! Parses any text as a patch and applies it to any base.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [text, base, _] = laws::three_parts(data);
    laws::patch_laws(text, base);
});
