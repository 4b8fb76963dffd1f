//! Sections, drawn: a line with a bar of tokens for each, and what it says beneath.

use std::collections::{BTreeMap, BTreeSet};

use sayso_api::proto;
use sayso_api::proto::section::{Editable, NodeType};

use super::width::{bar, percent, short};
use crate::diff::style::Styles;
use crate::visible::visible;
use crate::watch::clock;

/// Lines of a section that are shown, unless all are wanted.
const SOME_LINES: usize = 4;
/// Windows narrower than this get short bars.
const NARROW: usize = 64;

/// How much of sections is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The beginning of each, and nothing within those that are folded.
    Some,
    /// All of each.
    All,
}

/// A number of tokens, as people read it.
pub(super) fn tokens(tokens: Option<&proto::Tokens>) -> String {
    use sayso_wire::tokens::Tokens;
    let Some(tokens) = tokens else { return "?".to_owned() };
    let counted = if tokens.exact { Tokens::exact(tokens.count) } else { Tokens::about(tokens.count) };
    counted.to_string()
}

/// Draws sections, and says whether something of them is not shown.
pub(super) fn sections(sections: &[proto::Section], extent: Extent, width: usize, styles: &Styles) -> (String, bool) {
    let tree = Tree::of(sections);
    let (mut text, mut cut) = (String::new(), false);
    for section in sections {
        if extent == Extent::Some && tree.is_folded(section) {
            cut = true;
            continue;
        }
        let depth = tree.depth(section);
        text.push_str(&heading(section, depth, width, styles));
        text.push_str(&details(section, depth, width, styles));
        let folded = section.collapsed && extent == Extent::Some;
        let says = !tree.holds(section) && section.node.as_known() != Some(NodeType::Tag);
        if says && !folded {
            let (content, is_cut) = content(section, depth, extent, width);
            text.push_str(&content);
            cut |= is_cut;
        } else {
            cut |= says && !section.content.is_empty();
        }
    }
    (text, cut)
}

/// Which section is part of which.
struct Tree<'s> {
    parents: BTreeMap<&'s str, &'s proto::Section>,
    holding: BTreeSet<&'s str>,
    known: BTreeMap<&'s str, &'s proto::Section>,
}

impl<'s> Tree<'s> {
    fn of(sections: &'s [proto::Section]) -> Self {
        let known: BTreeMap<&str, &proto::Section> =
            sections.iter().map(|section| (section.id.as_str(), section)).collect();
        let parent = |section: &'s proto::Section| {
            let parent = known.get(section.parent.as_deref()?)?;
            Some((section.id.as_str(), *parent))
        };
        let parents = sections.iter().filter_map(parent).collect();
        // A tag is part of what a section says, and a field beside it says something else.
        let beside = [Some(NodeType::Tag), Some(NodeType::Metadata)];
        let within = |section: &&proto::Section| !beside.contains(&section.node.as_known());
        let holding = sections.iter().filter(within).filter_map(|section| section.parent.as_deref()).collect();
        Self { parents, holding, known }
    }

    fn around(&self, section: &proto::Section) -> Vec<&'s proto::Section> {
        let Some(own) = self.known.get(section.id.as_str()) else { return Vec::new() };
        let next = |own: &&'s proto::Section| self.parents.get(own.id.as_str()).copied();
        std::iter::successors(next(own), next).take(self.known.len()).collect()
    }

    fn depth(&self, section: &proto::Section) -> usize {
        self.around(section).len()
    }

    /// Whether it holds others that say what it does.
    fn holds(&self, section: &proto::Section) -> bool {
        self.holding.contains(section.id.as_str())
    }

    fn is_folded(&self, section: &proto::Section) -> bool {
        self.around(section).iter().any(|outer| outer.collapsed)
    }
}

/// What a section is, and its tokens with a bar.
fn heading(section: &proto::Section, depth: usize, width: usize, styles: &Styles) -> String {
    let cells = if width < NARROW { 4 } else { 10 };
    let count = tokens(section.tokens.as_option());
    let numbers = format!("{}  {count:>9}  {:>4}", bar(section.share, cells), percent(section.share));
    let room = width.saturating_sub(numbers.chars().count() + 2);
    let mark = if section.collapsed { "▸ " } else { "" };
    let label = format!("{}{mark}{}", "  ".repeat(depth), visible(&section.label));
    let label = short(&label, room);
    let padding = " ".repeat(room.saturating_sub(label.chars().count()));
    let mut text = String::new();
    let style = if section.deleted { styles.removed.marker } else { styles.title };
    styles.paint(&mut text, style, &label);
    text.push_str(&padding);
    text.push_str("  ");
    styles.paint(&mut text, styles.number, &numbers);
    text.push('\n');
    text
}

/// Where a section is, and what is to be known of it.
fn details(section: &proto::Section, depth: usize, width: usize, styles: &Styles) -> String {
    let mut notes = Vec::new();
    if section.pinned {
        notes.push("Pinned".to_owned());
    }
    match (section.saved.as_option(), section.deleted, section.edited) {
        (Some(saved), deleted, _) => {
            let scope = super::scope_name(saved.scope.as_known());
            let what = if deleted { "Deleted" } else { "Edited · Show diff" };
            notes.push(format!("{what} (saved for the {scope} at {})", clock(saved.saved_ms)));
        }
        (None, true, _) => notes.push("Deleted".to_owned()),
        (None, false, true) => notes.push("Edited · Show diff".to_owned()),
        (None, false, false) => {}
    }
    if section.editable.as_known() == Some(Editable::No) {
        let why = section.fixed_because.as_deref().unwrap_or("it is fixed");
        notes.push(format!("cannot be edited: {}", visible(why)));
    }
    let path = visible(&section.raw_path).into_owned();
    let line = [Some(path).filter(|path| !path.is_empty()), Some(notes.join(" · ")).filter(|notes| !notes.is_empty())];
    let line = line.into_iter().flatten().collect::<Vec<_>>().join("  ");
    if line.is_empty() {
        return String::new();
    }
    let indent = "  ".repeat(depth);
    let mut text = String::new();
    styles.paint(&mut text, styles.number, &short(&format!("{indent}{line}"), width));
    text.push('\n');
    text
}

/// What a section says, and whether some of that is not shown.
fn content(section: &proto::Section, depth: usize, extent: Extent, width: usize) -> (String, bool) {
    let most = if extent == Extent::All { usize::MAX } else { SOME_LINES };
    let indent = format!("{}  │ ", "  ".repeat(depth));
    let room = width.saturating_sub(indent.chars().count()).max(8);
    let lines: Vec<&str> = section.content.lines().collect();
    let mut text = String::new();
    let mut cut = lines.len() > most || (section.content.len() as u64) < section.content_size;
    for line in lines.iter().take(most) {
        let line = visible(line);
        let shown = if extent == Extent::All { line.clone().into_owned() } else { short(&line, room) };
        cut |= shown != *line;
        text.push_str(&format!("{indent}{shown}\n"));
    }
    if cut && section.content_size > 0 {
        text.push_str(&format!("{indent}… {} bytes in all\n", section.content_size));
    }
    (text, cut)
}
