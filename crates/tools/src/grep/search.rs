//! Search within one file.

use std::collections::BTreeMap;

use regex_automata::meta::Regex;
use sayso_review::WsPath;
use serde::Serialize;

/// Maximum number of bytes of a line in a result; the part around the match is kept.
const MAX_LINE_BYTES: usize = 400;

/// Bounds of a search in one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of matching lines.
    pub(super) lines: usize,
    /// Lines around a match.
    pub(super) context: usize,
}

/// Numbers of files that were not searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Skipped {
    pub(super) binary: usize,
    pub(super) unreadable: usize,
}

/// Matching lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FileMatches {
    pub(super) path: WsPath,
    /// Number of matching lines.
    pub(super) count: usize,
    lines: Vec<FoundLine>,
    #[serde(skip)]
    pub(super) is_truncated: bool,
}

/// A matching line, or a line around one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FoundLine {
    /// From 1.
    line: usize,
    text: String,
    /// `false` for a line of context.
    matched: bool,
}

/// Searches a content; `None` if it is binary.
pub(super) fn search(path: WsPath, bytes: &[u8], regex: &Regex, limits: Limits) -> Option<FileMatches> {
    let text = sayso_diff::plain_text(bytes)?;
    let mut found = FileMatches { path, count: 0, lines: Vec::new(), is_truncated: false };
    found.collect(&text, regex, limits);
    Some(found)
}

impl FileMatches {
    fn collect(&mut self, text: &str, regex: &Regex, limits: Limits) {
        let lines: Vec<&str> = text.split_terminator('\n').collect();
        let mut shown: BTreeMap<usize, FoundLine> = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            let Some(matched) = regex.find(*line) else { continue };
            if self.count == limits.lines {
                self.is_truncated = true;
                break;
            }
            self.count += 1;
            let (from, to) = (at.saturating_sub(limits.context), (at + limits.context + 1).min(lines.len()));
            for (near, line) in lines.iter().enumerate().take(to).skip(from) {
                shown.entry(near).or_insert_with(|| FoundLine {
                    line: near + 1,
                    text: around(line, 0),
                    matched: false,
                });
            }
            shown.insert(at, FoundLine { line: at + 1, text: around(line, matched.start()), matched: true });
        }
        self.lines = shown.into_values().collect();
    }

    /// Returns the lines as `path:line:text`, context as `path-line-text`, with `--` between groups.
    pub(super) fn lines_text(&self) -> String {
        let path = sayso_diff::one_line(self.path.as_str());
        let mut text = String::new();
        let mut last = None;
        let has_context = self.lines.iter().any(|line| !line.matched);
        for FoundLine { line, text: content, matched } in &self.lines {
            if has_context && last.is_some_and(|last| last + 1 < *line) {
                text.push_str("--\n");
            }
            last = Some(*line);
            let mark = if *matched { ':' } else { '-' };
            text.push_str(&format!("{path}{mark}{line}{mark}{content}\n"));
        }
        if has_context {
            text.push_str("--\n");
        }
        text
    }
}

/// Returns the part of a long line around an offset.
fn around(line: &str, offset: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(offset.saturating_sub(MAX_LINE_BYTES / 4));
    let end = line.floor_char_boundary((start + MAX_LINE_BYTES).min(line.len()));
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{}{after}", &line[start..end])
}
