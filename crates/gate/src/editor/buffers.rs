//! Unsaved texts that the engine knows, and previews that are based on them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use sayso_diff::{Encoding, TextFormat, encode_like};
use sayso_review::{ContentHash, FileState, MAX_FILE_BYTES, Note, Observation, ObservedFile, Performer, WsPath};

use super::{Buffer, BufferLineBreak, BufferRead, EditorName};
use crate::FILE_LIMIT;
use crate::engine::Engine;

/// Reason of a note about a file that the agent writes with its own tool.
const WRITTEN_BY_AGENT: &str = "the agent's own tool reads and writes the saved file";

/// Base of a preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreviewBase {
    /// Unsaved text where it is known. For changes that the engine carries out.
    Buffers,
    /// Saved files. A note tells of unsaved text.
    SavedFiles,
}

impl PreviewBase {
    pub(crate) fn of(performer: Performer) -> Self {
        match performer {
            Performer::Gate => Self::Buffers,
            Performer::Agent => Self::SavedFiles,
        }
    }
}

/// Answers of editors, with the files that have unsaved changes now.
#[derive(Debug, Default)]
pub(crate) struct BufferUpdate {
    pub(crate) dirty: BTreeSet<WsPath>,
    pub(crate) reads: BTreeMap<WsPath, BufferRead>,
}

/// Unsaved texts by location, from the last answers of the editors.
#[derive(Debug, Default)]
pub(crate) struct KnownBuffers(BTreeMap<WsPath, BufferRead>);

impl KnownBuffers {
    /// Replaces the answers about the files that were asked for, and drops files that have been saved.
    pub(crate) fn update(&mut self, update: BufferUpdate) {
        self.0.retain(|path, _| update.dirty.contains(path));
        for (path, read) in update.reads {
            match read {
                BufferRead::Saved => drop(self.0.remove(&path)),
                read => drop(self.0.insert(path, read)),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unsaved text of a file.
    pub(crate) fn get(&self, path: &WsPath) -> Option<&Buffer> {
        match self.0.get(path)? {
            BufferRead::Unsaved(buffer) => Some(buffer),
            BufferRead::Unknown { .. } | BufferRead::Saved => None,
        }
    }

    /// Returns a hash of all that a preview takes from an answer.
    pub(crate) fn stamp(&self, path: &WsPath) -> Option<ContentHash> {
        let read = self.0.get(path)?;
        let text = match read {
            BufferRead::Unsaved(Buffer { editor, applies, text, encoding, line_break }) => {
                format!("{}\0{applies}\0{encoding:?}\0{line_break:?}\0{text}", editor.id)
            }
            BufferRead::Unknown { editor, reason } => format!("{}\0{reason}", editor.id),
            BufferRead::Saved => return None,
        };
        Some(ContentHash::of(text.as_bytes()))
    }

    /// Replaces the saved contents of an observation by unsaved text, and adds notes.
    fn lay_over(&self, observation: &mut Observation, base: PreviewBase) {
        for file in observation.files.values_mut() {
            let Some(read) = self.0.get(&file.location) else { continue };
            match (read, base) {
                (BufferRead::Saved, _) => {}
                (BufferRead::Unsaved(buffer), PreviewBase::SavedFiles) => {
                    ignore(file, &buffer.editor, WRITTEN_BY_AGENT);
                }
                (BufferRead::Unknown { editor, reason }, _) => ignore(file, editor, reason),
                (BufferRead::Unsaved(buffer), PreviewBase::Buffers) => lay_over_file(file, buffer),
            }
        }
    }
}

fn ignore(file: &mut ObservedFile, editor: &EditorName, reason: &str) {
    file.facts.push(Note::UnsavedTextIgnored { editor: editor.name.clone(), reason: reason.to_owned() });
}

fn lay_over_file(file: &mut ObservedFile, buffer: &Buffer) {
    let (bytes, mode) = match &file.found {
        Ok(FileState::File { content, mode }) => (content.bytes(), *mode),
        Ok(FileState::Absent | FileState::Link { .. }) => {
            return ignore(file, &buffer.editor, "the file does not exist, or is a link");
        }
        Err(_) => return,
    };
    match buffer.encode(bytes) {
        Ok(unsaved) => {
            if unsaved == bytes {
                return;
            }
            file.found = Ok(FileState::file(unsaved, mode));
            file.facts.push(Note::UnsavedText { editor: buffer.editor.name.clone(), applies: buffer.applies });
        }
        Err(reason) => ignore(file, &buffer.editor, &reason),
    }
}

impl Buffer {
    /// Hash by which an editor recognizes its text.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.text.as_bytes())
    }

    /// Returns the bytes that the editor would save. `saved` is the content of the file.
    pub(crate) fn encode(&self, saved: &[u8]) -> Result<Vec<u8>, String> {
        if self.text.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("it has more than {} MiB", MAX_FILE_BYTES >> 20));
        }
        let form = TextFormat::of(saved);
        let named = self.encoding.as_deref().map(named_encoding).transpose()?;
        // The line breaks and the encoding of the file, unless the editor names its own.
        if named.is_none() && self.line_break.is_none() {
            return checked(encode_like(saved, self.text.as_str()));
        }
        let (encoding, has_mark) = named.unwrap_or((form.encoding, form.bom));
        let text = match self.line_break {
            None => Cow::Borrowed(self.text.as_str()),
            Some(BufferLineBreak::Lf) => Cow::Owned(self.text.replace("\r\n", "\n")),
            Some(BufferLineBreak::CrLf) => Cow::Owned(self.text.replace("\r\n", "\n").replace('\n', "\r\n")),
        };
        checked(encode_like(sample(encoding, has_mark), text))
    }
}

