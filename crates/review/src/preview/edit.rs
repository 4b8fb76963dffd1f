//! Applies a step to the content of one file.

use std::borrow::Cow;

use memchr::memmem;
use sayso_base::{FileMode, FileState};
use sayso_diff::{
    Encoding, FilePatch, Kind, LineEnding, Looseness, Merge, NO_FILE, Placement, Rejection, Section, Selection, Side,
    TextFormat, encode_like, plain_text,
};

use super::problem::{Conflict, Problem};
use crate::draft::Exists;
use crate::intent::NewContent;
use crate::note::Note;
use crate::observed::{MAX_FILE_BYTES, Obstacle};

/// The new state with notes about its computation.
pub(super) type Edited = Result<(FileState, Vec<Note>), Problem>;

/// File modes for new files.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewModes {
    pub(super) umask: u32,
}

impl NewModes {
    fn mode(self, executable: bool) -> FileMode {
        let mode = if executable { 0o777 } else { 0o666 };
        FileMode::new(mode & !self.umask)
    }

    /// Sets or clears the executable bits as `chmod +x` does, for the classes that may read.
    fn switched(self, mode: FileMode, executable: bool) -> FileMode {
        let bits = mode.bits();
        match executable {
            _ if mode.is_executable() == executable => mode,
            true => FileMode::new(bits | ((bits & 0o444) >> 2) & !self.umask | 0o100),
            false => FileMode::new(bits & !0o111),
        }
    }
}

/// Replaces the whole content of a file. A proposal that names its base must merge cleanly with the current content.
/// With a base known only to the engine (`base`), the author wins where both changed the same lines.
pub(super) fn put(
    now: &FileState,
    content: &NewContent,
    exists: Exists,
    base: Option<&FileState>,
    modes: NewModes,
) -> Edited {
    let (bytes, mode) = match now {
        FileState::Absent if exists == Exists::Must => return Err(Problem::Missing),
        FileState::Absent => (None, modes.mode(content.executable.unwrap_or(false))),
        FileState::File { .. } | FileState::Link { .. } if exists == Exists::MustNot => return Err(Problem::Exists),
        FileState::File { content: old, mode } => {
            let mode = content.executable.map_or(*mode, |executable| modes.switched(*mode, executable));
            (Some(old.bytes()), mode)
        }
        FileState::Link { .. } => return Err(Problem::NotText),
    };
    let mut notes = Vec::new();
    let mut text = Cow::Borrowed(content.new_content.as_str());
    if let (Some(bytes), Some(base)) = (bytes, &content.base_content) {
        let current = plain_text(bytes).ok_or(Problem::NotText)?;
        let base = unix(base);
        if base != current {
            let proposed = unix(&text);
            let merge = sayso_diff::merge(base.as_bytes(), current.as_bytes(), proposed.as_bytes());
            let merged = merge.clean().ok_or_else(|| Problem::Conflicts { conflicts: conflicts(&merge) })?;
            text = Cow::Owned(String::from_utf8_lossy(&merged).into_owned());
            notes.push(Note::Merged);
        }
    } else if let (Some(bytes), Some(base)) = (bytes, base.and_then(FileState::bytes))
        && let (Some(current), Some(base)) = (plain_text(bytes), plain_text(base))
        && base != current
    {
        let proposed = unix(&text);
        let merge = sayso_diff::merge(base.as_bytes(), current.as_bytes(), proposed.as_bytes());
        let merged = merge.resolved_with(|conflict| conflict.theirs);
        if merged != proposed.as_bytes() {
            notes.push(Note::Merged);
        }
        text = Cow::Owned(String::from_utf8_lossy(&merged).into_owned());
    }
    let new = match bytes {
        Some(bytes) if !content.exact => alike(bytes, text, &mut notes),
        _ => text.into_owned().into_bytes(),
    };
    Ok((FileState::file(new, mode), notes))
}

