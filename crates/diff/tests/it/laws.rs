//! The laws of testkit over random and real contents.

use proptest::prelude::*;
use sayso_testkit::{hostile_inputs, laws, programs};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn hunk_subsets_round_trip((old, new) in hostile_inputs::pair()) {
        laws::diff_laws(&old, &new);
    }

    #[test]
    fn utf16_diffs_round_trip((old, new) in hostile_inputs::utf16_pair()) {
        laws::diff_laws(&old, &new);
    }

    #[test]
    fn utf16_against_bytes_round_trips((wide, _) in hostile_inputs::utf16_pair(), (bytes, _) in hostile_inputs::pair()) {
        laws::diff_laws(&wide, &bytes);
        laws::diff_laws(&bytes, &wide);
    }

    #[test]
    fn merges_follow_laws((base, ours, theirs) in hostile_inputs::merge_triple()) {
        laws::merge_laws(&base, &ours, &theirs);
    }

    #[test]
    fn created_and_deleted_files_merge(content in hostile_inputs::content()) {
        laws::presence_laws(&content);
    }

    #[test]
    fn plain_text_encodes_to_same_file(base in hostile_inputs::formatted_file(), text in hostile_inputs::model_text()) {
        laws::like_laws(&base, &text);
    }

    #[test]
    fn arbitrary_bytes_can_be_a_base(base in hostile_inputs::content(), text in hostile_inputs::model_text()) {
        laws::like_laws(&base, &text);
        laws::like_laws(&base[..base.len().min(20)], &text);
    }

    #[test]
    fn line_edit_changes_only_that_line(base in hostile_inputs::formatted_file(), number in 0..12usize, line in "[a-c é€]{0,4}") {
        laws::one_line_laws(&base, number, &line);
    }

    #[test]
    fn sections_produce_new_text_or_report_doubts((old, new) in hostile_inputs::pair()) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        laws::section_round_trip_laws(&text(&old), &text(&new));
    }

    #[test]
    fn arbitrary_text_parses_as_sections(patch in hostile_inputs::sections(), base in hostile_inputs::model_text()) {
        laws::section_laws(&patch, &base);
    }

    #[test]
    fn damaged_section_is_rejected_or_applied_whole(
        (old, new) in (hostile_inputs::model_text(), hostile_inputs::model_text()),
        at in any::<prop::sample::Index>(),
        insertion in "[ @+*\n-]{0,3}",
    ) {
        if let Some(mut patch) = laws::section_patch(&old, &new, 1) {
            let at = at.index(patch.len());
            if patch.is_char_boundary(at) {
                patch.insert_str(at, &insertion);
            }
            laws::section_laws(&patch, &old);
        }
    }

    #[test]
    fn arbitrary_bytes_parse_as_patch(text in prop::collection::vec(any::<u8>(), 0..300), base in hostile_inputs::content()) {
        laws::patch_laws(&text, &base);
    }

    #[test]
    fn damaged_patch_is_rejected_or_applied_whole(
        (old, new) in hostile_inputs::pair(),
        (other, _) in hostile_inputs::pair(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = sayso_diff::Diff::new(&old[..], &new[..]).unified(&laws::exact(3)).into_text();
        laws::patch_laws(&text, &other);
        if !text.is_empty() {
            let at = at.index(text.len());
            text[at] = byte;
            laws::patch_laws(&text, &old);
        }
    }
}

#[test]
fn real_files_round_trip() {
    for pair in programs::real_pairs() {
        laws::diff_laws(&pair.old, &pair.new);
        laws::diff_laws(&pair.new, &pair.old);
    }
}

#[test]
fn real_files_merge() {
    let pairs = programs::real_pairs();
    for two in pairs.windows(2) {
        laws::merge_laws(&two[0].old, &two[0].new, &two[1].new);
    }
}

#[test]
fn utf16_suffix_at_odd_offset_round_trips() {
    // U+0A0A ends both; its bytes continue those of a line feed on one side only.
    laws::diff_laws(b"\xFE\xFF\x00\x0A\x0A\x0A", b"\xFE\xFF\x00\x0D\x00\x0A\x00\x0A\x0A\x0A\x0A\x0A");
}
