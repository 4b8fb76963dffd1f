//! Generated text with the properties of source code for diffing, hashing and compression: indented, with repeated names and
//! distinct values.

use std::fmt::Write as _;

const WORDS: [&str; 32] = [
    "session", "request", "change", "buffer", "length", "offset", "header", "result", "token", "parser", "stream",
    "event", "record", "window", "cursor", "status", "config", "handle", "policy", "reader", "writer", "engine",
    "branch", "commit", "target", "source", "folder", "layout", "signal", "worker", "filter", "column",
];

/// The line to be edited, which a file has once.
pub fn marker(edits: usize) -> String {
    format!("    let edited = {edits};\n")
}

/// Generates about `bytes` bytes of text, different for every seed, with [`marker`]`(0)` in the middle.
pub fn file(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: usize| {
        // Of xorshift, the upper bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut text = String::with_capacity(bytes + 256);
    let mut marked = false;
    while text.len() < bytes {
        let mut word = || WORDS[random(WORDS.len())];
        let (name, first, second, third) = (word(), word(), word(), word());
        // Writing to a string does not fail.
        let _ =
            writeln!(text, "/// Finds the {first} of a {second}.\nfn {name}_{first}({second}: &{third}) -> usize {{");
        for _ in 0..3 + random(6) {
            let (name, other) = (WORDS[random(WORDS.len())], WORDS[random(WORDS.len())]);
            let (factor, limit) = (random(64), random(100_000));
            let _ = writeln!(text, "    let {name} = {second}.{other}_at({factor}).min({limit});");
        }
        if !marked && text.len() * 2 >= bytes {
            text.push_str(&marker(0));
            marked = true;
        }
        let _ = writeln!(text, "    {first}\n}}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_differ_and_can_be_edited_once() {
        let files = [file(1, 4096), file(2, 4096), file(3, 1 << 20)];
        assert!(files[0] != files[1]);
        for text in files {
            assert_eq!(text.matches(&marker(0)).count(), 1);
        }
    }
}
