//! Effect of Codex's `apply_patch` on bytes, and patches with which it makes given bytes.
//!
//! Measured with 0.166.0:
//!
//! - A patch of a file that is not UTF-8 is rejected. A line ends with LF, CRLF or a lone CR.
//! - The old lines of a chunk are searched from the end of the previous chunk; the first exact match wins. (If there is none,
//!   Codex searches less exactly. This module relies on exact matches only.) A chunk without old lines is appended to the file.
//! - Unchanged lines keep their endings. An added line gets the ending of the file's first line, and so does a last line without
//!   an ending. A CR at the end of a line of the patch is dropped.
//! - A new file has LF endings.
//! - A moved file is created again, with the permissions of a new file.

use std::collections::BTreeMap;

use sayso_diff::{Change, Diff, LineKind, SectionAction, SectionChunk, SectionPatch};
use sayso_review::{FileState, PlanStep, WsPath};

use super::CannotRewrite;
use crate::hook::intent::beneath;

/// Lines of context around a change, unless more are needed to find it.
const CONTEXT_LINES: usize = 3;

/// Returns the patch that makes the approved content. Fails if Codex might write other bytes. `directory` is the directory of the call,
/// `root` the workspace; both are absolute.
pub(super) fn patch(steps: &[PlanStep], directory: &str, root: &str) -> Result<String, CannotRewrite> {
    let mut patch = "*** Begin Patch\n".to_owned();
    for step in steps {
        let path = if directory == root { step.path.to_string() } else { beneath(root, step.path.as_str()) };
        if path.trim() != path || path.contains(['\n', '\r']) {
            return Err(CannotRewrite::Name { path });
        }
        match (step.before.bytes(), step.after.bytes()) {
            (_, None) => patch += &format!("*** Delete File: {path}\n"),
            (None, Some(after)) => {
                patch += &format!("*** Add File: {path}\n");
                for line in new_lines(after, "\n", &path)? {
                    patch += &format!("+{line}\n");
                }
            }
            (Some(before), Some(after)) => {
                patch += &format!("*** Update File: {path}\n");
                patch += &chunks(before, after, &path)?;
            }
        }
    }
    patch += "*** End Patch\n";
    Ok(patch)
}

/// Splits added content into lines without their endings. Fails if the content is not UTF-8, or if a line has another ending than the
/// given one or none.
fn new_lines<'b>(bytes: &'b [u8], ending: &str, path: &str) -> Result<Vec<&'b str>, CannotRewrite> {
    let text = std::str::from_utf8(bytes).map_err(|_| CannotRewrite::NotText { path: path.to_owned() })?;
    let line = |line: &'b str| {
        let without = line.strip_suffix(ending);
        let without = without.filter(|line| !line.ends_with('\r'));
        without.ok_or_else(|| {
            if line.ends_with('\n') {
                CannotRewrite::LineEndings { path: path.to_owned() }
            } else {
                CannotRewrite::FinalNewline { path: path.to_owned() }
            }
        })
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Returns the chunks that turn `before` into `after`, and checks them with [`PatchableFile::patched`].
fn chunks(before: &[u8], after: &[u8], path: &str) -> Result<String, CannotRewrite> {
    let not_text = |_| CannotRewrite::NotText { path: path.to_owned() };
    let line_endings = || CannotRewrite::LineEndings { path: path.to_owned() };
    let file = PatchableFile::new(std::str::from_utf8(before).map_err(not_text)?).ok_or_else(line_endings)?;
    if !after.is_empty() && !after.ends_with(b"\n") {
        return Err(CannotRewrite::FinalNewline { path: path.to_owned() });
    }
    let diff = Diff::new(before, after);
    let changes = diff.changes();
    let mut text = String::new();
    let mut done = Vec::new();
    // The first line that no chunk has used yet.
    let mut free = 0;
    let mut index = 0;
    while index < changes.len() {
        // Changes with overlapping context form one chunk.
        let mut last = index;
        while changes
            .get(last + 1)
            .is_some_and(|next| next.old.start.line - changes[last].old.end.line <= 2 * CONTEXT_LINES)
        {
            last += 1;
        }
        let (group, rest) = (&changes[index..=last], &changes[last + 1..]);
        let end = rest.first().map_or(file.lines.len(), |next| next.old.start.line);
        let (start, end) = file.chunk_range(free, &group[0], group[last - index].old.end.line, end);
        let chunk = chunk(&file, (start, end), group, after, path)?;
        text += "@@\n";
        for line in &chunk.lines {
            let sign = match line.kind {
                LineKind::Add => '+',
                LineKind::Remove => '-',
                LineKind::Context => ' ',
            };
            text += &format!("{sign}{}\n", line.text);
        }
        done.push(chunk);
        (free, index) = (end, last + 1);
    }
    if file.patched(&done).as_deref() == Some(after) { Ok(text) } else { Err(line_endings()) }
}

