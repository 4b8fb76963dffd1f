//! Classes of any line of a text, by blocks of lines.

use std::sync::{Arc, Mutex, PoisonError};

use sayso_review::ContentHash;

use super::{Language, LineClasses, LineParser, MAX_LINE_BYTES};
use crate::span::SyntaxClass;

/// Larger texts have no classes.
const MAX_TEXT_BYTES: usize = 512 * 1024;
/// Longer texts have no classes.
const MAX_TEXT_LINES: usize = 10_000;
/// Lines of a block. A block is parsed from the start of the block before it.
const BLOCK_LINES: usize = 256;

/// A token in a small form.
#[derive(Clone, Copy, Debug)]
struct Token {
    end: u32,
    class: SyntaxClass,
}

/// The tokens of the lines of a block.
#[derive(Debug, Default)]
struct HighlightedBlock {
    tokens: Vec<Token>,
    /// The number of tokens up to the end of each line. A line without tokens has no classes.
    line_ends: Vec<u32>,
}

impl HighlightedBlock {
    fn add(&mut self, classes: Option<LineClasses>) {
        let token = |(range, class): (std::ops::Range<usize>, _)| Token { end: to_u32(range.end), class };
        self.tokens.extend(classes.unwrap_or_default().into_iter().map(token));
        self.line_ends.push(to_u32(self.tokens.len()));
    }

    fn line(&self, line: usize) -> Option<LineClasses> {
        let first = line.checked_sub(1).map_or(Some(0), |above| self.line_ends.get(above).copied())?;
        let tokens = self.tokens.get(first as usize..*self.line_ends.get(line)? as usize)?;
        let mut start = 0;
        let piece = |token: &Token| {
            let range = start..token.end as usize;
            start = range.end;
            (range, token.class)
        };
        Some(tokens.iter().map(piece).collect())
    }

    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.tokens.capacity() * size_of::<Token>() + self.line_ends.capacity() * size_of::<u32>()
    }
}

/// The language is part of the key, because equal contents may have different names.
type BlockKey = (ContentHash, &'static str, usize);

type Entry = (BlockKey, Arc<HighlightedBlock>);

/// The blocks that were used last, up to a number of bytes.
#[derive(Debug)]
pub struct SyntaxCache {
    /// The entry used last is at the end.
    entries: Mutex<Vec<Entry>>,
    max_bytes: usize,
}

impl SyntaxCache {
    pub fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::default(), max_bytes }
    }

    /// Prepares to read the classes of a text. `None` if its language is unknown, if it is not UTF-8, or if it is too large.
    pub fn reader<'t>(&'t self, hash: ContentHash, bytes: &'t [u8], path: &str) -> Option<SyntaxReader<'t>> {
        if bytes.len() > MAX_TEXT_BYTES || bytes.contains(&0) {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?;
        if text.lines().count() > MAX_TEXT_LINES {
            return None;
        }
        let language = Language::detect(path, text)?;
        Some(SyntaxReader { cache: self, hash, text, language, current: None })
    }

    fn find(&self, key: BlockKey) -> Option<Arc<HighlightedBlock>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().rposition(|(known, _)| *known == key)?;
        let entry = entries.remove(at);
        let block = Arc::clone(&entry.1);
        entries.push(entry);
        Some(block)
    }

    fn add(&self, key: BlockKey, block: Arc<HighlightedBlock>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push((key, block));
        let mut bytes: usize = entries.iter().map(|(_, block)| block.bytes()).sum();
        let mut removed = 0;
        while bytes > self.max_bytes && removed < entries.len() {
            bytes -= entries[removed].1.bytes();
            removed += 1;
        }
        entries.drain(..removed);
    }
}

/// Reads the classes of a text's lines.
#[derive(Debug)]
pub struct SyntaxReader<'t> {
    cache: &'t SyntaxCache,
    hash: ContentHash,
    text: &'t str,
    language: Language,
    /// The block read last, by its number.
    current: Option<(usize, Arc<HighlightedBlock>)>,
}

impl SyntaxReader<'_> {
    /// Returns the classes of a line by its 0-based number; empty for a line that is too long.
    pub fn line(&mut self, number: usize) -> LineClasses {
        let (at, line) = (number / BLOCK_LINES, number % BLOCK_LINES);
        if self.current.as_ref().is_none_or(|(current, _)| *current != at) {
            self.current = Some((at, self.block(at)));
        }
        self.current.as_ref().and_then(|(_, block)| block.line(line)).unwrap_or_default()
    }

    fn block(&self, at: usize) -> Arc<HighlightedBlock> {
        let key = (self.hash, self.language.name(), at);
        if let Some(block) = self.cache.find(key) {
            return block;
        }
        let mut parser = LineParser::new(self.language);
        let mut block = HighlightedBlock::default();
        // Lines before the block only give the parser its state.
        let (first, warm_up) = (at * BLOCK_LINES, BLOCK_LINES.min(at * BLOCK_LINES));
        for (number, line) in
            self.text.split_inclusive('\n').enumerate().skip(first - warm_up).take(warm_up + BLOCK_LINES)
        {
            let classes = if line.len() > MAX_LINE_BYTES { None } else { parser.line(line) };
            if number >= first {
                block.add(classes);
            }
        }
        block.tokens.shrink_to_fit();
        let block = Arc::new(block);
        self.cache.add(key, Arc::clone(&block));
        block
    }
}

/// Positions within a line of at most [`MAX_LINE_BYTES`], and counts of its tokens, fit.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    fn classes(cache: &SyntaxCache, text: &str, line: usize) -> LineClasses {
        cache.reader(ContentHash::of(text.as_bytes()), text.as_bytes(), "a.rs").unwrap().line(line)
    }

    #[test]
    fn classes_do_not_depend_on_reading_order() {
        let text = "/* long\n".to_owned() + &"let a = 1; // text\n".repeat(1_000) + "*/ let b = \"x\";\n";
        let (forward, backward) = (SyntaxCache::new(1 << 20), SyntaxCache::new(0));
        let lines = || 0..1_002;
        let one: Vec<_> = lines().map(|line| classes(&forward, &text, line)).collect();
        let mut other: Vec<_> = lines().rev().step_by(97).map(|line| (line, classes(&backward, &text, line))).collect();
        other.reverse();
        for (line, classes) in other {
            assert_eq!(classes, one[line], "line {line}");
        }
    }

    #[test]
    fn text_beyond_limits_has_no_classes() {
        let cache = SyntaxCache::new(1 << 20);
        let reader = |text: &str| cache.reader(ContentHash::of(text.as_bytes()), text.as_bytes(), "a.rs").is_some();
        assert!(reader(&"x\n".repeat(10_000)));
        assert!(!reader(&"x\n".repeat(10_001)));
        assert!(!reader(&"x".repeat(512 * 1024 + 1)));
        assert!(!reader("\0"));
        let long = format!("let a = \"{}\";\nlet b = 1;\n", "x".repeat(5_000));
        assert!(classes(&cache, &long, 0).is_empty());
        assert!(!classes(&cache, &long, 1).is_empty());
        assert!(classes(&cache, &long, 9).is_empty());
    }

    #[test]
    fn cache_stays_within_its_bytes() {
        let cache = SyntaxCache::new(100_000);
        for number in 0..50 {
            let text = format!("fn f{number}() {{ call(1, 2, 3); }}\n").repeat(300);
            assert!(!classes(&cache, &text, 299).is_empty());
            let bytes: usize = cache.entries.lock().unwrap().iter().map(|(_, block)| block.bytes()).sum();
            assert!(bytes <= 100_000, "{bytes}");
        }
    }
}
