//! The hunks of a file, one after the other.

use std::collections::{BTreeSet, VecDeque};

use sayso_api::diff::{DiffFile, DiffHunk};
use sayso_review::{Bytes, Comment, CommentSide, FileAnswer, FilePreview, FileRecord, Operation, Placement};

use super::files::asked;
use super::keys::{Key, Leave, Prompt};
use super::unit::{Unit, bytes_of};
use crate::escape::escape_unprintable;

/// The diff of a file, as the engine computed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub file: DiffFile,
    /// All hunks. Empty for binary content.
    pub hunks: Vec<DiffHunk>,
    /// `true` if a part of the change cannot be taken, because the encoding changes.
    pub changes_encoding: bool,
}

/// A decision about a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Take,
    Leave,
    /// These bytes replace the new lines.
    Replace(Vec<u8>),
}

/// The end of a file's review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    Answered(FileAnswer),
    /// Denies this file and all later files.
    DenyRest,
    /// No decision about the whole change.
    Left(Leave),
}

/// The surface's next step after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Show the current unit and ask.
    Ask,
    /// Let the person edit the lines of the current unit, then call [`HunkReview::replace`] or ask again.
    EditLines,
    /// Ask for a comment on the current unit, then ask again.
    Comment,
    Finished(FileOutcome),
}

/// Collects the decisions about the hunks of a file. A file without lines to show is decided as a whole.
#[derive(Debug)]
pub struct HunkReview<'r> {
    file: &'r FileRecord,
    placement: Placement,
    changes_encoding: bool,
    /// `true` if the change has more files to decide.
    has_other_files: bool,
    /// `true` if the file is decided as a whole.
    is_whole: bool,
    /// Undecided units. The first one is the current one.
    waiting: VecDeque<Unit>,
    done: Vec<(Unit, Choice)>,
    /// The contents of both sides, once lines were edited.
    contents: Option<FilePreview>,
}

impl<'r> HunkReview<'r> {
    /// Starts at the first hunk of a file among the files of a change. A file without changes is approved at once: `Err` holds its
    /// answer.
    pub fn new(
        files: &[FileRecord],
        file: &'r FileRecord,
        placement: Placement,
        diff: FileDiff,
    ) -> Result<Self, FileAnswer> {
        if diff.file.is_unchanged() {
            return Err(FileAnswer::Approve);
        }
        let waiting: VecDeque<Unit> = diff.hunks.into_iter().map(Unit::whole).collect();
        Ok(Self {
            file,
            placement,
            changes_encoding: diff.changes_encoding,
            has_other_files: asked(files).count() > 1,
            // A changed encoding rewrites every line, so that a hunk of it cannot stand alone.
            is_whole: waiting.is_empty() || diff.changes_encoding,
            waiting,
            done: Vec::new(),
            contents: None,
        })
    }

