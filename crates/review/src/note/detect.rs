//! Detects notes by comparing the two contents of a file.

use std::borrow::Cow;
use std::cmp::Reverse;

use sayso_base::{FileMode, FileState, WsPath};
use sayso_diff::{Block, Diff, Encoding, Kind, Side, TextFormat};

use super::Note;
use super::invisible_chars::hidden;
use super::path_class::{PathClass, generated_by_content, holds_tests};
use super::removed_tests::{Counts, Language, tests_start};
use super::secret::{Scanner, Values};

/// Maximum number of notes about secrets per file, and about invisible characters.
const MOST_LINES: usize = 100;
/// Minimum size in lines for a rewrite note. In a shorter file most edits change half of the lines.
const LEAST_LINES: usize = 10;

/// Returns the notes about a change of one file, most severe first and stable within a severity.
///
/// `diff` compares the two contents. Notes that need other knowledge, such as [`Note::Symlink`] or [`Note::HardLink`],
/// are not included. The cost grows with the size of the change, except for detecting the format of both sides.
pub fn notes(path: &WsPath, before: &FileState, after: &FileState, diff: &Diff<'_>) -> Vec<Note> {
    if before == after && diff.is_unchanged() {
        return Vec::new();
    }
    let place = PathClass::of(path);
    let mut notes = place.notes();
    let code_points = hidden(path.as_str());
    if !code_points.is_empty() {
        notes.push(Note::HiddenName { code_points });
    }
    state_notes(before, after, &mut notes);
    if !diff.changes().is_empty() {
        content_notes(path, &place, diff, &mut notes);
    }
    notes.sort_by_key(|note| Reverse(note.severity()));
    notes
}

/// Adds notes about changes other than content: mode and symbolic links.
fn state_notes(before: &FileState, after: &FileState, notes: &mut Vec<Note>) {
    if let (Some(old), Some(new)) = (before.mode(), after.mode())
        && old != new
    {
        notes.push(Note::Mode { old, new });
    }
    if *before == FileState::Absent && after.mode().is_some_and(FileMode::is_executable) {
        notes.push(Note::Executable);
    }
    let target = |state: &FileState| if let FileState::Link { target } = state { Some(target.clone()) } else { None };
    let (old, new) = (target(before), target(after));
    if old != new {
        notes.push(Note::Link { old, new });
    }
}

fn content_notes(path: &WsPath, place: &PathClass, diff: &Diff<'_>, notes: &mut Vec<Note>) {
    let forms = diff.formats();
    let old = Content::of(diff.old_side(), forms.0);
    let new = Content::of(diff.new_side(), forms.1);
    let form_notes = diff.notes_of(forms);
    let is_binary = old.is_binary || new.is_binary;
    if is_binary && !form_notes.iter().any(|note| matches!(note, sayso_diff::Note::Kind { .. })) {
        notes.push(Note::Binary);
    }
    notes.extend(form_notes.into_iter().map(|change| Note::Form { change }));
    if !old.is_binary && !notes.iter().any(|note| matches!(note, Note::Generated { .. })) {
        let why = generated_by_content(&old.first_lines());
        notes.extend(why.map(|reason| Note::Generated { reason }));
    }
    if !is_binary {
        notes.extend(large_rewrite(diff));
        check_notes(path, diff, &old, &new, notes);
    }
    let values = match () {
        () if new.is_binary || place.is_lock_file() => Values::Unnamed,
        () if place.has_bare_values() => Values::Bare,
        () => Values::Quoted,
    };
    added_line_notes(diff, &new, values, notes);
}

/// One side of the change, with its encoding.
struct Content<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    is_binary: bool,
    is_absent: bool,
}

impl<'a> Content<'a> {
    fn of(side: Side<'a>, form: Option<TextFormat>) -> Self {
        Self {
            bytes: if let Side::Present(bytes) = side { bytes } else { &[] },
            encoding: form.map_or(Encoding::Utf8, |form| form.encoding),
            is_binary: form.is_some_and(|form| form.kind == Kind::Binary),
            is_absent: form.is_none(),
        }
    }

    fn text(&self, block: Block) -> Cow<'a, str> {
        self.encoding.decode(block.of(self.bytes))
    }

    /// Returns the first lines, in which generators leave their mark.
    fn first_lines(&self) -> String {
        const MAX_FILE_BYTES: usize = 2000;
        let start = self.encoding.decode(&self.bytes[..self.bytes.len().min(MAX_FILE_BYTES)]);
        start.lines().take(5).collect::<Vec<_>>().join("\n")
    }
}

