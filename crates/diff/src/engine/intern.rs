//! Lines to numbers: equal lines get equal tokens.
//!
//! Interning is where a line diff spends its time, so most lines are never hashed: a line of the new side is first compared
//! with the old line that would follow if nothing had changed, many lines at a time. Only what falls out of step is looked
//! up. Lines that only the new side has share one token, since nothing asks whether they equal each other.
//!
//! The hash is fast and not keyed, so somebody can make lines collide. Probing is therefore counted, and past a limit the
//! tokens come from sorting instead: slower, with a bound that no input can break.

use std::collections::BTreeMap;

use gix_imara_diff::Token;

use crate::lines::{LineBreak, common_prefix};

/// The two sides of one comparison as tokens, with where each line starts.
pub(crate) struct Interned {
    pub(crate) old: Vec<Token>,
    pub(crate) new: Vec<Token>,
    /// Offsets of the lines' starts, and the end of the last.
    pub(crate) old_starts: Vec<u32>,
    pub(crate) new_starts: Vec<u32>,
    /// Old lines have tokens below this number; this number itself stands for every line that the old side lacks.
    pub(crate) distinct: u32,
}

/// Interns the lines of both sides, each shorter than 4 GiB.
pub(crate) fn intern_lines(old: &[u8], old_break: LineBreak, new: &[u8], new_break: LineBreak) -> Interned {
    let old_starts = starts(old, old_break);
    let mut table = Table::new(old_starts.len() - 1);
    let mut old_tokens = Vec::with_capacity(old_starts.len() - 1);
    for line in old_starts.windows(2) {
        old_tokens.push(table.insert(&old[line[0] as usize..line[1] as usize]));
    }

    let missing = Token(table.firsts.len() as u32);
    let mut new_tokens = Vec::with_capacity(old_tokens.len());
    let mut new_starts = Vec::with_capacity(old_starts.len());
    let mut at = 0;
    // The old line that comes next if the sides stay in step.
    let mut expected = 0;
    while at < new.len() {
        let in_step =
            if old_break == new_break { lines_in_step(old, &old_starts, expected, &new[at..], old_break) } else { 0 };
        if in_step > 0 {
            let from = old_starts[expected];
            let lines = &old_starts[expected..=expected + in_step];
            new_starts.extend(lines[..in_step].iter().map(|start| start - from + at as u32));
            new_tokens.extend_from_slice(&old_tokens[expected..expected + in_step]);
            at += (lines[in_step] - from) as usize;
            expected += in_step;
            continue;
        }
        let end = new_break.line_end(new, at);
        let token = table.find(&new[at..end]).unwrap_or(missing);
        if token != missing {
            if let Some(place) = table.only_place(token) {
                expected = place + 1;
            } else if let Some(ahead) = old_tokens[expected..].iter().take(LOOK_AHEAD).position(|&old| old == token) {
                expected += ahead + 1;
            }
        }
        new_starts.push(at as u32);
        new_tokens.push(token);
        at = end;
    }
    new_starts.push(new.len() as u32);
    Interned { old: old_tokens, new: new_tokens, old_starts, new_starts, distinct: missing.0 }
}

/// Interns any two sequences of slices, such as words.
pub(crate) fn intern_slices<'a>(
    old: impl ExactSizeIterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Token>, Vec<Token>, u32) {
    let mut table = Table::new(old.len());
    let old: Vec<Token> = old.map(|slice| table.insert(slice)).collect();
    let missing = Token(table.firsts.len() as u32);
    let new = new.map(|slice| table.find(slice).unwrap_or(missing)).collect();
    (old, new, missing.0)
}

/// How far to look for a repeated line (a closing brace, say) to get back into step with it.
const LOOK_AHEAD: usize = 8;

