//! What was edited, as differences that a person can read: for each section, and for the whole.

use std::borrow::Cow;
use std::collections::BTreeSet;

use sayso_diff::{Diff, Rendering, UnifiedOptions};

use crate::edit::{EditOp, Step};
use crate::json::{Change, Kind, Target, text};
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
    /// The value of it that differs.
    pub target: Target,
    /// Where that is.
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
        // Values seldom end with a line break. That neither does is nothing to tell.
        let open = |text: &str| !text.ends_with('\n');
        let end = if open(&self.old) && open(&self.new) { "\n" } else { "" };
        let whole = |text: &str| if text.is_empty() { String::new() } else { format!("{text}{end}") };
        let (old, new) = (whole(&self.old), whole(&self.new));
        let text = Diff::new(old.as_bytes(), new.as_bytes()).unified(&options).into_text();
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
        let target = section.leaf.unwrap_or(section.id.target);
        Some(SectionDiff { id, target, path, label, became, old: old.unwrap_or_default().into_owned(), new })
    }

    /// Every section that differs from what came. What is part of one that is gone or new as a whole is shown with that.
    pub fn diff(&self) -> Vec<SectionDiff> {
        let mut differences: Vec<SectionDiff> = Vec::new();
        let mut whole: Vec<SectionId> = Vec::new();
        let replaced = |section: &Section| {
            let Some(document) = self.document() else { return false };
            let around = std::iter::successors(document.parent(section.id.target), |own| document.parent(*own));
            self.is_added(section.id.target) && around.into_iter().any(|own| document.is_replaced(own))
        };
        for section in self.sections().filter(|section| section.node != NodeType::Tag) {
            // What came with something that was replaced as a whole is told with that.
            if replaced(section) {
                continue;
            }
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
        self.add_what_no_section_shows(&mut differences);
        differences
    }

    /// What was edited within a section, such as a setting of several values, or the order of a list.
    fn add_what_no_section_shows(&self, differences: &mut Vec<SectionDiff>) {
        let Some(document) = self.document() else { return };
        // Of a section that says something else, only that is told; the name of a call beside its arguments is not.
        let of = |difference: &SectionDiff| match difference.became {
            Became::Edited => [difference.target; 2],
            Became::Deleted | Became::Added => [difference.target, difference.id.target],
        };
        let told: BTreeSet<Target> = differences.iter().flat_map(of).collect();
        let around = |target: Target| std::iter::successors(Some(target), |own| document.parent(*own));
        let is_told = |target: Target| around(target).any(|own| told.contains(&own));
        let came = document.as_came();
        let mut more: Vec<Target> = document.replaced().filter(|target| !is_told(*target)).collect();
        for container in document.relisted() {
            let (old, new): (Vec<Target>, Vec<Target>) =
                (came.children(container).collect(), document.children(container).collect());
            let (before, after): (BTreeSet<Target>, BTreeSet<Target>) =
                (old.iter().copied().collect(), new.iter().copied().collect());
            let shown = before.symmetric_difference(&after).all(|target| is_told(*target));
            let kept = |list: &[Target]| -> Vec<Target> {
                list.iter().copied().filter(|target| before.contains(target) && after.contains(target)).collect()
            };
            if (!shown || kept(&old) != kept(&new)) && !is_told(container) {
                more.push(container);
            }
        }
        for target in more.into_iter().filter(|target| document.came_first(*target) && document.is_here(*target)) {
            let section = around(target).find_map(|own| self.section(own.into()));
            let old = came.text(target).unwrap_or_else(|| String::from_utf8_lossy(came.raw(target)));
            let bytes = document.value_bytes(target);
            let new = document.text(target).unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned().into());
            differences.push(SectionDiff {
                id: section.map_or(target.into(), |section| section.id),
                target,
                path: document.path(target),
                label: section.map(|section| section.label.clone()).unwrap_or_default(),
                became: Became::Edited,
                old: old.into_owned(),
                new: new.into_owned(),
            });
        }
    }

    /// What an edit of one leaf of this request replaced, and with what, as JSON; `None` of an edit of another sort.
    pub fn values(&self, op: &EditOp) -> Option<(String, String)> {
        let (document, [Step::Body(Change::Value { target, old, new })]) = (self.document()?, op.steps.as_slice())
        else {
            return None;
        };
        let written = |stands: &Option<Target>| {
            let stands = stands.unwrap_or(*target);
            document.knows(stands).then(|| String::from_utf8_lossy(document.original_raw(stands)).into_owned())
        };
        Some((written(old)?, written(new)?))
    }

    /// Every difference as one text.
    pub fn unified_diff(&self, context: usize) -> String {
        self.diff().iter().map(|difference| difference.unified(context)).collect()
    }
}
