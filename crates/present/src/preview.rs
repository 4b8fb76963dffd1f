//! A preview whose contents are at hand as styled text, where no engine can compare them.

use sayso_api::diff::{DiffFile, DiffSide};
use sayso_diff::Counts;
use sayso_review::{CONTEXT, FilePreview, Preview};

use crate::diff::{DiffTotals, FileHeading, Highlighting, LocalDiff, LongLines};
use crate::span::StyledText;

/// Renders a whole preview, every hunk with its number.
pub fn render_preview(preview: &Preview, highlighting: Highlighting) -> StyledText {
    let mut text = StyledText::new();
    let mut totals = DiffTotals::default();
    for file in preview.files() {
        let diff = file.diff();
        let mut local = LocalDiff::new(&diff, file.path.as_str(), CONTEXT, highlighting);
        let shown = diff_file(file, diff.counts(), local.sides());
        let heading = FileHeading { file: &shown, notes: &file.notes, is_settled: preview.is_settled(&file.path) };
        text.append(heading.render());
        if file.problem.is_none() && !diff.is_binary() {
            text.append(local.render(LongLines::Whole, |number| format!("hunk {number}")));
        }
        totals.add_file(&shown);
    }
    text.append(totals.render());
    text
}

fn diff_file(
    file: &FilePreview,
    counts: Counts,
    (old_side, new_side): (Option<DiffSide>, Option<DiffSide>),
) -> DiffFile {
    DiffFile {
        path: file.path.to_string(),
        label: None,
        operation: file.operation.clone(),
        before: file.before.fingerprint(),
        after: file.after.fingerprint(),
        old_side,
        new_side,
        counts,
        hunks: 0,
        conflicts: 0,
        rows: None,
        problem: file.problem.clone(),
        no_diff: None,
    }
}
