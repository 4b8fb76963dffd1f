//! Totals of several files.

use sayso_diff::Counts;

use crate::words::count;

/// Changed files and lines in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffTotals {
    pub files: usize,
    pub counts: Counts,
}

impl DiffTotals {
    /// Adds one changed file.
    pub fn add(&mut self, counts: Counts) {
        self.files += 1;
        self.counts.added += counts.added;
        self.counts.removed += counts.removed;
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
