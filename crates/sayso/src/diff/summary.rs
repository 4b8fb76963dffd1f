//! The last line about two trees.

use sayso_diff::Counts;

/// What was found in all.
#[derive(Clone, Copy, Default)]
pub(crate) struct Summary {
    pub(crate) files: usize,
    pub(crate) counts: Counts,
}

impl Summary {
    pub(crate) fn add(&mut self, counts: Counts) {
        self.files += 1;
        self.counts.added += counts.added;
        self.counts.removed += counts.removed;
    }

    pub(crate) fn text(&self) -> String {
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        format!(
            "{} changed, {}(+), {}(-)",
            plural(self.files, "file"),
            plural(self.counts.added, "insertion"),
            plural(self.counts.removed, "deletion")
        )
    }
}
