//! The laws of testkit over random and real contents.

use proptest::prelude::*;
use sayso_testkit::{contents, laws, programs};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn diffs_round_trip_for_every_subset_of_hunks((old, new) in contents::pair()) {
        laws::diff_laws(&old, &new);
    }

    #[test]
    fn utf16_diffs_round_trip((old, new) in contents::wide_pair()) {
        laws::diff_laws(&old, &new);
    }

    #[test]
    fn utf16_against_bytes_round_trips((wide, _) in contents::wide_pair(), (bytes, _) in contents::pair()) {
        laws::diff_laws(&wide, &bytes);
        laws::diff_laws(&bytes, &wide);
    }

    #[test]
    fn merges_keep_their_laws((base, ours, theirs) in contents::three()) {
        laws::merge_laws(&base, &ours, &theirs);
    }

    #[test]
    fn files_come_and_go(content in contents::content()) {
        laws::presence_laws(&content);
    }

    #[test]
    fn the_text_of_a_file_is_that_file(base in contents::formed(), text in contents::sent_text()) {
        laws::like_laws(&base, &text);
    }

    #[test]
    fn any_bytes_have_a_form_to_follow(base in contents::content(), text in contents::sent_text()) {
        laws::like_laws(&base, &text);
        laws::like_laws(&base[..base.len().min(20)], &text);
    }

    #[test]
    fn editing_a_line_changes_only_that_line(base in contents::formed(), number in 0..12usize, line in "[a-c é€]{0,4}") {
        laws::one_line_laws(&base, number, &line);
    }

    #[test]
    fn sections_make_the_new_text_or_say_where_they_doubt((old, new) in contents::pair()) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        laws::section_round_trip_laws(&text(&old), &text(&new));
    }

    #[test]
    fn any_text_can_be_read_as_sections(patch in contents::sections(), base in contents::sent_text()) {
        laws::section_laws(&patch, &base);
    }

    #[test]
    fn a_damaged_section_is_refused_or_applied_in_whole(
        (old, new) in (contents::sent_text(), contents::sent_text()),
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
    fn any_bytes_can_be_read_as_a_patch(text in prop::collection::vec(any::<u8>(), 0..300), base in contents::content()) {
        laws::patch_laws(&text, &base);
    }

    #[test]
    fn a_damaged_patch_is_refused_or_applied_in_whole(
        (old, new) in contents::pair(),
        (other, _) in contents::pair(),
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
fn regression_utf16_suffix_at_an_odd_offset() {
    // U+0A0A ends both; its bytes continue those of a line feed on one side only.
    laws::diff_laws(b"\xFE\xFF\x00\x0A\x0A\x0A", b"\xFE\xFF\x00\x0D\x00\x0A\x00\x0A\x0A\x0A\x0A\x0A");
}
