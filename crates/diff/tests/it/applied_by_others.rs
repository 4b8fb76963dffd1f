//! Unified diffs applied by `git apply` and `patch` give exactly the new bytes.

use proptest::prelude::*;
use sayso_diff::{Diff, NO_FILE, Side, UnifiedOptions};
use sayso_testkit::programs::{git_apply, gnu_patch, real_pairs};
use sayso_testkit::{hostile_inputs, laws};

/// Returns a patch with git's header, which is required to create or delete an empty file.
fn patch(diff: &Diff<'_>, context: usize) -> Vec<u8> {
    let label = |side, name| if side == Side::Absent { NO_FILE } else { name };
    let options = UnifiedOptions {
        old_label: label(diff.old_side(), "a/f"),
        new_label: label(diff.new_side(), "b/f"),
        ..laws::exact(context)
    };
    let mode = match (diff.old_side(), diff.new_side()) {
        (Side::Absent, _) => "new file mode 100644\n",
        (_, Side::Absent) => "deleted file mode 100644\n",
        _ => "",
    };
    let mut text = format!("diff --git a/f b/f\n{mode}").into_bytes();
    text.extend(diff.unified(&options).into_text());
    text
}

fn check(old: Option<&[u8]>, new: Option<&[u8]>, context: usize) {
    let diff = Diff::new(old, new);
    if diff.is_unchanged() {
        return;
    }
    let text = patch(&diff, context);
    assert_eq!(git_apply(old, &text, context), Ok(new.map(<[u8]>::to_vec)), "git apply, context {context}");
    // An empty file that is created or deleted has no hunks, which `patch` requires. `patch` also deletes a file that
    // becomes empty.
    if !diff.changes().is_empty() {
        let applied = gnu_patch(old, &text).map(|new| new.filter(|bytes| !bytes.is_empty()));
        assert_eq!(applied, Ok(new.map(<[u8]>::to_vec).filter(|bytes| !bytes.is_empty())), "patch, context {context}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn random_pairs((old, new) in hostile_inputs::pair(), context in prop_oneof![Just(0usize), Just(1), Just(3), Just(7)]) {
        check(Some(&old), Some(&new), context);
    }

    #[test]
    fn random_files_created_and_deleted(content in hostile_inputs::content()) {
        check(None, Some(&content), 3);
        check(Some(&content), None, 3);
    }
}

#[test]
fn real_pairs_of_two_versions() {
    for pair in real_pairs() {
        check(Some(&pair.old), Some(&pair.new), 3);
        check(Some(&pair.new), Some(&pair.old), 1);
    }
}

#[test]
fn awkward_contents() {
    let huge = |tail: &str| [vec![b'x'; 3_000_000], tail.as_bytes().to_vec()].concat();
    let cases: &[(&[u8], &[u8])] = &[
        (b"", b"a"),
        (b"a", b""),
        (b"a", b"a\n"),
        (b"a\n", b"a"),
        (b"a\nb", b"a\nc"),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"a\r\nb", b"a\r\nb\r\n"),
        (b"x\0y\nz\n", b"x\0y\nq\n"),
        (b"\n\n\n\n", b"\n\n\n\n\n"),
        (b"--- a\n+++ b\n", b"--- b\n+++ a\n"),
        (&huge("\na\n"), &huge("y\na\n")),
        (&huge(""), &huge("\n")),
    ];
    for (old, new) in cases {
        for context in [0, 1, 3] {
            check(Some(old), Some(new), context);
        }
    }
}