fn large_rewrite(diff: &Diff<'_>) -> Option<Note> {
    let (Side::Present(_), Side::Present(_)) = (diff.old_side(), diff.new_side()) else { return None };
    let removed = diff.counts().removed;
    let last = diff.changes().last()?;
    // Count the lines of both sides only if the removed share can be large enough.
    if removed * 2 <= last.old.end.line.max(LEAST_LINES) {
        return None;
    }
    let (lines, _) = diff.line_counts();
    let percent = u8::try_from(removed * 100 / lines.max(1)).unwrap_or(100).min(100);
    (lines >= LEAST_LINES && removed * 2 > lines).then_some(Note::LargeRewrite { percent })
}

/// Adds notes about removed tests and assertions, by comparing removed with added lines.
fn check_notes(path: &WsPath, diff: &Diff<'_>, old: &Content<'_>, new: &Content<'_>, notes: &mut Vec<Note>) {
    let Some(language) = Language::of(path) else { return };
    let in_test_file = holds_tests(path);
    if old.is_absent || !(in_test_file || language.has_tests_inside()) {
        return;
    }
    let mut removed = Tally::new(language, old, in_test_file);
    let mut added = Tally::new(language, new, in_test_file);
    for change in diff.changes() {
        removed.add(change.old);
        added.add(change.new);
    }
    let (removed, added) = (removed.counts, added.counts);
    let tests = removed.tests.saturating_sub(added.tests);
    if new.is_absent {
        // In a test file whose test syntax is unknown, a deletion counts as at least one removed test.
        let count = if in_test_file { tests.max(1) } else { tests };
        notes.extend((count > 0).then_some(Note::TestsRemoved { count }));
        return;
    }
    let assertions = removed.assertions.saturating_sub(added.assertions);
    let skips = added.skips.saturating_sub(removed.skips);
    notes.extend((tests > 0).then_some(Note::TestsRemoved { count: tests }));
    notes.extend((assertions > 0).then_some(Note::AssertionsRemoved { count: assertions }));
    notes.extend((skips > 0).then_some(Note::TestsSkipped { count: skips }));
}

/// Counts the tests of one side.
struct Tally<'c, 'a> {
    language: &'static Language,
    content: &'c Content<'a>,
    /// Start of the test code within the content, computed on first use.
    tests_start: Option<usize>,
    counts: Counts,
}

impl<'c, 'a> Tally<'c, 'a> {
    fn new(language: &'static Language, content: &'c Content<'a>, in_test_file: bool) -> Self {
        Self { language, content, tests_start: in_test_file.then_some(0), counts: Counts::default() }
    }

    fn add(&mut self, mut block: Block) {
        let counts = self.language.count(&self.content.text(block));
        self.counts.tests += counts.tests;
        self.counts.skips += counts.skips;
        if counts.assertions == 0 {
            return;
        }
        // An assertion outside of tests is part of the program.
        let start = *self.tests_start.get_or_insert_with(|| tests_start(self.content.bytes));
        if start <= block.start.offset {
            self.counts.assertions += counts.assertions;
        } else if start < block.end.offset {
            block.start.offset = start;
            self.counts.assertions += self.language.count(&self.content.text(block)).assertions;
        }
    }
}

/// Adds notes about secrets and invisible characters in the added lines.
fn added_line_notes(diff: &Diff<'_>, new: &Content<'_>, values: Values, notes: &mut Vec<Note>) {
    let (mut secrets, mut hiding) = (0, 0);
    for change in diff.changes() {
        let text = new.text(change.new);
        let mut scanner = Scanner::new(values);
        for (number, line) in text.split('\n').enumerate() {
            let number = change.new.start.line + number + 1;
            let line = line.trim_end_matches('\r');
            // At the start of the file U+FEFF is a byte order mark.
            let line = if number == 1 { line.strip_prefix('\u{FEFF}').unwrap_or(line) } else { line };
            for kind in scanner.scan(line) {
                secrets += 1;
                if secrets <= MOST_LINES {
                    notes.push(Note::Secret { line: number, kind });
                }
            }
            let code_points = if new.is_binary { Vec::new() } else { new.hidden(line) };
            if !code_points.is_empty() {
                hiding += 1;
                if hiding <= MOST_LINES {
                    notes.push(Note::Hidden { line: number, code_points });
                }
            }
        }
    }
}

impl Content<'_> {
    fn hidden(&self, line: &str) -> Vec<String> {
        // The encoding of other content is unknown; check only the characters that all encodings share.
        if self.encoding == Encoding::Latin1 && !line.is_ascii() {
            return hidden(&line.replace(|character: char| !character.is_ascii(), "?"));
        }
        hidden(line)
    }
}

#[cfg(test)]
mod tests;
