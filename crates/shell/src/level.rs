//! What is remembered while a text is read.

use crate::redirect::HereDocument;
use crate::{Certainty, Course, Redirect, Word};

/// What surrounds a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) shell: usize,
    pub(super) course: Course,
    pub(super) through: Vec<String>,
    /// The command from which on output is fed into it.
    pub(super) fed_by: Option<usize>,
}

/// Where reading ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// With the text.
    End,
    /// With the `)` of a substitution.
    Parenthesis,
}

/// What stands right before the place that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing that an operator could follow: the beginning, a new line or `;`.
    Nothing,
    /// A command, or the beginning of one.
    Command,
    /// `|`, `&&` or `||`, which a command has to follow.
    Operator,
}

/// What opens a group of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Subshell,
    Brace,
    If,
    Loop,
    Case,
}

impl Opening {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Subshell => "(",
            Self::Brace => "{",
            Self::If => "if",
            Self::Loop => "do",
            Self::Case => "case",
        }
    }
}

/// An open group, and what to go on with behind it.
pub(super) struct Group {
    pub(super) opening: Opening,
    pub(super) outside: Line,
}

/// How the commands of a line are connected.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) shell: usize,
    pub(super) course: Course,
    /// The course of what follows the next `;`.
    pub(super) next_course: Course,
    /// The first command of this part of the pipe, and of the whole list up to `;` or `&`.
    pub(super) part: usize,
    pub(super) list: usize,
    pub(super) is_pipe: bool,
    pub(super) fed_by: Option<usize>,
    /// What feeds the group around it.
    pub(super) group_fed_by: Option<usize>,
}

/// Where in a substitution or text reading is.
pub(super) struct Level {
    pub(super) until: Until,
    pub(super) groups: Vec<Group>,
    pub(super) draft: Draft,
    pub(super) here_documents: Vec<HereDocument>,
    pub(super) is_function: bool,
    pub(super) before: Before,
    pub(super) line: Line,
}

/// A command that is not complete yet.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) assignments: Vec<Word>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) input: Option<Word>,
    pub(super) has_here_document: bool,
    /// The first command in its substitutions.
    pub(super) substitutions: Option<usize>,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.redirects.is_empty() && !self.has_here_document
    }
}

impl Word {
    /// Notes that a part of the word is less certain.
    pub(super) fn at_most(&mut self, certainty: Certainty) {
        self.certainty = self.certainty.max(certainty);
    }
}