/// Builds the chunk of some changes from the lines `start..end` of the file.
fn chunk(
    file: &PatchableFile<'_>,
    (start, end): (usize, usize),
    changes: &[Change],
    after: &[u8],
    path: &str,
) -> Result<SectionChunk, CannotRewrite> {
    let mut chunk = SectionChunk::default();
    let mut push = |kind, text: &str| chunk.lines.push(sayso_diff::SectionLine { kind, text: text.to_owned() });
    let mut at = start;
    for change in changes {
        file.slice(at, change.old.start.line).iter().for_each(|line| push(LineKind::Context, line.text));
        file.slice(change.old.start.line, change.old.end.line)
            .iter()
            .for_each(|line| push(LineKind::Remove, line.text));
        new_lines(change.new.of(after), file.ending, path)?.into_iter().for_each(|line| push(LineKind::Add, line));
        at = change.old.end.line;
    }
    file.slice(at, end).iter().for_each(|line| push(LineKind::Context, line.text));
    Ok(chunk)
}

/// A file in the form in which `apply_patch` searches it.
struct PatchableFile<'f> {
    lines: Vec<FileLine<'f>>,
    /// Ending of added lines.
    ending: &'static str,
}

#[derive(Clone, Copy)]
struct FileLine<'f> {
    text: &'f str,
    ending: &'static str,
}

impl<'f> PatchableFile<'f> {
    /// Splits a text into lines. Returns `None` for a lone CR, which ends a line in Codex but not in sayso's diff.
    fn new(text: &'f str) -> Option<Self> {
        let line = |line: &'f str| {
            let (text, ending) = match line.strip_suffix('\n') {
                Some(text) => text.strip_suffix('\r').map_or((text, "\n"), |text| (text, "\r\n")),
                None => (line, ""),
            };
            (!text.contains('\r')).then_some(FileLine { text, ending })
        };
        let lines: Vec<_> = text.split_inclusive('\n').map(line).collect::<Option<_>>()?;
        let ending = lines.first().map(|line| line.ending).filter(|ending| !ending.is_empty()).unwrap_or("\n");
        Some(Self { lines, ending })
    }

    /// Returns the lines `start..end` that a chunk needs so that Codex finds it at its place. The chunk has the changes from `first` to
    /// the line `changed_end`. The lines lie between `free`, the end of the previous chunk, and `limit`, the next change or the end of
    /// the file. More context is added above the changes only.
    fn chunk_range(&self, free: usize, first: &Change, changed_end: usize, limit: usize) -> (usize, usize) {
        let end = limit.min(changed_end + CONTEXT_LINES);
        let mut context = CONTEXT_LINES;
        loop {
            let start = free.max(first.old.start.line.saturating_sub(context));
            // The search starts at `free`, so a chunk that starts there is found at once.
            if start == free || self.find(&self.texts(start, end), free) == Some(start) {
                return (start, end);
            }
            context *= 2;
        }
    }

    fn texts(&self, start: usize, end: usize) -> Vec<&'f str> {
        self.slice(start, end).iter().map(|line| line.text).collect()
    }

    /// Finds the first occurrence of some lines at or after `from`, in linear time (Knuth, Morris and Pratt).
    fn find(&self, wanted: &[&str], from: usize) -> Option<usize> {
        // `borders[n]` is the length of the longest proper prefix of `wanted[..=n]` that is also its suffix.
        let mut borders = vec![0; wanted.len()];
        let advance = |borders: &[usize], mut length: usize, text: &str| {
            while length > 0 && wanted.get(length) != Some(&text) {
                length = borders[length - 1];
            }
            length + usize::from(wanted.get(length) == Some(&text))
        };
        for index in 1..wanted.len() {
            borders[index] = advance(&borders, borders[index - 1], wanted[index]);
        }
        let mut length = 0;
        for (index, line) in self.lines.iter().enumerate().skip(from) {
            length = advance(&borders, length, line.text);
            if length == wanted.len() {
                return Some(index + 1 - length);
            }
        }
        None
    }

    /// `true` if the file has these lines at `at`.
    fn fits(&self, wanted: &[&str], at: usize) -> bool {
        self.slice(at, at + wanted.len()).iter().map(|line| line.text).eq(wanted.iter().copied())
    }

    /// Returns the lines `start..end`, and none if the range exceeds the file.
    fn slice(&self, start: usize, end: usize) -> &[FileLine<'f>] {
        self.lines.get(start..end).unwrap_or_default()
    }

    /// Predicts the file after these chunks. Returns `None` if `apply_patch` fails or the result is not certain.
    fn patched(&self, chunks: &[SectionChunk]) -> Option<Vec<u8>> {
        let mut out: Vec<FileLine<'_>> = Vec::new();
        let mut free = 0;
        for chunk in chunks {
            let mut from = free;
            for anchor in &chunk.anchors {
                from = self.find(&[anchor], from)? + 1;
            }
            let old = chunk.lines.iter().filter(|line| line.kind != LineKind::Add);
            let old: Vec<&str> = old.map(|line| line.text.as_str()).collect();
            let at = if old.is_empty() {
                self.lines.len()
            } else if chunk.at_end {
                self.lines.len().checked_sub(old.len()).filter(|at| *at >= from && self.fits(&old, *at))?
            } else {
                self.find(&old, from)?
            };
            out.extend(self.slice(free, at));
            free = at;
            for line in &chunk.lines {
                match line.kind {
                    LineKind::Add => out.push(FileLine { text: &line.text, ending: self.ending }),
                    LineKind::Remove => free += 1,
                    LineKind::Context => {
                        out.push(*self.lines.get(free)?);
                        free += 1;
                    }
                }
            }
        }
        out.extend(self.slice(free, self.lines.len()));
        let mut bytes = Vec::new();
        for line in out {
            let ending = if line.ending.is_empty() { self.ending } else { line.ending };
            bytes.extend([line.text, ending].concat().into_bytes());
        }
        Some(bytes)
    }
}

