//! What must hold for any input. Each function panics with the broken law.

use sayso_diff::{
    Diff, Form, LineKind, NO_FILE, Patch, Placement, Rendering, Selection, Side, Unified, UnifiedOptions, merge,
};

/// Cuts a fuzzer's input into three at the byte F8, which no UTF-8 text has, so that seeds can be written by hand.
pub fn three_parts(data: &[u8]) -> [&[u8]; 3] {
    let mut parts = data.splitn(3, |&byte| byte == 0xF8);
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

/// Options for an exact patch of one file.
pub fn exact(context: usize) -> UnifiedOptions<'static> {
    UnifiedOptions { context, old_label: "a/f", new_label: "b/f", rendering: Rendering::Exact, limit: None }
}

/// The laws of a diff between two contents.
pub fn diff_laws(old: &[u8], new: &[u8]) {
    let diff = Diff::new(old, new);
    assert_eq!(diff.is_unchanged(), old == new, "unchanged means equal bytes");
    changes_are_ordered_and_apart(&diff);
    let utf16 = [old, new].iter().any(|side| is_wide(side));
    for context in [0, 1, 3, 1000] {
        let hunks: Vec<_> = diff.hunks(context).collect();
        assert_eq!(diff.accept(hunks.iter().copied()), new, "all hunks give the new bytes");
        assert_eq!(diff.accept([]), old, "no hunk gives the old bytes");
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
    assert_eq!(inline.truncated, total > 10, "the card says when there is more");
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

fn is_wide(bytes: &[u8]) -> bool {
    use sayso_diff::Encoding::{Utf16Be, Utf16Le};
    matches!(Form::of(bytes).encoding, Utf16Be | Utf16Le)
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

/// Accepting hunks of the diff and applying hunks of its text are the same thing, for every subset (or many).
fn subsets_agree_with_patches(diff: &Diff<'_>, old: &[u8], new: &[u8], context: usize) {
    let text = match diff.unified(&exact(context)) {
        Unified::NoChanges => return assert_eq!(old, new),
        Unified::Changes { text, truncated } => {
            assert!(!truncated, "there was no limit");
            text
        }
    };
    let patch = Patch::parse(&text);
    assert_eq!(patch.problems, [], "we can read what we write");
    assert_eq!(patch.files.len(), 1);
    let file = &patch.files[0];
    let hunks: Vec<_> = diff.hunks(context).collect();
    assert_eq!(file.hunks.len(), hunks.len());
    for subset in subsets(hunks.len()) {
        let numbers: Vec<usize> = (1..=hunks.len()).filter(|number| subset & (1 << (number % 64)) != 0).collect();
        let accepted = diff.accept(hunks.iter().copied().filter(|hunk| numbers.contains(&hunk.number)));
        let selection = Selection::Hunks(numbers);
        let applied = file.apply(old, &selection, Placement::Strict).expect("our own hunks fit");
        assert_eq!(applied.bytes, accepted, "accepting and applying agree on {selection:?}");
    }
    let all = file.apply(old, &Selection::All, Placement::Strict).expect("our own patch applies");
    assert_eq!(all.bytes, new);
    let relocated = file.apply(old, &Selection::All, Placement::Within(10)).expect("in place is within any distance");
    assert_eq!(relocated.bytes, new);
}

/// Every subset of few hunks; of many, a spread of them.
fn subsets(hunks: usize) -> impl Iterator<Item = u64> {
    let every: u64 = if hunks < 5 { 1 << (hunks + 1) } else { 0 };
    let some = [0, u64::MAX, 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0xFF, 1 << 7, 0x1248_1248_1248_1248];
    (0..every).chain(some)
}

/// The laws of a merge.
pub fn merge_laws(base: &[u8], ours: &[u8], theirs: &[u8]) {
    assert_eq!(merge(base, ours, ours).clean().as_deref(), Some(ours), "the same change twice is that change");
    assert_eq!(merge(base, ours, base).clean().as_deref(), Some(ours), "no change of theirs leaves ours");
    assert_eq!(merge(base, base, theirs).clean().as_deref(), Some(theirs), "no change of ours leaves theirs");
    let (forth, back) = (merge(base, ours, theirs), merge(base, theirs, ours));
    assert_eq!(forth.clean(), back.clean(), "it does not matter who merges");
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

/// The laws of reading a patch that anybody may have written, and of applying it to anything.
pub fn patch_laws(text: &[u8], base: &[u8]) {
    let patch = Patch::parse(text);
    for file in &patch.files {
        assert_eq!(
            file.apply(base, &Selection::Hunks(Vec::new()), Placement::Strict).expect("nothing fits").bytes,
            base
        );
        for placement in [Placement::Strict, Placement::Within(3)] {
            match file.apply(base, &Selection::All, placement) {
                Ok(applied) => {
                    assert_eq!(applied.moves.len(), file.hunks.len());
                    if placement == Placement::Strict {
                        assert!(applied.moves.iter().all(|&(_, distance)| distance == 0), "strict means in place");
                    }
                }
                Err(rejections) => assert!(!rejections.is_empty(), "a failure names its hunks"),
            }
        }
    }
}

/// The laws of a file that comes or goes.
pub fn presence_laws(content: &[u8]) {
    let created = Diff::new(Side::Absent, content);
    assert!(!created.is_unchanged(), "an empty file is not the same as no file");
    assert_eq!(created.accept(created.hunks(3)), content);
    let deleted = Diff::new(content, Side::Absent);
    assert!(deleted.accept(deleted.hunks(3)).is_empty());
    let options = UnifiedOptions { old_label: NO_FILE, ..exact(3) };
    let text = created.unified(&options).into_text();
    assert!(text.starts_with(b"--- /dev/null\n+++ b/f\n"));
    assert_eq!(created.counts().added, created.line_counts().1);
}
