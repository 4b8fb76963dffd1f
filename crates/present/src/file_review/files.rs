//! The files of a change, one after the other.

use std::collections::BTreeMap;

use sayso_review::{Answer, Comment, FileAnswer, FileRecord, WsPath};

use super::hunks::FileOutcome;
use super::keys::Leave;

/// A person's answer about a change of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeAnswer {
    pub answer: Answer,
    pub comments: Vec<Comment>,
}

/// Returns the files that need a decision.
pub fn asked(files: &[FileRecord]) -> impl Iterator<Item = &FileRecord> {
    files.iter().filter(|file| !file.settled)
}

/// A file to show.
#[derive(Clone, Copy, Debug)]
pub struct FileTurn<'r> {
    pub file: &'r FileRecord,
    /// `false` if the file is shown only: settled, impossible, or denied with all the rest.
    pub needs_answer: bool,
}

/// Collects the answers about the files of a change, in its order.
#[derive(Debug)]
pub struct ChangeReview<'r> {
    files: &'r [FileRecord],
    /// Index of the file after the current one.
    next: usize,
    answers: BTreeMap<WsPath, FileAnswer>,
    comments: Vec<Comment>,
    is_rest_denied: bool,
}

impl<'r> ChangeReview<'r> {
    /// Starts before the first file.
    pub fn new(files: &'r [FileRecord]) -> Self {
        Self { files, next: 0, answers: BTreeMap::new(), comments: Vec::new(), is_rest_denied: false }
    }

    /// Goes to the next file. `None` after the last one.
    pub fn next_file(&mut self) -> Option<FileTurn<'r>> {
        let file = self.files.get(self.next)?;
        self.next += 1;
        let needs_answer = !file.settled && file.problem.is_none() && !self.is_rest_denied;
        Some(FileTurn { file, needs_answer })
    }

    /// Adds a comment on the current file.
    pub fn comment(&mut self, comment: Comment) {
        self.comments.push(comment);
    }

    /// Records the outcome of the current file. Returns the direction if the person leaves the change.
    pub fn finish_file(&mut self, outcome: FileOutcome) -> Option<Leave> {
        let files = self.files;
        let current = self.next.saturating_sub(1);
        match outcome {
            FileOutcome::Answered(answer) => {
                self.answers.insert(files[current].path.clone(), answer);
            }
            FileOutcome::DenyRest => self.is_rest_denied = true,
            FileOutcome::Left(Leave::Back) => {
                // To the previous answered file. Before the first one, to the previous change.
                let previous = files[..current].iter().rposition(|file| self.answers.contains_key(&file.path));
                let Some(previous) = previous else { return Some(Leave::Back) };
                let path = &files[previous].path;
                self.answers.remove(path);
                self.comments.retain(|comment| comment.path != *path);
                self.next = previous;
            }
            FileOutcome::Left(leave) => return Some(leave),
        }
        None
    }

    /// `true` if a part was denied, so that the agent may be given a reason.
    pub fn denies(&self) -> bool {
        !asked(self.files).all(|file| self.answers.get(&file.path) == Some(&FileAnswer::Approve))
    }

    /// Returns the answer about the whole change.
    pub fn finish(self, reason: Option<String>) -> ChangeAnswer {
        let denies = self.denies();
        let Self { answers, comments, .. } = self;
        let answer = if !denies {
            Answer::Approve
        } else if answers.values().all(|answer| matches!(answer, FileAnswer::Deny { .. })) {
            Answer::Deny { reason }
        } else {
            Answer::Files { files: answers, reason }
        };
        ChangeAnswer { answer, comments }
    }
}
