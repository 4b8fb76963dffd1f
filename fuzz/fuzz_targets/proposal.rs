//! Parses, previews and decides any bytes as a proposal on trees with any content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [input, content, _] = laws::three_parts(data);
    laws::proposal_laws(input, content);
});
