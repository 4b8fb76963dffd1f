//! Checks encoding of any text in the format of any base.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [base, text, line] = laws::three_parts(data);
    laws::like_laws(base, &String::from_utf8_lossy(text));
    laws::one_line_laws(base, line.len(), &String::from_utf8_lossy(line));
});