fn starts(bytes: &[u8], line_break: LineBreak) -> Vec<u32> {
    let mut starts = Vec::with_capacity(bytes.len() / 32 + 2);
    starts.push(0);
    if line_break == LineBreak::Byte {
        starts.extend(memchr::memchr_iter(b'\n', bytes).map(|at| at as u32 + 1));
        if starts.last() != Some(&(bytes.len() as u32)) {
            starts.push(bytes.len() as u32);
        }
    } else {
        let mut at = 0;
        while at < bytes.len() {
            at = line_break.line_end(bytes, at);
            starts.push(at as u32);
        }
    }
    starts
}

/// How many old lines from `expected` on stand at the start of `new`, unchanged.
#[inline]
fn lines_in_step(old: &[u8], old_starts: &[u32], expected: usize, new: &[u8], line_break: LineBreak) -> usize {
    let Some((&from, following)) = old_starts.get(expected..).and_then(<[u32]>::split_first) else { return 0 };
    let Some(&first_end) = following.first() else { return 0 };
    let rest = &old[from as usize..];
    // A look at the first byte spares most calls while the sides are out of step.
    if rest[0] != new[0] {
        return 0;
    }
    let equal = common_prefix(rest, new);
    if equal < (first_end - from) as usize {
        return 0;
    }
    let end = from + equal as u32;
    let mut lines =
        if equal == rest.len() { following.len() } else { following.partition_point(|&start| start <= end) };
    // The old side's last line without a break is the same line only if the new side ends there too.
    if equal == rest.len() && equal < new.len() && !line_break.breaks_before(old, old.len()) {
        lines -= 1;
    }
    lines
}

/// Sixteen probes on average is far beyond what honest input needs at a load of at most one half.
const PROBES_PER_LINE: usize = 16;

/// In place of a place: the token was seen more than once.
const REPEATED: u32 = u32::MAX;

struct Table<'a> {
    /// The upper half of a hash beside a token plus one; 0 where free.
    slots: Vec<u64>,
    /// For each token: its slice, and the place it was seen at if that is the only one.
    firsts: Vec<&'a [u8]>,
    places: Vec<u32>,
    inserted: u32,
    probes_left: usize,
    /// What replaces `slots` once probing got out of hand.
    sorted: Option<BTreeMap<&'a [u8], Token>>,
}

impl<'a> Table<'a> {
    fn new(lines: usize) -> Self {
        let slots = (lines * 2).next_power_of_two().max(16);
        Self {
            slots: vec![0; slots],
            firsts: Vec::with_capacity(lines),
            places: Vec::with_capacity(lines),
            inserted: 0,
            probes_left: lines * PROBES_PER_LINE + 1024,
            sorted: None,
        }
    }

    #[inline]
    fn insert(&mut self, slice: &'a [u8]) -> Token {
        let place = self.inserted;
        self.inserted += 1;
        match self.slot_of(slice) {
            Ok(token) => {
                self.places[token.0 as usize] = REPEATED;
                token
            }
            Err(slot) => {
                let token = Token(self.firsts.len() as u32);
                self.firsts.push(slice);
                self.places.push(place);
                match &mut self.sorted {
                    Some(sorted) => drop(sorted.insert(slice, token)),
                    None => self.slots[slot.at] = slot.mark | u64::from(token.0 + 1),
                }
                token
            }
        }
    }

    #[inline]
    fn find(&mut self, slice: &'a [u8]) -> Option<Token> {
        self.slot_of(slice).ok()
    }

    fn only_place(&self, token: Token) -> Option<usize> {
        let place = self.places[token.0 as usize];
        (place != REPEATED).then_some(place as usize)
    }

