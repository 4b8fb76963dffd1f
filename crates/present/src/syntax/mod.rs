//! Syntax of source text as classes of tokens, without colours.
//!
//! `LineParser` classifies the lines of a text in order. [`SyntaxCache`] classifies any line of a text of bounded size: it parses
//! blocks of lines, each from some lines before its start, and keeps the blocks that were used last. The classes of a line therefore
//! depend on the text only, and not on the lines that were asked for before.
//!
//! # Limits
//!
//! - A comment or string that starts more than a block before a line is not recognized there.

mod cache;
mod classes;
mod rows;

use std::ops::Range;
use std::sync::LazyLock;

use syntect::easy::ScopeRegionIterator;
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

pub use cache::{SyntaxCache, SyntaxReader};
pub use rows::row_classes;

use crate::span::SyntaxClass;

/// The definitions are large; the first highlighted file loads them.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Callers of [`LineParser::line`] skip longer lines: they are data, and their parsing takes noticeable time.
pub(crate) const MAX_LINE_BYTES: usize = 4096;

/// The classified pieces of a line, in order and without gaps.
pub type LineClasses = Vec<(Range<usize>, SyntaxClass)>;

/// A language with a syntax definition.
#[derive(Clone, Copy, Debug)]
pub struct Language(&'static SyntaxReference);

impl Language {
    /// Detects the language by a file's name, or else by its first line. Plain text is no language.
    pub fn detect(path: &str, text: &str) -> Option<Self> {
        let file_name = path.rsplit('/').next().filter(|name| !name.is_empty());
        // A leading dot does not begin an extension.
        let extension = file_name.and_then(|name| name.rsplit_once('.')).filter(|(stem, _)| !stem.is_empty());
        let found = extension
            .and_then(|(_, extension)| SYNTAXES.find_syntax_by_extension(extension))
            .or_else(|| file_name.and_then(|name| SYNTAXES.find_syntax_by_extension(name)))
            .or_else(|| SYNTAXES.find_syntax_by_first_line(text.lines().next().unwrap_or_default()))?;
        (found.name != "Plain Text").then_some(Self(found))
    }

    pub fn name(self) -> &'static str {
        &self.0.name
    }
}

/// Classifies the lines of a text in order.
#[derive(Debug)]
pub(crate) struct LineParser {
    parse: ParseState,
    scopes: ScopeStack,
}

impl LineParser {
    pub(crate) fn new(language: Language) -> Self {
        Self { parse: ParseState::new(language.0), scopes: ScopeStack::new() }
    }

    /// Classifies the next line, line break included. `None` if the definition of the language is faulty.
    pub(crate) fn line(&mut self, line: &str) -> Option<LineClasses> {
        let operations = self.parse.parse_line(line, &SYNTAXES).ok()?;
        let mut classes = LineClasses::new();
        let mut start = 0;
        for (piece, operation) in ScopeRegionIterator::new(&operations, line) {
            self.scopes.apply(operation).ok()?;
            if piece.is_empty() {
                continue;
            }
            let (end, class) = (start + piece.len(), classes::class(&self.scopes));
            match classes.last_mut() {
                Some((range, last)) if *last == class => range.end = end,
                _ => classes.push((start..end, class)),
            }
            start = end;
        }
        Some(classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_follows_from_name_or_first_line() {
        let name = |file: &str, text: &str| Language::detect(file, text).map(Language::name);
        assert_eq!(name("src/a.rs", ""), Some("Rust"));
        assert_eq!(name("Makefile", ""), Some("Makefile"));
        assert_eq!(name("run", "#!/usr/bin/env python3\n"), Some("Python"));
        assert_eq!(name("notes.txt", "plain"), None);
    }
}