    /// The file under review.
    pub fn file(&self) -> &'r FileRecord {
        self.file
    }

    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The units to show before asking: the current one, or all of a file that is decided as a whole.
    pub fn shown(&self) -> impl Iterator<Item = &Unit> {
        self.waiting.iter().take(if self.is_whole { usize::MAX } else { 1 })
    }

    /// The unit that the prompt is about. `None` for a file that is decided as a whole.
    pub fn current(&self) -> Option<&Unit> {
        self.waiting.front().filter(|_| !self.is_whole)
    }

    /// Builds the question about the current unit or file.
    pub fn prompt(&self) -> Prompt {
        let all_files = self.has_other_files.then_some("D");
        let Some(unit) = self.current() else {
            let keys = ["y", "n"].into_iter().chain(all_files).chain(["j", "k", "q", "?"]).collect();
            return Prompt::new(&self.whole_question(), keys, self.placement);
        };
        let split = (unit.parts > 1).then_some("s");
        let keys = ["y", "n", "a", "d"].into_iter().chain(all_files).chain(split);
        let keys = keys.chain(["e", "c", "j", "k", "q", "?"]).collect();
        let (number, count) = (self.done.len() + 1, self.done.len() + self.waiting.len());
        Prompt::new(&format!("({number}/{count}) {}", self.hunk_question()), keys, self.placement)
    }

    fn hunk_question(&self) -> String {
        let path = escape_unprintable(self.file.path.as_str());
        let is_review = self.placement == Placement::InPlace;
        match &self.file.operation {
            Operation::Create if is_review => format!("Keep the new file {path}"),
            Operation::Delete if is_review => format!("Leave {path} deleted"),
            Operation::Update | Operation::Rename { .. } if is_review => format!("Keep this hunk of {path}"),
            Operation::Create => format!("Create {path}"),
            Operation::Delete => format!("Delete {path}"),
            Operation::Update | Operation::Rename { .. } => format!("Apply this hunk to {path}"),
        }
    }

    fn whole_question(&self) -> String {
        let path = escape_unprintable(self.file.path.as_str());
        match &self.file.operation {
            Operation::Rename { from } => format!("Rename {} to {path}", escape_unprintable(from.as_str())),
            Operation::Create => format!("Create {path}"),
            Operation::Delete => format!("Delete {path}"),
            Operation::Update if self.changes_encoding => {
                format!("Change all of {path}, since its encoding changes")
            }
            Operation::Update => format!("Change {path}"),
        }
    }

    /// Applies a key to the current unit or file.
    pub fn decide(&mut self, key: Key) -> Step {
        if self.is_whole {
            return Step::Finished(match key {
                Key::Yes => FileOutcome::Answered(FileAnswer::Approve),
                Key::NoneOfChange => FileOutcome::DenyRest,
                Key::Leave(leave) => FileOutcome::Left(leave),
                _ => FileOutcome::Answered(FileAnswer::Deny { reason: None }),
            });
        }
        match key {
            Key::Yes => self.choose(Choice::Take),
            Key::No => self.choose(Choice::Leave),
            Key::AllOfFile => self.choose_rest(&Choice::Take),
            Key::NoneOfFile => self.choose_rest(&Choice::Leave),
            Key::NoneOfChange => Step::Finished(FileOutcome::DenyRest),
            Key::Edit => Step::EditLines,
            Key::Comment => Step::Comment,
            Key::Split => {
                self.split();
                Step::Ask
            }
            Key::Leave(Leave::Later) if self.waiting.len() > 1 => {
                self.waiting.rotate_left(1);
                Step::Ask
            }
            Key::Leave(Leave::Back) if let Some((previous, _)) = self.done.pop() => {
                self.waiting.push_front(previous);
                Step::Ask
            }
            Key::Leave(leave) => Step::Finished(FileOutcome::Left(leave)),
        }
    }

    /// Takes the current unit with other lines. `contents` are those that the lines were edited from.
    pub fn replace(&mut self, lines: Vec<u8>, contents: FilePreview) -> Step {
        self.contents = Some(contents);
        self.choose(Choice::Replace(lines))
    }

    fn choose(&mut self, choice: Choice) -> Step {
        self.done.extend(self.waiting.pop_front().map(|unit| (unit, choice)));
        if self.waiting.is_empty() { Step::Finished(FileOutcome::Answered(self.answer())) } else { Step::Ask }
    }

    fn choose_rest(&mut self, choice: &Choice) -> Step {
        self.done.extend(self.waiting.drain(..).map(|unit| (unit, choice.clone())));
        Step::Finished(FileOutcome::Answered(self.answer()))
    }

    /// Replaces the current hunk by its parts.
    fn split(&mut self) {
        let Some(unit) = self.waiting.pop_front() else { return };
        for part in unit.split().into_iter().rev() {
            self.waiting.push_front(part);
        }
    }

    /// The line that a comment on the current unit is about, unless the person names another one.
    pub fn comment_line(&self) -> usize {
        self.current().map_or(1, |unit| unit.changed.new.start + 1)
    }

    /// Reads a comment: a text, or `LINE: text`. `None` for an empty text.
    pub fn parse_comment(&self, typed: &str) -> Option<Comment> {
        let numbered = typed.split_once(':').and_then(|(line, text)| Some((line.trim().parse().ok()?, text.trim())));
        let (line, text) = numbered.unwrap_or((self.comment_line(), typed));
        let path = self.file.path.clone();
        (!text.is_empty()).then(|| Comment { path, line, side: CommentSide::Proposed, text: text.to_owned() })
    }

    fn answer(&mut self) -> FileAnswer {
        self.done.sort_by_key(|(unit, _)| unit.id);
        let done = &self.done;
        if done.iter().all(|(_, choice)| *choice == Choice::Take) {
            return FileAnswer::Approve;
        }
        if done.iter().all(|(_, choice)| *choice == Choice::Leave) {
            return FileAnswer::Deny { reason: None };
        }
        if let Some(contents) = &self.contents
            && done.iter().any(|(_, choice)| matches!(choice, Choice::Replace(_)))
        {
            return FileAnswer::EditedBytes { bytes: Bytes::new(spliced(done, contents)) };
        }
        let taken = done.iter().filter(|(_, choice)| *choice == Choice::Take).map(|(unit, _)| unit.id);
        FileAnswer::Hunks { hunks: taken.collect::<BTreeSet<_>>() }
    }
}

/// The old content with the chosen lines of each unit in place of its old ones.
fn spliced(done: &[(Unit, Choice)], contents: &FilePreview) -> Vec<u8> {
    let (old, new) = (contents.before.bytes().unwrap_or_default(), contents.after.bytes().unwrap_or_default());
    let mut bytes = Vec::with_capacity(new.len());
    let mut at = 0;
    for (unit, choice) in done {
        let removed = bytes_of(old, &unit.changed.old);
        bytes.extend_from_slice(old.get(at..removed.start).unwrap_or_default());
        bytes.extend_from_slice(match choice {
            Choice::Leave => &old[removed.clone()],
            Choice::Take => &new[bytes_of(new, &unit.changed.new)],
            Choice::Replace(lines) => lines,
        });
        at = removed.end;
    }
    bytes.extend_from_slice(old.get(at..).unwrap_or_default());
    bytes
}
