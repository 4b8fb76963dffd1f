//! Interning: maps equal lines to equal tokens.
//!
//! Interning dominates the cost of a line diff, so most lines are never hashed. A line of the new side is first
//! compared with the old line expected next, many lines at a time. Only lines out of step are looked up. Lines that
//! only the new side has share one token, because they are never compared with each other.
//!
//! The hash is fast and unkeyed, so crafted input can cause collisions. Probes are therefore counted. Beyond a limit
//! the tokens are computed by sorting, which is slower but bounded.

use std::collections::BTreeMap;

use gix_imara_diff::Token;

use crate::lines::{LineBreak, common_prefix};

/// The tokens of both sides, with the line starts.
pub(crate) struct Interned {
    /// Token of each old line: the number of the first equal line.
    pub(crate) old: Vec<Token>,
    pub(crate) new: Vec<Token>,
    /// Offsets of the line starts, and the end of the last line.
    pub(crate) old_starts: Vec<u32>,
    pub(crate) new_starts: Vec<u32>,
    /// Exclusive upper bound of the old tokens. The bound itself is the token of every line that the old side lacks.
    pub(crate) bound: u32,
}

/// Interns the lines of both sides, each less than 4 GiB.
pub(crate) fn intern_lines(old: &[u8], old_break: LineBreak, new: &[u8], new_break: LineBreak) -> Interned {
    let old_starts = starts(old, old_break);
    let old_lines = Slices { bytes: old, ends: &old_starts[1..] };
    let mut table = Table::new(old_lines);
    // Lookups need probes too; there are at most as many lines as bytes.
    table.probes_left += new.len();
    let old_tokens = table.insert_all();

    let bound = old_tokens.len() as u32;
    let mut new_tokens = Vec::with_capacity(old_tokens.len());
    let mut new_starts = Vec::with_capacity(old_starts.len());
    let mut at = 0;
    // The old line expected next while both sides are in step.
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
        let token = table.find(&new[at..end]);
        if let Some(token) = token {
            if !table.repeated[token as usize] {
                expected = token as usize + 1;
            } else if let Some(ahead) = old_tokens[expected..].iter().take(LOOK_AHEAD).position(|old| old.0 == token) {
                expected += ahead + 1;
            }
        }
        new_starts.push(at as u32);
        new_tokens.push(Token(token.unwrap_or(bound)));
        at = end;
    }
    new_starts.push(new.len() as u32);
    Interned { old: old_tokens, new: new_tokens, old_starts, new_starts, bound }
}

/// Interns two sequences of adjacent slices, such as words. The last value is the token of slices that the old side
/// lacks.
pub(crate) fn intern_slices(old: Slices<'_>, new: Slices<'_>) -> (Vec<Token>, Vec<Token>, u32) {
    let mut table = Table::new(old);
    let old = table.insert_all();
    let bound = old.len() as u32;
    let new = (0..new.len()).map(|at| Token(table.find(new.slice(at)).unwrap_or(bound))).collect();
    (old, new, bound)
}

/// Adjacent slices, given by their ends.
#[derive(Clone, Copy)]
pub(crate) struct Slices<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) ends: &'a [u32],
}

impl<'a> Slices<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(crate) fn slice(&self, at: usize) -> &'a [u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }
}

/// Number of lines in which a repeated line, such as a closing brace, is searched for to get back into step.
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

/// Counts the old lines from `expected` on that are at the start of `new`.
#[inline]
fn lines_in_step(old: &[u8], old_starts: &[u32], expected: usize, new: &[u8], line_break: LineBreak) -> usize {
    let Some((&from, following)) = old_starts.get(expected..).and_then(<[u32]>::split_first) else { return 0 };
    let Some(&first_end) = following.first() else { return 0 };
    let rest = &old[from as usize..];
    // Comparing the first byte avoids most calls while the sides are out of step.
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
    // The last old line without a break equals only a last new line without a break.
    if equal == rest.len() && equal < new.len() && !line_break.breaks_before(old, old.len()) {
        lines -= 1;
    }
    lines
}

/// Average number of probes allowed per line, far beyond what ordinary input needs at a load factor of at most one
/// half.
const PROBES_PER_LINE: usize = 16;
const MARK: u64 = 0xFFFF_FFFF_0000_0000;

struct Table<'a> {
    old: Slices<'a>,
    /// The upper half of a hash beside a token plus one; 0 for a free slot.
    slots: Vec<u64>,
    /// `true` for each token that occurs more than once.
    repeated: Vec<bool>,
    probes_left: usize,
    /// Replacement of `slots` once the limit of probes is exceeded.
    sorted: Option<BTreeMap<&'a [u8], u32>>,
}

enum Slot {
    Taken(u32),
    Free { at: usize, mark: u64 },
}