pub(super) fn replace(now: &FileState, old: &str, new: &str, replace_all: bool, modes: NewModes) -> Edited {
    let (bytes, mode) = match now {
        FileState::File { content, mode } => (content.bytes(), *mode),
        // Agents create a file by replacing an empty text.
        FileState::Absent if old.is_empty() => return Ok((FileState::file(new, modes.mode(false)), Vec::new())),
        FileState::Absent => return Err(Problem::Missing),
        FileState::Link { .. } => return Err(Problem::NotText),
    };
    let text = plain_text(bytes).ok_or(Problem::NotText)?;
    let (old, new) = (unix(old), unix(new));
    let replaced = if old.is_empty() {
        if !text.is_empty() {
            return Err(Problem::NoText);
        }
        new.into_owned()
    } else {
        let starts: Vec<usize> = memmem::find_iter(text.as_bytes(), old.as_bytes()).collect();
        match starts[..] {
            [] => {
                let first_line = old.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim().to_owned();
                return Err(Problem::TextNotFound { first_line, but_for_spaces: line_but_for_spaces(&text, &old) });
            }
            [start] => [&text[..start], &new, &text[start + old.len()..]].concat(),
            _ if replace_all => {
                let size = text.len() as u64 + starts.len() as u64 * new.len() as u64;
                if size.saturating_sub(starts.len() as u64 * old.len() as u64) > MAX_FILE_BYTES {
                    return Err(Problem::Blocked(Obstacle::TooLarge { limit: MAX_FILE_BYTES }));
                }
                text.replace(&*old, &new)
            }
            _ => return Err(Problem::TextNotUnique { lines: line_numbers(&text, &starts) }),
        }
    };
    let mut notes = Vec::new();
    let bytes = alike(bytes, replaced, &mut notes);
    Ok((FileState::file(bytes, mode), notes))
}

/// Maximum number of lines for which a hint is searched.
const MOST_HINTED: usize = 200;

/// Returns the 1-based line at which `wanted` would match if white space were ignored. Models that read files with
/// added line numbers often get the indentation wrong.
fn line_but_for_spaces(text: &str, wanted: &str) -> Option<usize> {
    fn words(line: &str) -> impl Iterator<Item = char> {
        line.chars().filter(|character| !character.is_whitespace())
    }
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = wanted.trim().lines().collect();
    // Skip the hint if the search would be expensive.
    if wanted.is_empty() || wanted.len() > MOST_HINTED {
        return None;
    }
    let same = |found: &[&str]| found.iter().zip(&wanted).all(|(found, wanted)| words(found).eq(words(wanted)));
    lines.windows(wanted.len()).position(same).map(|line| line + 1)
}

/// Returns the 1-based line numbers of ascending offsets.
fn line_numbers(text: &str, offsets: &[usize]) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    offsets
        .iter()
        .map(|&offset| {
            line += text[at..offset].matches('\n').count();
            at = offset;
            line
        })
        .collect()
}

pub(super) fn unified(now: &FileState, patch: &FilePatch<'_>, modes: NewModes) -> Edited {
    let header = |word: &str| {
        let lines = patch.extended.iter().filter_map(|line| std::str::from_utf8(line).ok());
        lines.filter_map(|line| line.trim_end().strip_prefix(word)).next_back().map(str::to_owned)
    };
    let new_mode = header("new file mode ").or_else(|| header("new mode "));
    let links = [&new_mode, &header("deleted file mode ")].iter().any(|mode| mode.as_deref() == Some("120000"));
    let reject = |reason: &str| Problem::PatchRejected { reasons: vec![reason.to_owned()] };
    let (base, old_mode) = match now {
        FileState::Absent => (None, None),
        FileState::File { content, mode } => (Some(content.bytes()), Some(*mode)),
        FileState::Link { target } if links => (Some(target.as_bytes()), None),
        FileState::Link { .. } => return Err(Problem::NotText),
    };
    // A patch without hunks renames a file or changes its mode.
    let only_header = patch.hunks.is_empty() && base.is_some() && patch.new_path != NO_FILE.as_bytes();
    let mut notes = Vec::new();
    let content = if only_header { base.map(<[u8]>::to_vec) } else { patched(base, patch, &mut notes)? };
    let Some(content) = content else { return Ok((FileState::Absent, notes)) };
    if links {
        let target = String::from_utf8(content).map_err(|_| reject("a symbolic link's target is not UTF-8"))?;
        return Ok((FileState::Link { target }, notes));
    }
    let executable = new_mode.map(|mode| mode.ends_with("755"));
    let mode = match (old_mode, executable) {
        (Some(mode), Some(executable)) => modes.switched(mode, executable),
        (Some(mode), None) => mode,
        (None, executable) => modes.mode(executable.unwrap_or(false)),
    };
    Ok((FileState::file(content, mode), notes))
}

/// `true` if a patch refers to the file's text rather than its bytes: it is UTF-8 and the file is not, or it lacks the
/// file's carriage returns.
fn is_about_text(base: &[u8], patch: &FilePatch<'_>) -> bool {
    let form = TextFormat::of(base);
    let mut lines = patch.hunks.iter().flat_map(|hunk| &hunk.lines);
    match form.encoding {
        _ if form.kind == Kind::Binary => false,
        Encoding::Utf8 => form.line_ending == LineEnding::Crlf && !lines.any(|line| line.bytes.ends_with(b"\r\n")),
        Encoding::Latin1 | Encoding::Utf16Le | Encoding::Utf16Be => {
            lines.all(|line| std::str::from_utf8(&line.bytes).is_ok())
        }
    }
}

