//! Approved changes as edits for an editor.

use std::collections::{BTreeMap, BTreeSet};

use sayso_diff::{Diff, Encoding, Kind, LineEnding, TextFormat};
use sayso_review::{Cause, ContentHash, FileState, Performer, Plan, PlanStep, WsPath};

use super::buffers::KnownBuffers;
use super::{EditorName, LineReplacement, OrderedFile, OrderedOperation};
use crate::engine::Engine;
use crate::pending_change::PendingChange;

/// Files of a change that an editor is asked to apply.
const MAX_ORDERED_FILES: usize = 200;
/// Size of a file that an editor is asked to edit.
const MAX_EDITED_BYTES: usize = 16 << 20;

/// Permission bits that an editor can give to a new file.
const PLAIN_MODE: u32 = 0o666;

impl Engine {
    /// Returns the editor that is to apply an approved change, with its edits. `None` if the engine writes the files itself.
    pub(crate) fn editor_order(&self, proposed: &PendingChange, plan: &Plan) -> Option<(EditorName, Vec<OrderedFile>)> {
        if proposed.performer != Performer::Gate || !proposed.cause.is_from_agent() || !proposed.emptied.is_empty() {
            return None;
        }
        let editor = self.editor_of(plan)?;
        if plan.steps().len() > MAX_ORDERED_FILES {
            return None;
        }
        ordered_files(plan, &self.buffers).map(|files| (editor, files))
    }

    /// Chooses the editor whose unsaved text a plan changes, or else the last registered editor that applies changes.
    fn editor_of(&self, plan: &Plan) -> Option<EditorName> {
        let buffers = plan.steps().iter().filter_map(|step| self.buffers.get(&step.path));
        let (mut owner, mut owners) = (None, BTreeSet::new());
        for buffer in buffers {
            owners.insert(buffer.editor.id);
            owner = Some(buffer);
        }
        match owner {
            None => self.editors.applying_editor(),
            Some(buffer) if owners.len() == 1 && buffer.applies => Some(buffer.editor.clone()),
            Some(_) => None,
        }
    }

    /// `true` if the unsaved text in an editor is the base of a step.
    pub(crate) fn is_based_on_buffer(&self, step: &PlanStep) -> bool {
        self.buffers.get(&step.path).is_some()
    }

    /// `true` for a change whose replacement is previewed over unsaved text as well.
    pub(crate) fn can_apply_over_buffers(&self, cause: &Cause, plan: &Plan) -> bool {
        cause.is_from_agent() && self.editor_of(plan).is_some()
    }
}

/// Translates a plan. Returns `None` if a step is not an edit of text that an editor can make.
fn ordered_files(plan: &Plan, buffers: &KnownBuffers) -> Option<Vec<OrderedFile>> {
    let hash = |path: &WsPath| buffers.get(path).map(super::Buffer::hash);
    let states: BTreeMap<&WsPath, &PlanStep> = plan.steps().iter().map(|step| (&step.path, step)).collect();
    let (mut files, mut moved) = (Vec::new(), BTreeSet::new());
    for (to, from) in plan.renames() {
        let (new, old) = (states.get(to)?, states.get(from)?);
        // A rename with edits is a deletion and a new file, which need no order of operations.
        if new.after == old.before && new.before == FileState::Absent && old.after == FileState::Absent {
            let operation = OrderedOperation::Rename { to: to.clone() };
            files.push(OrderedFile { path: from.clone(), operation, buffer_hash: hash(from) });
            moved.extend([to, from]);
        }
    }
    for step in plan.steps().iter().filter(|step| !moved.contains(&step.path)) {
        files.push(ordered_file(step, hash(&step.path))?);
    }
    Some(files)
}

