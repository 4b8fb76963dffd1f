//! Properties that hold for any input. Each function panics with the violated property.

mod file_format;
mod program;
mod proposal;
mod sections;
mod shell;

pub use file_format::{like_laws, one_line_laws};
pub use program::program_laws;
pub use proposal::proposal_laws;
pub use sections::{section_laws, section_patch, section_round_trip_laws};
pub use shell::{quoted_word, shell_laws, shell_quoting_laws};

use std::collections::BTreeSet;

use sayso_diff::{
    Diff, FilePatch, LineKind, NO_FILE, Patch, PatchHunk, Patched, Placement, Rendering, Selection, Side, TextFormat,
    Unified, UnifiedOptions, merge,
};

/// Splits a fuzzer's input into three at the byte F8. UTF-8 never contains it, so seeds can be written by hand.
pub fn three_parts(data: &[u8]) -> [&[u8]; 3] {
    let mut parts = data.splitn(3, |&byte| byte == 0xF8);
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

/// Returns options for an exact patch of one file.
pub fn exact(context: usize) -> UnifiedOptions<'static> {
    UnifiedOptions { context, old_label: "a/f", new_label: "b/f", rendering: Rendering::Exact, limit: None }
}

/// Checks the diff of two contents.
pub fn diff_laws(old: &[u8], new: &[u8]) {
    let diff = Diff::new(old, new);
    assert_eq!(diff.is_unchanged(), old == new, "unchanged means equal bytes");
    changes_are_ordered_and_apart(&diff);
    let utf16 = [old, new].iter().any(|side| is_wide(side));
    if !utf16 {
        common_line_is_kept(&diff, old, new);
    }
    for context in [0, 1, 3, 1000] {
        let hunks: Vec<_> = diff.hunks(context).collect();
        assert_eq!(accepted(&diff, context, &Selection::All).as_deref(), Some(new), "all hunks give the new bytes");
        assert_eq!(accepted(&diff, context, &Selection::none()).as_deref(), Some(old), "no hunk gives the old bytes");
        for hunk in &hunks {
            hunk_numbers_are_true(hunk, old, new);
        }
        if !utf16 {
            subsets_agree_with_patches(&diff, old, new, context);
        }
    }
    let inline = diff.inline(10);
    let total: usize = diff.hunks(1).map(|hunk| hunk.lines().count()).sum();
    assert_eq!(inline.total_lines, total, "the card counts every line");
    assert_eq!(inline.lines.len(), total.min(10), "the card shows ten lines at most");
    assert_eq!(inline.truncated, total > 10, "the card reports truncation");
    for hunk in diff.hunks(3) {
        for marked in hunk.marked_lines() {
            let mut end = 0;
            for span in &marked.spans {
                assert!(span.start >= end && span.start < span.end && span.end <= marked.line.bytes.len());
                end = span.end;
            }
        }
    }
}

fn accepted(diff: &Diff<'_>, context: usize, selection: &Selection) -> Option<Vec<u8>> {
    diff.accept(context, selection).expect("there are such hunks")
}

/// A diff need not be minimal, but it must keep a line if the sides share one.
fn common_line_is_kept(diff: &Diff<'_>, old: &[u8], new: &[u8]) {
    let lines =
        |side: &[u8]| -> Vec<Vec<u8>> { side.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect() };
    let (old, new) = (lines(old), lines(new));
    if old.len() <= 60 && new.len() <= 60 && old.iter().any(|line| new.contains(line)) {
        assert!(diff.counts().removed < old.len(), "a common line stays");
    }
}

fn is_wide(bytes: &[u8]) -> bool {
    use sayso_diff::Encoding::{Utf16Be, Utf16Le};
    matches!(TextFormat::of(bytes).encoding, Utf16Be | Utf16Le)
}

fn changes_are_ordered_and_apart(diff: &Diff<'_>) {
    for pair in diff.changes().windows(2) {
        assert!(pair[0].old.end.line < pair[1].old.start.line, "an unchanged line lies between: {pair:?}");
        assert_eq!(
            pair[1].old.start.line - pair[0].old.end.line,
            pair[1].new.start.line - pair[0].new.end.line,
            "the lines between are the same on both sides"
        );
    }
}

