//! The edits of a request as readable differences.

use std::borrow::Cow;
use std::collections::BTreeSet;

use sayso_diff::{Diff, Rendering, UnifiedOptions};

use crate::edit::{EditOp, EditStep};
use crate::json::{DocumentChange, JsonKind, Target, text};
use crate::request::ModelRequest;
use crate::section::{NodeType, Section, SectionId};

/// The change of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionChange {
    Edited,
    Deleted,
    Added,
}

/// The difference between the received and the current content of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionDiff {
    pub id: SectionId,
    pub target: Target,
    /// Current path of the value.
    pub path: String,
    /// Display name of the section.
    pub label: String,
    pub change: SectionChange,
    pub old: String,
    pub new: String,
}

impl SectionDiff {
    /// Returns a unified diff with `context` lines.
    pub fn unified(&self, context: usize) -> String {
        let options = UnifiedOptions {
            context,
            old_label: &self.path,
            new_label: &self.path,
            rendering: Rendering::Readable,
            limit: None,
        };
        // Values seldom end with a line break. Do not report its absence if both sides lack it.
        let open = |text: &str| !text.ends_with('\n');
        let end = if open(&self.old) && open(&self.new) { "\n" } else { "" };
        let whole = |text: &str| if text.is_empty() { String::new() } else { format!("{text}{end}") };
        let (old, new) = (whole(&self.old), whole(&self.new));
        let text = Diff::new(old.as_bytes(), new.as_bytes()).unified(&options).into_text();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl ModelRequest {
    /// Returns the received content of a section; `None` if it was added.
    pub fn original_content(&self, section: &Section) -> Option<Cow<'_, str>> {
        let Some(document) = self.document() else { return Some(String::from_utf8_lossy(self.original())) };
        let shown = section.leaf.unwrap_or(section.id.target);
        if !document.is_original_value(shown) {
            return None;
        }
        let raw = document.original_raw(shown);
        Some(match document.original_kind(shown) {
            JsonKind::String => text::decode(raw.get(1..raw.len() - 1).unwrap_or_default()),
            _ => String::from_utf8_lossy(raw),
        })
    }

    /// Returns the difference of a section; `None` if it is unchanged.
    pub fn section_diff(&self, section: &Section) -> Option<SectionDiff> {
        let (old, new) = (self.original_content(section), self.content(section).into_owned());
        let became = match &old {
            _ if section.deleted => SectionChange::Deleted,
            None => SectionChange::Added,
            Some(old) if *old != new => SectionChange::Edited,
            Some(_) => return None,
        };
        let new = if became == SectionChange::Deleted { String::new() } else { new };
        let (id, path, label) = (section.id, self.raw_path(section), section.label.clone());
        let target = section.leaf.unwrap_or(section.id.target);
        Some(SectionDiff { id, target, path, label, change: became, old: old.unwrap_or_default().into_owned(), new })
    }

    /// Returns all differences. Parts of a deleted or added section are included in that section.
    pub fn diff(&self) -> Vec<SectionDiff> {
        let mut differences: Vec<SectionDiff> = Vec::new();
        let mut whole: Vec<SectionId> = Vec::new();
        let replaced = |section: &Section| {
            let Some(document) = self.document() else { return false };
            let around = std::iter::successors(document.parent(section.id.target), |own| document.parent(*own));
            self.is_added(section.id.target) && around.into_iter().any(|own| document.is_replaced(own))
        };
        for section in self.sections().filter(|section| section.node != NodeType::Tag) {
            // The difference of a replaced value includes its parts.
            if replaced(section) {
                continue;
            }
            if section.parent.is_some_and(|parent| whole.contains(&parent)) {
                whole.push(section.id);
                continue;
            }
            // A section with parts is reported through them, unless it was deleted or added as a whole.
            let holds = section.leaf.is_none() && !section.deleted && !self.is_added(section.id.target);
            if let Some(difference) = (!holds).then(|| self.section_diff(section)).flatten() {
                if difference.change != SectionChange::Edited {
                    whole.push(section.id);
                }
                differences.push(difference);
            }
        }
        self.add_unsectioned_edits(&mut differences);
        differences
    }

    /// Adds edits within a section that are not its content, such as a setting with several values or the order of a
    /// list.
    fn add_unsectioned_edits(&self, differences: &mut Vec<SectionDiff>) {
        let Some(document) = self.document() else { return };
        // A changed content covers the whole section. The arguments of a call do not cover its other members, such as
        // the name.
        let of = |difference: &SectionDiff| match difference.change {
            SectionChange::Edited => [difference.target; 2],
            SectionChange::Deleted | SectionChange::Added => [difference.target, difference.id.target],
        };
        let reported: BTreeSet<Target> = differences.iter().flat_map(of).collect();
        let around = |target: Target| std::iter::successors(Some(target), |own| document.parent(*own));
        let is_reported = |target: Target| around(target).any(|own| reported.contains(&own));
        let received = document.as_received();
        let mut more: Vec<Target> = document.replaced_values().filter(|target| !is_reported(*target)).collect();
        for container in document.relisted_containers() {
            let (old, new): (Vec<Target>, Vec<Target>) =
                (received.children(container).collect(), document.children(container).collect());
            let (before, after): (BTreeSet<Target>, BTreeSet<Target>) =
                (old.iter().copied().collect(), new.iter().copied().collect());
            let shown = before.symmetric_difference(&after).all(|target| is_reported(*target));
            let kept = |list: &[Target]| -> Vec<Target> {
                list.iter().copied().filter(|target| before.contains(target) && after.contains(target)).collect()
            };
            if (!shown || kept(&old) != kept(&new)) && !is_reported(container) {
                more.push(container);
            }
        }
        for target in
            more.into_iter().filter(|target| document.is_original_value(*target) && document.is_present(*target))
        {
            let section = around(target).find_map(|own| self.section(own.into()));
            let old = received.text(target).unwrap_or_else(|| String::from_utf8_lossy(received.raw(target)));
            let bytes = document.value_bytes(target);
            let new = document.text(target).unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned().into());
            differences.push(SectionDiff {
                id: section.map_or(target.into(), |section| section.id),
                target,
                path: document.path(target),
                label: section.map(|section| section.label.clone()).unwrap_or_default(),
                change: SectionChange::Edited,
                old: old.into_owned(),
                new: new.into_owned(),
            });
        }
    }

    /// Returns the old and the new value of an edit as JSON; `None` unless the edit replaced one value.
    pub fn values(&self, op: &EditOp) -> Option<(String, String)> {
        let (document, [EditStep::Body(DocumentChange::Value { target, old, new })]) =
            (self.document()?, op.steps.as_slice())
        else {
            return None;
        };
        let written = |stands: &Option<Target>| {
            let stands = stands.unwrap_or(*target);
            document.contains(stands).then(|| String::from_utf8_lossy(document.original_raw(stands)).into_owned())
        };
        Some((written(old)?, written(new)?))
    }

    /// Returns all differences as one text.
    pub fn unified_diff(&self, context: usize) -> String {
        self.diff().iter().map(|difference| difference.unified(context)).collect()
    }
}