fn ordered_file(step: &PlanStep, buffer_hash: Option<ContentHash>) -> Option<OrderedFile> {
    let operation = match (&step.before, &step.after) {
        (FileState::Absent, FileState::File { content, mode }) => {
            if mode.bits() & !PLAIN_MODE != 0 {
                return None;
            }
            OrderedOperation::Create(plain_utf8(content.bytes())?)
        }
        (FileState::File { .. }, FileState::Absent) => OrderedOperation::Delete,
        (FileState::File { content: old, mode: before }, FileState::File { content: new, mode: after }) => {
            if before != after {
                return None;
            }
            OrderedOperation::Edit(line_replacements(old.bytes(), new.bytes())?)
        }
        _ => return None,
    };
    Some(OrderedFile { path: step.path.clone(), operation, buffer_hash })
}

/// Returns a text that every editor writes as these bytes.
fn plain_utf8(bytes: &[u8]) -> Option<String> {
    let form = TextFormat::of(bytes);
    let is_plain = form.kind == Kind::Text && form.encoding == Encoding::Utf8 && !form.bom;
    let fits = bytes.len() <= MAX_EDITED_BYTES && form.line_ending != LineEnding::Mixed;
    (is_plain && fits).then(|| String::from_utf8(bytes.to_vec()).ok()).flatten()
}

/// Returns the edits that turn one content into another, from the last line to the first. `None` if the format changes, which an
/// editor does not do by edits.
fn line_replacements(old: &[u8], new: &[u8]) -> Option<Vec<LineReplacement>> {
    let (before, after) = (TextFormat::of(old), TextFormat::of(new));
    let is_text = [before, after].iter().all(|form| form.kind == Kind::Text);
    let fits = old.len().max(new.len()) <= MAX_EDITED_BYTES;
    let keeps_breaks = match (before.line_ending, after.line_ending) {
        (LineEnding::Mixed, _) | (_, LineEnding::Mixed) | (LineEnding::None, LineEnding::Crlf) => false,
        (_, LineEnding::None) | (LineEnding::None, _) => true,
        (before, after) => before == after,
    };
    // ASCII text is the same in UTF-8 and Latin-1.
    let keeps_encoding = before.encoding == after.encoding || (old.is_ascii() && after.encoding == Encoding::Utf8);
    if !is_text || !fits || !keeps_breaks || !keeps_encoding || before.bom != after.bom {
        return None;
    }
    let diff = Diff::new(old, new);
    let replacement = |change: &sayso_diff::Change| {
        let text = after.encoding.decode(change.new.of(new)).into_owned();
        // The mark is not part of the text in an editor.
        let text = if change.new.start.offset == 0 { text.trim_start_matches('\u{feff}').to_owned() } else { text };
        LineReplacement { start: change.old.start.line, end: change.old.end.line, text }
    };
    Some(diff.changes().iter().rev().map(replacement).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn apply(text: &str, edits: &[LineReplacement]) -> String {
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        for edit in edits {
            lines.splice(edit.start..edit.end, [edit.text.clone()]);
        }
        lines.concat()
    }

    #[test]
    fn line_replacements_turn_old_text_into_new() {
        for (old, new) in [
            ("a\nb\nc\n", "a\nB\nc\n"),
            ("a\nb\nc\n", "b\nc\nd\n"),
            ("a\nb", "a\nb\n"),
            ("a\n", ""),
            ("", "a\n"),
            ("a\r\nb\r\n", "a\r\nx\r\ny\r\nb\r\n"),
            ("ä\n", "ä\nö\n"),
        ] {
            let edits = line_replacements(old.as_bytes(), new.as_bytes()).unwrap();
            assert_eq!(apply(old, &edits), new);
        }
        let marked = line_replacements(b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n").unwrap();
        assert_eq!(marked, [LineReplacement { start: 0, end: 1, text: "b\n".to_owned() }]);
    }

    #[test]
    fn change_of_format_is_no_edit() {
        for (old, new) in [
            (&b"a\n"[..], &b"a\r\n"[..]),
            (b"a\r\nb\n", b"a\r\nc\n"),
            (b"a\n", b"\xef\xbb\xbfa\n"),
            (b"a\0b", b"a\0c"),
            (b"caf\xe9\n", "café\n".as_bytes()),
        ] {
            assert_eq!(line_replacements(old, new), None, "{old:?}");
        }
    }
}
