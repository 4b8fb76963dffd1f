//! State of the lenient reader: open groups, the current command, and the shell around them.

use crate::redirect::HereDocument;
use crate::{Certainty, Flow, Redirect, Word};

/// Shell and wrappers around a text that is read as a script.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptContext {
    pub(super) shell: usize,
    pub(super) flow: Flow,
    pub(super) wrappers: Vec<String>,
    /// Index of the first command that feeds its output into the text.
    pub(super) fed_by: Option<usize>,
}

/// End of the text that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminator {
    /// The last byte of the text.
    EndOfText,
    /// The `)` of a substitution.
    Parenthesis,
}

/// Kind of the token before the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrecedingToken {
    /// The start of the text, a newline or `;`; no operator may follow.
    Nothing,
    /// A part of a command.
    Command,
    /// `|`, `&&` or `||`; a command has to follow.
    Operator,
}

/// Kinds of command groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    Subshell,
    Brace,
    If,
    Loop,
    Case,
}

impl GroupKind {
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

/// An open group, with the line state to restore behind it.
pub(super) struct Group {
    pub(super) opening: GroupKind,
    pub(super) outside: LineState,
}

/// Connections between the commands of the current list.
#[derive(Clone, Copy)]
pub(super) struct LineState {
    pub(super) shell: usize,
    pub(super) flow: Flow,
    /// Flow of the commands behind the next `;`.
    pub(super) next_flow: Flow,
    /// Index of the first command of the current pipeline stage.
    pub(super) part: usize,
    pub(super) list: usize,
    pub(super) is_pipe: bool,
    pub(super) fed_by: Option<usize>,
    /// Index of the first command that feeds the enclosing group.
    pub(super) group_fed_by: Option<usize>,
}

/// State of reading one text or substitution.
pub(super) struct ParserState {
    pub(super) until: Terminator,
    pub(super) groups: Vec<Group>,
    pub(super) draft: CommandDraft,
    pub(super) here_documents: Vec<HereDocument>,
    pub(super) is_function: bool,
    pub(super) before: PrecedingToken,
    pub(super) line: LineState,
}

/// Parts of the command that is being read.
#[derive(Default)]
pub(super) struct CommandDraft {
    pub(super) assignments: Vec<Word>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) input: Option<Word>,
    pub(super) has_here_document: bool,
    /// Index of the first command in its substitutions.
    pub(super) substitutions: Option<usize>,
}

impl CommandDraft {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.redirects.is_empty() && !self.has_here_document
    }
}

impl Word {
    /// Lowers the certainty of the word to that of a part.
    pub(super) fn at_most(&mut self, certainty: Certainty) {
        self.certainty = self.certainty.max(certainty);
    }
}