/// Applies a patch to the bytes. If it does not fit or refers to text, applies it to the text as a model sees it.
fn patched(base: Option<&[u8]>, patch: &FilePatch<'_>, notes: &mut Vec<Note>) -> Result<Option<Vec<u8>>, Problem> {
    let apply =
        |side: Side<'_>, patch: &FilePatch<'_>| patch.apply(side, &Selection::All, Placement::Within(usize::MAX));
    let tell = |moves: &[(usize, isize)], notes: &mut Vec<Note>| {
        let moved = moves.iter().filter(|(_, distance)| *distance != 0);
        notes.extend(moved.map(|&(hunk, lines)| Note::Moved { hunk, lines }));
    };
    let about_text = base.is_some_and(|base| is_about_text(base, patch));
    let rejections = match apply(base.into(), patch) {
        Ok(patched) if !about_text => {
            tell(&patched.moves, notes);
            return Ok(patched.content);
        }
        Ok(_) => Vec::new(),
        Err(rejections) => rejections,
    };
    let reject = |rejections: &[Rejection]| Problem::PatchRejected {
        reasons: rejections.iter().map(ToString::to_string).collect(),
    };
    let rejected = reject(&rejections);
    let Some(base) = base else { return Err(rejected) };
    let Some(text) = plain_text(base) else { return Err(rejected) };
    let mut plain = patch.clone();
    for line in plain.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
        if line.bytes.ends_with(b"\r\n") {
            let length = line.bytes.len();
            let bytes = line.bytes.to_mut();
            bytes.truncate(length - 2);
            bytes.push(b'\n');
        }
    }
    let patched = apply(Side::Present(text.as_bytes()), &plain)
        .map_err(|second| if rejections.is_empty() { reject(&second) } else { rejected })?;
    tell(&patched.moves, notes);
    Ok(patched.content.map(|content| alike(base, String::from_utf8_lossy(&content), notes)))
}

/// Applies an `*** Update File` section.
pub(super) fn section(now: &FileState, section: &Section) -> Edited {
    let (bytes, mode) = match now {
        FileState::File { content, mode } => (content.bytes(), *mode),
        FileState::Absent => return Err(Problem::Missing),
        FileState::Link { .. } => return Err(Problem::NotText),
    };
    let text = plain_text(bytes).ok_or(Problem::NotText)?;
    let applied = section.apply(Some(&text)).map_err(|rejections| Problem::PatchRejected {
        reasons: rejections.iter().map(ToString::to_string).collect(),
    })?;
    let mut notes = Vec::new();
    notes.extend(
        applied
            .loosened
            .iter()
            .map(|found| Note::Loosened { hunk: found.chunk, ignored: ignored(found.looseness).to_owned() }),
    );
    notes
        .extend(applied.ambiguous.iter().map(|found| Note::Ambiguous { hunk: found.chunk, places: found.lines.len() }));
    let Some(text) = applied.text else { return Ok((FileState::Absent, notes)) };
    let bytes = alike(bytes, text, &mut notes);
    Ok((FileState::file(bytes, mode), notes))
}

fn ignored(looseness: Looseness) -> &'static str {
    match looseness {
        Looseness::TrailingWhitespace => "white space at the end of lines",
        Looseness::SurroundingWhitespace => "white space around lines",
        Looseness::Punctuation => "white space, and the kinds of quotes and dashes",
        Looseness::FinalEmptyLine => "an empty line at the end",
    }
}

fn alike<'t>(base: &[u8], text: impl Into<Cow<'t, str>>, notes: &mut Vec<Note>) -> Vec<u8> {
    let encoded = encode_like(base, text);
    if !encoded.unrepresentable.is_empty() {
        let characters = encoded.unrepresentable.iter().map(char::to_string).collect();
        notes.push(Note::Unrepresentable { characters });
    }
    encoded.bytes
}

/// Returns the text with `\n` line endings.
pub(super) fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Returns the conflicts of a merge in which `ours` is the current file.
pub(super) fn conflicts(merge: &Merge<'_>) -> Vec<Conflict> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    merge
        .conflicts()
        .map(|conflict| Conflict {
            line: conflict.base_line,
            base: text(conflict.base),
            current: text(conflict.ours),
            proposed: text(conflict.theirs),
        })
        .collect()
}