fn checked(encoded: sayso_diff::EncodedText) -> Result<Vec<u8>, String> {
    if encoded.unrepresentable.is_empty() {
        return Ok(encoded.bytes);
    }
    let characters: String = encoded.unrepresentable.iter().take(10).collect();
    Err(format!("its encoding has no way to write {characters}"))
}

/// Reads an encoding as editors name it. The flag is the byte order mark.
fn named_encoding(name: &str) -> Result<(Encoding, bool), String> {
    let plain: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(match plain.as_str() {
        "utf8" | "ascii" | "usascii" => (Encoding::Utf8, false),
        "utf8bom" | "utf8withbom" => (Encoding::Utf8, true),
        // Editors write these with a mark.
        "utf16le" | "utf16" => (Encoding::Utf16Le, true),
        "utf16be" => (Encoding::Utf16Be, true),
        "windows1252" | "cp1252" | "iso88591" | "latin1" => (Encoding::Latin1, false),
        _ => return Err(format!("its encoding `{name}` is not supported")),
    })
}

/// Returns a content with an encoding and `\n` as line break.
fn sample(encoding: Encoding, has_mark: bool) -> &'static [u8] {
    match (encoding, has_mark) {
        (Encoding::Utf8, false) => b"a\n",
        (Encoding::Utf8, true) => b"\xef\xbb\xbfa\n",
        (Encoding::Utf16Le, true) => b"\xff\xfea\0\n\0",
        (Encoding::Utf16Le, false) => b"a\0b\0c\0d\0\n\0",
        (Encoding::Utf16Be, true) => b"\xfe\xff\0a\0\n",
        (Encoding::Utf16Be, false) => b"\0a\0b\0c\0d\0\n",
        (Encoding::Latin1, _) => b"caf\xe9\n",
    }
}

impl Engine {
    /// Observes files for a preview.
    pub(crate) fn observe(&self, paths: impl IntoIterator<Item = WsPath>, base: PreviewBase) -> Observation {
        let mut observation = self.workspace.observe(paths, FILE_LIMIT);
        if !self.buffers.is_empty() {
            self.buffers.lay_over(&mut observation, base);
        }
        observation
    }

    /// Returns the locations of paths, after symbolic links.
    pub(crate) fn locations(&self, paths: impl IntoIterator<Item = WsPath>) -> BTreeSet<WsPath> {
        let locate = |path: WsPath| self.workspace.open_path(&path).map_or(path, |opened| opened.resolved);
        paths.into_iter().map(locate).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn buffer(text: &str, encoding: Option<&str>, line_break: Option<BufferLineBreak>) -> Buffer {
        let editor = EditorName { id: 1, name: "editor".to_owned() };
        let encoding = encoding.map(str::to_owned);
        Buffer { editor, applies: true, text: text.to_owned(), encoding, line_break }
    }

    #[test]
    fn buffer_is_encoded_as_the_editor_saves_it() {
        use BufferLineBreak::{CrLf, Lf};
        let wide = |text: &str| {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            [&[0xff, 0xfe], &units[..]].concat()
        };
        for (saved, text, encoding, line_break, expected) in [
            (b"a\n".to_vec(), "b\n", None, None, b"b\n".to_vec()),
            (b"a\r\nb\r\n".to_vec(), "a\nc\n", None, None, b"a\r\nc\r\n".to_vec()),
            (b"a\r\nb\r\n".to_vec(), "a\r\nc\r\n", None, Some(Lf), b"a\nc\n".to_vec()),
            (b"a\n".to_vec(), "a\nc\n", Some("utf8"), Some(CrLf), b"a\r\nc\r\n".to_vec()),
            (b"\xef\xbb\xbfa\n".to_vec(), "b\n", Some("utf8bom"), None, b"\xef\xbb\xbfb\n".to_vec()),
            (b"\xef\xbb\xbfa\n".to_vec(), "b\n", None, Some(Lf), b"\xef\xbb\xbfb\n".to_vec()),
            (wide("a\n"), "b€\n", Some("utf16le"), Some(Lf), wide("b€\n")),
            (wide("a\n"), "b€\n", None, None, wide("b€\n")),
            (b"caf\xe9\n".to_vec(), "th\u{e9}\n", Some("windows1252"), Some(Lf), b"th\xe9\n".to_vec()),
        ] {
            assert_eq!(buffer(text, encoding, line_break).encode(&saved).unwrap(), expected, "{text:?} {encoding:?}");
        }
        assert!(buffer("→", Some("latin1"), None).encode(b"").unwrap_err().contains('→'));
        assert!(buffer("a", Some("shiftjis"), None).encode(b"").unwrap_err().contains("shiftjis"));
    }
}
