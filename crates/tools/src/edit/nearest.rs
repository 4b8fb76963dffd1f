//! Lines of a file that are nearest to a text that was not found, for errors.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::output::cut;

/// Maximum number of compared lines of the text.
const MAX_WANTED_LINES: usize = 100;
/// Maximum number of shown lines.
const MAX_SHOWN_LINES: usize = 24;
/// Maximum number of shown characters of a line.
const MAX_LINE_CHARS: usize = 300;
/// Lines shown around the nearest ones.
const AROUND: usize = 2;
/// Maximum number of shown occurrences.
const MAX_PLACES: usize = 5;

/// Returns the end of a sentence with the lines of `text` that resemble `wanted`, or `None` if no line does.
pub(crate) fn describe(text: &str, wanted: &[&str]) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let wanted = &wanted[..wanted.len().min(MAX_WANTED_LINES)];
    let (start, length) = equal_lines(&lines, wanted).or_else(|| similar_line(&lines, wanted))?;
    let (from, to) = (start.saturating_sub(AROUND), (start + length + AROUND).min(lines.len()));
    Some(format!(". The nearest lines:\n{}", numbered(&lines, from, to)))
}

/// Shows the lines of several occurrences.
pub(super) fn places(text: &str, starts: &[usize], length: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    for start in starts.iter().take(MAX_PLACES) {
        let at = start - 1;
        let to = (at + length.clamp(1, 2) + 1).min(lines.len());
        shown.push_str(&numbered(&lines, at.saturating_sub(1).min(to), to));
        shown.push_str("--\n");
    }
    if starts.len() > MAX_PLACES {
        shown.push_str(&format!("and {} more\n", starts.len() - MAX_PLACES));
    }
    shown
}

/// Formats the lines `from..to` with their numbers, as `Read` does.
fn numbered(lines: &[&str], from: usize, to: usize) -> String {
    let end = to.min(from + MAX_SHOWN_LINES);
    let mut shown = String::new();
    for (index, line) in lines.iter().enumerate().take(end).skip(from) {
        shown.push_str(&format!("{:>6}\t{}\n", index + 1, cut(line, MAX_LINE_CHARS)));
    }
    if end < to {
        shown.push_str(&format!("and {} more lines\n", to - end));
    }
    shown
}

/// Returns the window with the most lines that are equal except for white space.
fn equal_lines(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let length = wanted.len().min(lines.len());
    // Blank lines and single brackets are everywhere.
    let mark = |line: &&str| -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let mut count = 0;
        for character in line.chars().filter(|character| !character.is_whitespace()) {
            character.hash(&mut hasher);
            count += 1;
        }
        (count > 2).then(|| hasher.finish())
    };
    let marks: Vec<Option<u64>> = lines.iter().map(mark).collect();
    let wanted: Vec<Option<u64>> = wanted.iter().map(mark).collect();
    let mut best: Option<(usize, usize)> = None;
    for at in 0..=lines.len() - length {
        let pairs = marks[at..at + length].iter().zip(&wanted);
        let score = pairs.filter(|(found, wanted)| found.is_some() && found == wanted).count();
        if score > best.map_or(0, |(_, best)| best) {
            best = Some((at, score));
        }
    }
    // Lines at another offset than in the wanted text: a line was added or left out.
    let shifted = || {
        let wanted: HashSet<u64> = wanted.iter().flatten().copied().collect();
        marks.iter().position(|mark| mark.is_some_and(|mark| wanted.contains(&mark)))
    };
    best.map(|(at, _)| at).or_else(shifted).map(|at| (at, length))
}

/// Returns the line that shares the most words with the longest wanted line; at least half of them.
fn similar_line(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let words = |line: &str| -> HashSet<String> {
        let words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let longest = words(wanted.iter().max_by_key(|line| line.trim().len())?);
    let shared = |line: &str| words(line).intersection(&longest).count();
    let (count, at) = lines.iter().enumerate().map(|(at, line)| (shared(line), std::cmp::Reverse(at))).max()?;
    (count > 0 && count * 2 >= longest.len()).then_some((at.0, 1))
}
