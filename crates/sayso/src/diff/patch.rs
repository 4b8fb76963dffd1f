//! Unified diffs for programs.

use sayso_diff::{Diff, NO_FILE, Rendering, Side, UnifiedOptions, path_label};

/// Formats the diff of two files under labels.
pub(super) fn of_files(diff: &Diff<'_>, old_label: &str, new_label: &str, context: usize) -> Vec<u8> {
    let label = |name: &str| path_label("", name.as_bytes());
    unified(diff, &label(old_label), &label(new_label), context)
}

/// Formats the diff of a file of two trees, without its git header.
pub(super) fn of_tree_file(diff: &Diff<'_>, path: &[u8], context: usize) -> Vec<u8> {
    // The git header alone tells that an empty file was created or deleted.
    if diff.changes().is_empty() {
        return Vec::new();
    }
    let label = |side, prefix| if side == Side::Absent { NO_FILE.to_owned() } else { path_label(prefix, path) };
    unified(diff, &label(diff.old_side(), "a/"), &label(diff.new_side(), "b/"), context)
}

fn unified(diff: &Diff<'_>, old_label: &str, new_label: &str, context: usize) -> Vec<u8> {
    let options = UnifiedOptions { context, old_label, new_label, rendering: Rendering::Exact, limit: None };
    diff.unified(&options).into_text()
}