    #[inline]
    fn slot_of(&mut self, slice: &'a [u8]) -> Result<Token, FreeSlot> {
        if let Some(sorted) = &self.sorted {
            return sorted.get(slice).copied().ok_or(FreeSlot { at: 0, mark: 0 });
        }
        let hash = hash(slice);
        let mark = hash & 0xFFFF_FFFF_0000_0000;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(FreeSlot { at, mark });
            }
            if slot & 0xFFFF_FFFF_0000_0000 == mark {
                let token = slot as u32 - 1;
                if self.firsts[token as usize] == slice {
                    return Ok(Token(token));
                }
            }
            at = (at + 1) & mask;
            self.probes_left = self.probes_left.saturating_sub(1);
            if self.probes_left == 0 {
                self.sorted = Some(self.firsts.iter().zip(0..).map(|(&slice, token)| (slice, Token(token))).collect());
                return self.slot_of(slice);
            }
        }
    }
}

struct FreeSlot {
    at: usize,
    mark: u64,
}

/// Mixes sixteen bytes at a time by the folded product of their halves.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    const SEEDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0xAEF1_7502_108E_F2D9];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let half = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default()));
    let length = bytes.len();
    let mut state = length as u64 ^ SEEDS[0];
    let (low, high) = match length {
        17.. => {
            let mut at = 0;
            while at + 16 < length {
                state = fold(word(at) ^ state, word(at + 8) ^ SEEDS[1]);
                at += 16;
            }
            (word(length - 16), word(length - 8))
        }
        8..=16 => (word(0), word(length - 8)),
        4..=7 => (half(0), half(length - 4)),
        0 => (0, 0),
        _ => (u64::from(bytes[0]) << 8 | u64::from(bytes[length / 2]), u64::from(bytes[length - 1])),
    };
    fold(low ^ state, high ^ SEEDS[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, tokens_old: &[u32], tokens_new: &[u32]) {
        let interned = intern_lines(old.as_bytes(), LineBreak::Byte, new.as_bytes(), LineBreak::Byte);
        let numbers = |tokens: &[Token]| tokens.iter().map(|token| token.0).collect::<Vec<_>>();
        assert_eq!(numbers(&interned.old), tokens_old, "old {old:?}");
        assert_eq!(numbers(&interned.new), tokens_new, "new {new:?}");
        for (text, starts, lines) in
            [(old, &interned.old_starts, tokens_old.len()), (new, &interned.new_starts, tokens_new.len())]
        {
            assert_eq!(starts.len(), lines + 1);
            for pair in starts.windows(2) {
                let line = &text[pair[0] as usize..pair[1] as usize];
                assert_eq!(line.trim_end_matches('\n').matches('\n').count(), 0, "{line:?} of {text:?}");
            }
        }
    }

    #[test]
    fn equal_lines_get_equal_tokens() {
        check("a\nb\na\n", "b\nx\na\ny\n", &[0, 1, 0], &[1, 2, 0, 2]);
        check("a\nb\nc\nd\n", "a\nb\nX\nc\nd\n", &[0, 1, 2, 3], &[0, 1, 4, 2, 3]);
    }

    #[test]
    fn a_last_line_without_its_break_is_another_line() {
        check("a\nb", "a\nb\n", &[0, 1], &[0, 2]);
        check("a\nb", "a\nbc\n", &[0, 1], &[0, 2]);
        check("a\nb\n", "a\nb", &[0, 1], &[0, 2]);
        check("a\nb", "b\na\nb", &[0, 1], &[2, 0, 1]);
    }

    #[test]
    fn colliding_lines_fall_back_to_sorting() {
        let lines: Vec<Vec<u8>> = (0..500).map(|i| format!("line {i}\n").into_bytes()).collect();
        let mut table = Table::new(lines.len());
        table.probes_left = 1;
        let tokens: Vec<Token> = lines.iter().map(|line| table.insert(line)).collect();
        assert!(table.sorted.is_some(), "one probe is not enough for 500 lines");
        assert_eq!(tokens, (0..500).map(Token).collect::<Vec<_>>());
        assert!(lines.iter().zip(&tokens).all(|(line, token)| table.find(line) == Some(*token)));
        assert_eq!(table.find(b"absent\n"), None);
    }
}