/// `true` if the model's own patch makes exactly the approved content.
pub(super) fn makes(patch: &str, directory: &str, steps: &[PlanStep], root: &str) -> bool {
    let wanted: BTreeMap<&WsPath, Option<&[u8]>> = steps.iter().map(|step| (&step.path, step.after.bytes())).collect();
    predict(patch, directory, steps, root).is_some_and(|made| {
        made.len() == wanted.len()
            && made.iter().all(|(path, bytes)| wanted.get(path).is_some_and(|wanted| *wanted == bytes.as_deref()))
    })
}

/// Predicts the files after a patch. Returns `None` if the result is not certain, or if the patch changes a file without a step.
fn predict(patch: &str, directory: &str, steps: &[PlanStep], root: &str) -> Option<BTreeMap<WsPath, Option<Vec<u8>>>> {
    let parsed = SectionPatch::parse(patch);
    if !parsed.problems.is_empty() || patch.contains('\r') {
        return None;
    }
    let mut made = BTreeMap::new();
    // Codex rejects a second section about the same file.
    let mut put = |path: WsPath, bytes: Option<Vec<u8>>| made.insert(path, bytes).is_none().then_some(());
    for section in parsed.sections {
        let locate = |path: &str| within(root, &beneath(directory, path));
        let path = locate(&section.path)?;
        let before = steps.iter().find(|step| step.path == path).map(|step| &step.before)?;
        match section.action {
            _ if section.incomplete => return None,
            SectionAction::Add { content } => put(path, Some(content.into_bytes()))?,
            SectionAction::Delete => put(path, None)?,
            SectionAction::Update { move_to, chunks } => {
                let FileState::File { content, mode } = before else { return None };
                let new = PatchableFile::new(std::str::from_utf8(content.bytes()).ok()?)?.patched(&chunks)?;
                match move_to {
                    None => put(path, Some(new))?,
                    Some(_) if mode.is_executable() || chunks.is_empty() => return None,
                    Some(to) => {
                        put(path, None)?;
                        put(locate(&to)?, Some(new))?;
                    }
                }
            }
        }
    }
    Some(made)
}

/// Converts an absolute path below the root into a workspace path, textually.
fn within(root: &str, path: &str) -> Option<WsPath> {
    let inside = path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/')?;
    WsPath::parse(inside).ok().filter(|path| !path.is_root())
}