impl<'a> Table<'a> {
    fn new(old: Slices<'a>) -> Self {
        Self {
            old,
            slots: vec![0; (old.len() * 2).next_power_of_two()],
            repeated: vec![false; old.len()],
            probes_left: old.len() * PROBES_PER_LINE + 1024,
            sorted: None,
        }
    }

    /// Returns the tokens of the old side.
    fn insert_all(&mut self) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(self.old.len());
        let mut start = 0;
        for (&end, number) in self.old.ends.iter().zip(0u32..) {
            let slice = &self.old.bytes[start..end as usize];
            start = end as usize;
            let token = match self.slot_of(slice) {
                Slot::Taken(token) => {
                    self.repeated[token as usize] = true;
                    token
                }
                Slot::Free { at, mark } => {
                    match &mut self.sorted {
                        Some(sorted) => drop(sorted.insert(slice, number)),
                        None => self.slots[at] = mark | u64::from(number + 1),
                    }
                    number
                }
            };
            tokens.push(Token(token));
        }
        tokens
    }

    #[inline]
    fn find(&mut self, slice: &[u8]) -> Option<u32> {
        match self.slot_of(slice) {
            Slot::Taken(token) => Some(token),
            Slot::Free { .. } => None,
        }
    }

    #[inline]
    fn slot_of(&mut self, slice: &[u8]) -> Slot {
        if self.sorted.is_some() {
            return self.sorted_slot_of(slice);
        }
        let hash = hash(slice);
        let mark = hash & MARK;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Slot::Free { at, mark };
            }
            if slot & MARK == mark {
                let token = slot as u32 - 1;
                if self.old.slice(token as usize) == slice {
                    return Slot::Taken(token);
                }
            }
            at = (at + 1) & mask;
            self.probes_left = self.probes_left.saturating_sub(1);
            if self.probes_left == 0 {
                return self.sorted_slot_of(slice);
            }
        }
    }

    #[cold]
    fn sorted_slot_of(&mut self, slice: &[u8]) -> Slot {
        let (old, slots) = (self.old, &self.slots);
        let sorted = self.sorted.get_or_insert_with(|| {
            let tokens = slots.iter().filter(|slot| **slot != 0).map(|slot| *slot as u32 - 1);
            tokens.map(|token| (old.slice(token as usize), token)).collect()
        });
        sorted.get(slice).map_or(Slot::Free { at: 0, mark: 0 }, |&token| Slot::Taken(token))
    }
}

/// Mixes sixteen bytes at a time by the folded product of their halves.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    const SEEDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0xAEF1_7502_108E_F2D9];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = (bytes.len() as u64).wrapping_mul(SEEDS[1]) ^ SEEDS[0];
    let (low, high) = if let Some(tail) = bytes.last_chunk::<16>() {
        // The tail may overlap the last whole block, which is harmless.
        for block in bytes.as_chunks::<16>().0 {
            let (low, high) = halves(block);
            state = fold(low ^ state, high ^ SEEDS[1]);
        }
        halves(tail)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else if let [first, .., last] = bytes {
        (u64::from(*first) << 8 | u64::from(bytes[bytes.len() / 2]), u64::from(*last))
    } else {
        (u64::from(bytes.first().copied().unwrap_or(0)), 0)
    };
    fold(low ^ state, high ^ SEEDS[2])
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*block);
    (whole as u64, (whole >> 64) as u64)
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
        check("a\nb\na\n", "b\nx\na\ny\n", &[0, 1, 0], &[1, 3, 0, 3]);
        check("a\nb\nc\nd\n", "a\nb\nX\nc\nd\n", &[0, 1, 2, 3], &[0, 1, 4, 2, 3]);
    }

    #[test]
    fn last_line_without_break_differs() {
        check("a\nb", "a\nb\n", &[0, 1], &[0, 2]);
        check("a\nb", "a\nbc\n", &[0, 1], &[0, 2]);
        check("a\nb\n", "a\nb", &[0, 1], &[0, 2]);
        check("a\nb", "b\na\nb", &[0, 1], &[2, 0, 1]);
    }

    #[test]
    fn colliding_lines_fall_back_to_sorting() {
        let text: String = (0..500).map(|i| format!("line {}\n", i % 400)).collect();
        let starts = starts(text.as_bytes(), LineBreak::Byte);
        let lines = Slices { bytes: text.as_bytes(), ends: &starts[1..] };
        let honest = Table::new(lines).insert_all();
        let mut table = Table::new(lines);
        table.probes_left = 1;
        assert_eq!(table.insert_all(), honest);
        assert!(table.sorted.is_some(), "one probe is not enough for 400 lines");
        assert_eq!((table.find(b"line 7\n"), table.find(b"absent\n")), (Some(7), None));
        assert!(table.repeated[7] && !table.repeated[399]);
    }

    #[test]
    fn short_slices_are_distinguished() {
        let bytes: Vec<u8> = (1..=40).collect();
        let mut hashes: Vec<u64> = (0..bytes.len()).map(|length| hash(&bytes[..length])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), bytes.len());
    }
}
