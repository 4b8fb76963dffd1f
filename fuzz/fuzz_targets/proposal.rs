//! Any bytes as a proposal, on trees with any content: read, previewed, decided.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [input, content, _] = laws::three_parts(data);
    laws::proposal_laws(input, content);
});
