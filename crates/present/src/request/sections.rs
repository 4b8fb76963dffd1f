//! Sections of a request: a line with a bar of tokens for each, and its content below.

use std::collections::{BTreeMap, BTreeSet};

use sayso_api::request::{Editability, RequestSection};
use sayso_wire::tokens::Tokens;
use sayso_wire::{NodeType, SectionId};

use super::status::scope_name;
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{bar, format_percent, format_time_of_day, ratio, truncate};

/// Lines of a section's content in an excerpt.
const EXCERPT_LINES: usize = 4;
/// Columns of a window below which bars are short.
const NARROW_COLUMNS: usize = 64;
/// Columns that content gets at least.
const MIN_CONTENT_COLUMNS: usize = 8;

/// The amount of content to render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionExtent {
    /// The start of each section. Collapsed sections show their heading only.
    Excerpt,
    /// All of each section.
    Full,
}

/// Renders sections for a window of `width` columns. The second value is `true` if content is not shown.
pub fn render_sections(sections: &[RequestSection], extent: SectionExtent, width: usize) -> (StyledText, bool) {
    let tree = SectionTree::new(sections);
    let (mut text, mut is_truncated) = (StyledText::new(), false);
    for section in sections {
        if extent == SectionExtent::Excerpt && tree.is_inside_collapsed(section) {
            is_truncated = true;
            continue;
        }
        let depth = tree.ancestors(section).len();
        text.append(heading(section, depth, width));
        text.append(details(section, depth, width));
        let is_collapsed = section.collapsed && extent == SectionExtent::Excerpt;
        let has_own_content = !tree.has_content_below(section) && section.node != NodeType::Tag;
        if has_own_content && !is_collapsed {
            let (content, is_content_truncated) = content(section, depth, extent, width);
            text.plain(content);
            is_truncated |= is_content_truncated;
        } else {
            is_truncated |= has_own_content && !section.content.is_empty();
        }
    }
    (text, is_truncated)
}

/// Renders the heading above pinned sections.
pub fn pinned_heading(pinned: Tokens, total: Tokens) -> StyledText {
    let share = format_percent(ratio(pinned.count, total.count));
    let mut text = StyledText::new();
    text.push(Style::Accent, format!("Pinned · {pinned} tokens · {share}\n"));
    text
}

/// Sections by their parents.
struct SectionTree<'s> {
    parents: BTreeMap<SectionId, &'s RequestSection>,
    /// Ids of sections whose content is shown by their children.
    containers: BTreeSet<SectionId>,
    by_id: BTreeMap<SectionId, &'s RequestSection>,
}

impl<'s> SectionTree<'s> {
    fn new(sections: &'s [RequestSection]) -> Self {
        let by_id: BTreeMap<SectionId, &RequestSection> =
            sections.iter().map(|section| (section.id, section)).collect();
        let parent = |section: &'s RequestSection| Some((section.id, *by_id.get(&section.parent?)?));
        let parents = sections.iter().filter_map(parent).collect();
        // A tag repeats a part of its parent's text, and metadata is beside the content.
        let beside = [NodeType::Tag, NodeType::Metadata];
        let is_content = |section: &&RequestSection| !beside.contains(&section.node);
        let containers = sections.iter().filter(is_content).filter_map(|section| section.parent).collect();
        Self { parents, containers, by_id }
    }

    /// The sections around a section, innermost first.
    fn ancestors(&self, section: &RequestSection) -> Vec<&'s RequestSection> {
        let Some(own) = self.by_id.get(&section.id) else { return Vec::new() };
        let next = |own: &&'s RequestSection| self.parents.get(&own.id).copied();
        // Bounded, in case a message has a cycle.
        std::iter::successors(next(own), next).take(self.by_id.len()).collect()
    }

    fn has_content_below(&self, section: &RequestSection) -> bool {
        self.containers.contains(&section.id)
    }

    fn is_inside_collapsed(&self, section: &RequestSection) -> bool {
        self.ancestors(section).iter().any(|outer| outer.collapsed)
    }
}

/// The label, and tokens with a bar.
fn heading(section: &RequestSection, depth: usize, width: usize) -> StyledText {
    let cells = if width < NARROW_COLUMNS { 4 } else { 10 };
    let tokens = section.tokens;
    let numbers = format!("{}  {tokens:>9}  {:>4}", bar(section.share, cells), format_percent(section.share));
    let room = width.saturating_sub(numbers.chars().count() + 2);
    let mark = if section.collapsed { "▸ " } else { "" };
    let label = format!("{}{mark}{}", "  ".repeat(depth), escape_unprintable(&section.label));
    let label = truncate(&label, room);
    let padding = " ".repeat(room.saturating_sub(label.chars().count()));
    let mut text = StyledText::new();
    text.push(if section.deleted { Style::Removed } else { Style::Title }, label);
    text.plain(format!("{padding}  "));
    text.line(Style::Dim, numbers);
    text
}

/// The path and the state of a section.
fn details(section: &RequestSection, depth: usize, width: usize) -> StyledText {
    let mut notes = Vec::new();
    if section.pinned {
        notes.push("Pinned".to_owned());
    }
    let change = match (section.deleted, section.edited) {
        (true, _) => Some("Deleted"),
        (false, true) => Some("Edited · Show diff"),
        (false, false) => None,
    };
    match section.applied_edit {
        Some(saved) => {
            let (scope, time) = (scope_name(saved.scope), format_time_of_day(saved.saved));
            notes.push(format!("{} (saved for the {scope} at {time})", change.unwrap_or("Edited · Show diff")));
        }
        None => notes.extend(change.map(str::to_owned)),
    }
    if let Editability::No { reason } = &section.editability {
        let reason = reason.as_deref().unwrap_or("it is fixed");
        notes.push(format!("cannot be edited: {}", escape_unprintable(reason)));
    }
    let parts = [escape_unprintable(&section.raw_path).into_owned(), notes.join(" · ")];
    let line = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
    let mut text = StyledText::new();
    if !line.is_empty() {
        text.line(Style::Dim, truncate(&format!("{}{line}", "  ".repeat(depth)), width));
    }
    text
}

/// The content of a section. The second value is `true` if a part of it is not shown.
fn content(section: &RequestSection, depth: usize, extent: SectionExtent, width: usize) -> (String, bool) {
    let max_lines = if extent == SectionExtent::Full { usize::MAX } else { EXCERPT_LINES };
    let indent = format!("{}  │ ", "  ".repeat(depth));
    let room = width.saturating_sub(indent.chars().count()).max(MIN_CONTENT_COLUMNS);
    let lines: Vec<&str> = section.content.lines().collect();
    let mut text = String::new();
    let mut is_truncated = lines.len() > max_lines || (section.content.len() as u64) < section.content_size;
    for line in lines.iter().take(max_lines) {
        let line = escape_unprintable(line);
        let shown = if extent == SectionExtent::Full { line.clone().into_owned() } else { truncate(&line, room) };
        is_truncated |= shown != *line;
        text.push_str(&format!("{indent}{shown}\n"));
    }
    if is_truncated && section.content_size > 0 {
        text.push_str(&format!("{indent}… {} bytes in all\n", section.content_size));
    }
    (text, is_truncated)
}
