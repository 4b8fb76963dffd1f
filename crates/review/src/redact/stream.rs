//! Finds credentials in a streamed response, where each event holds only a few characters of a text.

use memchr::memmem;

use super::scan::end_of_string;
use super::{Redaction, find};

/// JSON members in which the APIs stream model output.
const DELTAS: [&str; 7] = ["text", "partial_json", "arguments", "content", "delta", "thinking", "reasoning_content"];

/// Finds the credentials in a response, in its bytes and in the joined texts of its events. They are sorted by offset
/// and may overlap.
pub fn find_in_answer(bytes: &[u8]) -> Vec<Redaction> {
    let mut found = find(bytes);
    for name in DELTAS {
        let joined = Joined::of(bytes, name);
        if joined.parts.len() > 1 {
            for one in find(&joined.text) {
                joined.split(&one, &mut found);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The joined strings of all members with one name.
#[derive(Default)]
struct Joined {
    text: Vec<u8>,
    /// Offsets at which each part begins, in the joined text and in the response.
    parts: Vec<(usize, usize)>,
}

impl Joined {
    fn of(bytes: &[u8], name: &str) -> Self {
        let mut joined = Self::default();
        let key = format!("\"{name}\":");
        for at in memmem::find_iter(bytes, &key) {
            let after = at + key.len();
            let space = bytes[after..].iter().take_while(|byte| **byte == b' ').count();
            let start = after + space + 1;
            if bytes.get(start - 1) != Some(&b'"') {
                continue;
            }
            let end = end_of_string(bytes, start, 0);
            joined.parts.push((joined.text.len(), start));
            joined.text.extend_from_slice(&bytes[start..end]);
        }
        joined
    }

    /// Splits a span of the joined text into its parts within the response.
    fn split(&self, span: &Redaction, found: &mut Vec<Redaction>) {
        let first = self.parts.partition_point(|(text, _)| *text <= span.start).saturating_sub(1);
        for (part, (text, start)) in self.parts.iter().enumerate().skip(first) {
            if *text >= span.end() {
                break;
            }
            let end = self.parts.get(part + 1).map_or(self.text.len(), |(next, _)| *next);
            let (from, to) = (span.start.max(*text), span.end().min(end));
            if from < to {
                found.push(Redaction { start: start + from - text, size: to - from, name: span.name.clone() });
            }
        }
    }
}