fn hunk_numbers_are_true(hunk: &sayso_diff::Hunk<'_, '_>, old: &[u8], new: &[u8]) {
    let lines: Vec<_> = hunk.lines().collect();
    assert_eq!(lines.len(), hunk.line_count());
    let side = |without: LineKind| lines.iter().filter(move |line| line.kind != without).flat_map(|line| line.bytes);
    assert!(side(LineKind::Add).eq(hunk.old.of(old)), "the old lines are the old bytes");
    assert!(side(LineKind::Remove).eq(hunk.new.of(new)), "the new lines are the new bytes");
    let numbers = |number: fn(&sayso_diff::Line<'_>) -> Option<usize>| lines.iter().filter_map(number);
    assert!(numbers(|line| line.old_number).eq(hunk.old.start.line + 1..=hunk.old.end.line));
    assert!(numbers(|line| line.new_number).eq(hunk.new.start.line + 1..=hunk.new.end.line));
}

/// Accepting hunks of the diff equals applying hunks of its text, for the subsets of [`subsets`].
fn subsets_agree_with_patches(diff: &Diff<'_>, old: &[u8], new: &[u8], context: usize) {
    let text = match diff.unified(&exact(context)) {
        Unified::NoChanges => return assert_eq!(old, new),
        Unified::Changes { text, truncated } => {
            assert!(!truncated, "there was no limit");
            text
        }
    };
    let patch = Patch::parse(&text);
    assert_eq!(patch.problems, [], "generated patches parse");
    assert_eq!(patch.files.len(), 1);
    let file = &patch.files[0];
    let hunks: Vec<_> = diff.hunks(context).collect();
    assert_eq!(file.hunks.len(), hunks.len());
    for subset in subsets(hunks.len()) {
        let numbers: BTreeSet<usize> = (1..=hunks.len()).filter(|number| subset & (1 << (number % 64)) != 0).collect();
        let selection = Selection::Hunks(numbers);
        let patched = file.apply(old.into(), &selection, Placement::Strict).expect("our own hunks fit");
        let accepted = accepted(diff, context, &selection);
        assert_eq!(patched.content, accepted, "accepting and applying agree on {selection:?}");
    }
    for placement in [Placement::Strict, Placement::Within(10)] {
        let all = file.apply(old.into(), &Selection::All, placement).expect("our own patch applies");
        assert_eq!(all.content.as_deref(), Some(new));
    }
}

/// Returns bit masks of hunks: all subsets of up to four hunks, and a fixed sample for more.
fn subsets(hunks: usize) -> impl Iterator<Item = u64> {
    let every: u64 = if hunks < 5 { 1 << (hunks + 1) } else { 0 };
    let some = [0, u64::MAX, 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0xFF, 1 << 7, 0x1248_1248_1248_1248];
    (0..every).chain(some)
}

/// Checks the merge of two versions.
pub fn merge_laws(base: &[u8], ours: &[u8], theirs: &[u8]) {
    assert_eq!(merge(base, ours, ours).clean().as_deref(), Some(ours), "the same change twice is that change");
    assert_eq!(merge(base, ours, base).clean().as_deref(), Some(ours), "no change of theirs leaves ours");
    assert_eq!(merge(base, base, theirs).clean().as_deref(), Some(theirs), "no change of ours leaves theirs");
    let (forth, back) = (merge(base, ours, theirs), merge(base, theirs, ours));
    assert_eq!(forth.clean(), back.clean(), "a merge is symmetric");
    let turned: Vec<_> = back.conflicts().map(|conflict| (conflict.base, conflict.theirs, conflict.ours)).collect();
    assert!(forth.conflicts().map(|conflict| (conflict.base, conflict.ours, conflict.theirs)).eq(turned));
    for conflict in forth.conflicts() {
        assert!(conflict.ours != conflict.theirs && conflict.ours != conflict.base && conflict.theirs != conflict.base);
    }
    let all_ours = forth.resolved_with(|conflict| conflict.ours);
    let all_theirs = forth.resolved_with(|conflict| conflict.theirs);
    if forth.conflicts().next().is_none() {
        assert_eq!(all_ours, all_theirs);
    }
}

/// Checks parsing of an arbitrary patch and applying it to arbitrary content.
pub fn patch_laws(text: &[u8], base: &[u8]) {
    let patch = Patch::parse(text);
    for file in &patch.files {
        for side in [Side::Absent, base.into()] {
            let untouched = file.apply(side, &Selection::none(), Placement::Strict).expect("nothing fits");
            assert_eq!(Side::from(untouched.content.as_deref()), side);
            for placement in [Placement::Strict, Placement::Within(3)] {
                match file.apply(side, &Selection::All, placement) {
                    Ok(patched) => patched_laws(file, side, &patched, placement),
                    Err(rejections) => assert!(!rejections.is_empty(), "a failure names its hunks"),
                }
            }
        }
    }
}

fn patched_laws(file: &FilePatch<'_>, base: Side<'_>, patched: &Patched, placement: Placement) {
    assert!(!file.incomplete, "an incomplete patch is not applied");
    assert_eq!(patched.moves.len(), file.hunks.len());
    if placement == Placement::Strict {
        assert!(patched.moves.iter().all(|&(_, distance)| distance == 0), "strict means in place");
    }
    // No line is lost, invented or joined.
    let lines = |content: &[u8]| content.split_inclusive(|&byte| byte == b'\n').count();
    let before = if let Side::Present(bytes) = base { lines(bytes) } else { 0 };
    let after = patched.content.as_deref().map_or(0, lines);
    let added: usize = file.hunks.iter().map(PatchHunk::new_lines).sum();
    let removed: usize = file.hunks.iter().map(PatchHunk::old_lines).sum();
    assert_eq!(after + removed, before + added, "lines after = lines before - old + new");
}

/// Checks diffs of created and deleted files.
pub fn presence_laws(content: &[u8]) {
    let created = Diff::new(Side::Absent, content);
    assert!(!created.is_unchanged(), "an empty file is not the same as no file");
    assert_eq!(accepted(&created, 3, &Selection::All).as_deref(), Some(content));
    assert_eq!(accepted(&created, 3, &Selection::none()), None, "not created");
    let deleted = Diff::new(content, Side::Absent);
    assert_eq!(accepted(&deleted, 3, &Selection::All), None);
    assert_eq!(accepted(&deleted, 3, &Selection::none()).as_deref(), Some(content), "not deleted");
    assert!(deleted.accept(3, &Selection::Hunks([9].into())).is_err(), "there is no such hunk");
    let options = UnifiedOptions { old_label: NO_FILE, ..exact(3) };
    let text = created.unified(&options).into_text();
    assert!(text.starts_with(b"--- /dev/null\n+++ b/f\n"));
    assert_eq!(created.counts().added, created.line_counts().1);
}
