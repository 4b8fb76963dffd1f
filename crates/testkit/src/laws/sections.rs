//! Laws of patches in the `*** Begin Patch` format.

use sayso_diff::{Diff, LineKind, Section, SectionAction, SectionApplied, SectionPatch, TextFormat, is_begin_patch};

/// Checks parsing of an arbitrary patch and applying it to arbitrary text.
pub fn section_laws(text: &str, base: &str) {
    let patch = SectionPatch::parse(text);
    for section in &patch.sections {
        assert!(!section.incomplete || !patch.problems.is_empty(), "an incomplete section has a problem");
        for base in [None, Some(base)] {
            match section.apply(base) {
                Ok(applied) => applied_laws(section, base, &applied),
                Err(rejections) => assert!(!rejections.is_empty(), "a failure names its chunks"),
            }
        }
    }
}

fn applied_laws(section: &Section, base: Option<&str>, applied: &SectionApplied) {
    assert!(!section.incomplete, "an incomplete section is not applied");
    let SectionAction::Update { chunks, .. } = &section.action else { return };
    let (base, text) = (base.expect("a file is updated"), applied.text.as_deref().expect("it stays"));
    let count = |kind| chunks.iter().flat_map(|chunk| &chunk.lines).filter(|line| line.kind == kind).count();
    // `split_terminator` does not count an empty last line.
    if base.is_empty() || base.ends_with('\n') {
        let lines = |text: &str| text.split_terminator('\n').count();
        let (after, before) = (lines(text), lines(base));
        assert_eq!(after + count(LineKind::Remove), before + count(LineKind::Add), "lines after = before - old + new");
        assert!(text.is_empty() || text.ends_with('\n'), "the final newline stays");
    }
    if count(LineKind::Add) == 0 && count(LineKind::Remove) == 0 {
        assert_eq!(text, base, "context changes nothing, however loosely it fits");
    }
}

/// Returns a patch that turns `old` into `new`, with `context` lines around changes. Returns `None` for equal texts.
pub fn section_patch(old: &str, new: &str, context: usize) -> Option<String> {
    let diff = Diff::new(old.as_bytes(), new.as_bytes());
    let mut patch = String::from("*** Begin Patch\n*** Update File: f\n");
    for hunk in diff.hunks(context) {
        patch.push_str("@@\n");
        for line in hunk.lines() {
            patch.push(match line.kind {
                LineKind::Context => ' ',
                LineKind::Add => '+',
                LineKind::Remove => '-',
            });
            let text = std::str::from_utf8(line.bytes).expect("lines of text are text");
            patch.push_str(text.strip_suffix('\n').unwrap_or(text));
            patch.push('\n');
        }
    }
    (!diff.changes().is_empty()).then(|| patch + "*** End Patch\n")
}

/// Checks that generated patches make the new text from the old, or report an ambiguity.
pub fn section_round_trip_laws(old: &str, new: &str) {
    // A text with NULs in the pattern of UTF-16 is diffed as UTF-16.
    if [old, new].iter().any(|side| TextFormat::of(side.as_bytes()).encoding != sayso_diff::Encoding::Utf8) {
        return;
    }
    let mut expected = new.strip_suffix('\n').unwrap_or(new).to_owned();
    if !new.is_empty() && (old.is_empty() || old.ends_with('\n')) {
        expected.push('\n');
    }
    for context in [1, 3, usize::MAX / 4] {
        let Some(text) = section_patch(old, new, context) else { return };
        assert!(is_begin_patch(&text));
        let patch = SectionPatch::parse(&text);
        assert_eq!(patch.problems, [], "generated patches parse");
        assert_eq!(patch.sections.len(), 1);
        match patch.sections[0].apply(Some(old)) {
            Ok(applied) if applied.ambiguous.is_empty() => {
                assert_eq!(applied.loosened, [], "it fits as it is");
                assert_eq!(applied.text.as_deref(), Some(&*expected), "without doubt it is the new text");
            }
            // A chunk applied at an ambiguous place may leave no place for the next.
            doubtful => assert!(context < 1000, "all of a file fits only once: {doubtful:?}"),
        }
    }
}
