//! The short form of a diff, as cards in the stream show it.

use std::borrow::Cow;

use sayso_diff::{InlineDiff, LineKind};

use super::render::{change_style, shorten};
use crate::escape::escape_unprintable;
use crate::span::{LineChange, Style, StyledText};
use crate::words::count;

/// Treatment of unprintable characters. A program reads the exact text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    Escaped,
    Exact,
}

/// Renders the lines of a card.
pub fn render_card(card: &InlineDiff, escaping: Escaping) -> StyledText {
    let mut text = StyledText::new();
    for line in &card.lines {
        let (marker, style) = match line.kind {
            LineKind::Add => ("+ ", change_style(Some(LineChange::Added))),
            LineKind::Remove => ("- ", change_style(Some(LineChange::Removed))),
            LineKind::Context => ("  ", Style::Dim),
        };
        let (shown, omitted) = shorten(&line.text);
        let shown = if escaping == Escaping::Escaped { escape_unprintable(shown) } else { Cow::Borrowed(shown) };
        text.line(style, format!("{marker}{shown}{omitted}"));
    }
    if card.truncated {
        text.line(Style::Dim, format!("... {}", count(card.more_lines() as u64, "more line")));
    }
    text
}

/// Renders a unified diff of texts.
pub fn render_unified(unified: &str) -> StyledText {
    let mut text = StyledText::new();
    for line in unified.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => Style::Title,
            Some(b'+') => Style::Added,
            Some(b'-') => Style::Removed,
            Some(b'@') => Style::Accent,
            _ => Style::Plain,
        };
        text.line(style, escape_unprintable(line));
    }
    text
}
