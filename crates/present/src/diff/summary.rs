//! Totals of several files.

use sayso_api::diff::DiffFile;
use sayso_diff::Counts;

use crate::span::StyledText;
use crate::words::count;

/// Changed files and lines in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffTotals {
    pub files: usize,
    /// Files of a change, the ones that stay as they are included.
    listed: usize,
    pub counts: Counts,
}

impl DiffTotals {
    /// Adds one changed file.
    pub fn add(&mut self, counts: Counts) {
        self.files += 1;
        self.counts.added += counts.added;
        self.counts.removed += counts.removed;
    }

    /// Adds a file of a change, unless it would stay as it is or cannot be changed.
    pub fn add_file(&mut self, file: &DiffFile) {
        self.listed += 1;
        if file.problem.is_none() && !file.is_unchanged() {
            self.add(file.counts);
        }
    }

    /// Renders the totals of a change. Empty for a single file.
    pub fn render(&self) -> StyledText {
        let is_shown = self.listed > 1 && self.files > 0;
        StyledText::from(if is_shown { format!("{}\n", self.text()) } else { String::new() })
    }

    /// Formats the totals as git does: `2 files changed, 1 insertion(+), 0 deletions(-)`.
    pub fn text(&self) -> String {
        format!(
            "{} changed, {}(+), {}(-)",
            count(self.files, "file"),
            count(self.counts.added, "insertion"),
            count(self.counts.removed, "deletion")
        )
    }
}
