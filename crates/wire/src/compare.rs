//! What was edited, as differences that a person can read: for each section, and for the whole.

use std::borrow::Cow;

use sayso_diff::{Diff, Rendering, UnifiedOptions};

use crate::json::{Kind, text};
use crate::request::ModelRequest;
use crate::section::{NodeType, Section, SectionId};

/// What became of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// Its text is another.
    Edited,
    /// It was taken out.
    Deleted,
    /// It was not there before.
    Added,
}

/// A section that is not what came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionDiff {
    /// The section.
    pub id: SectionId,
    /// Where it is.
    pub path: String,
    /// What it is for a person.
    pub label: String,
    /// What became of it.
    pub became: Became,
    /// What it said when it came.
    pub old: String,
    /// What it says.
    pub new: String,
}

impl SectionDiff {
    /// The lines that differ, with some around them.
    pub fn unified(&self, context: usize) -> String {
        let options = UnifiedOptions {
            context,
            old_label: &self.path,
            new_label: &self.path,
            rendering: Rendering::Readable,
            limit: None,
        };
        let text = Diff::new(self.old.as_bytes(), self.new.as_bytes()).unified(&options).into_text();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl ModelRequest {
    /// What a section said when it came; `None` of one that was added.
    pub fn original_content(&self, section: &Section) -> Option<Cow<'_, str>> {
        let Some(document) = self.document() else { return Some(String::from_utf8_lossy(self.original())) };
        let shown = section.leaf.unwrap_or(section.id.target);
        if !document.came_first(shown) {
            return None;
        }
        let raw = document.original_raw(shown);
        Some(match document.original_kind(shown) {
            Kind::String => text::decode(raw.get(1..raw.len() - 1).unwrap_or_default()),
            _ => String::from_utf8_lossy(raw),
        })
    }

    /// How a section differs from what came; `None` if it does not.
    pub fn section_diff(&self, section: &Section) -> Option<SectionDiff> {
        let (old, new) = (self.original_content(section), self.content(section).into_owned());
        let became = match &old {
            _ if section.deleted => Became::Deleted,
            None => Became::Added,
            Some(old) if *old != new => Became::Edited,
            Some(_) => return None,
        };
        let new = if became == Became::Deleted { String::new() } else { new };
        let (id, path, label) = (section.id, self.raw_path(section), section.label.clone());
        Some(SectionDiff { id, path, label, became, old: old.unwrap_or_default().into_owned(), new })
    }

    /// Every section that differs from what came. What is part of one that is gone or new as a whole is shown with that.
    pub fn diff(&self) -> Vec<SectionDiff> {
        let mut differences: Vec<SectionDiff> = Vec::new();
        let mut whole: Vec<SectionId> = Vec::new();
        for section in self.sections().filter(|section| section.node != NodeType::Tag) {
            if section.parent.is_some_and(|parent| whole.contains(&parent)) {
                whole.push(section.id);
                continue;
            }
            // What holds others is told by them, unless it is gone or new itself.
            let holds = section.leaf.is_none() && !section.deleted && !self.is_added(section.id.target);
            if let Some(difference) = (!holds).then(|| self.section_diff(section)).flatten() {
                if difference.became != Became::Edited {
                    whole.push(section.id);
                }
                differences.push(difference);
            }
        }
        differences
    }

    /// The same as one text.
    pub fn unified_diff(&self, context: usize) -> String {
        self.diff().iter().map(|difference| difference.unified(context)).collect()
    }
}
