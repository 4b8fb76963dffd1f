//! Parses any text as a shell script with the lenient parser, and checks quoting of any words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_testkit::laws;

fuzz_target!(|data: &[u8]| {
    let [script, words, ways] = laws::three_parts(data);
    laws::shell_laws(&String::from_utf8_lossy(script));
    let words: Vec<String> =
        words.split(|byte| *byte == b' ').map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    laws::shell_quoting_laws(&words, ways.iter().fold(1, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte)));
});
