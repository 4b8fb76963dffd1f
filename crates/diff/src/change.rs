//! Where a change lies, in lines and in bytes at once.

/// A line boundary of one side: how many lines, and how many bytes, come before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Lines before this point; also the 0-based number of the line that starts here.
    pub line: usize,
    /// Bytes before this point.
    pub offset: usize,
}

/// A run of whole lines of one side; empty where the other side has lines that this one lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its first line's start.
    pub start: Cursor,
    /// Its last line's end.
    pub end: Cursor,
}

impl Block {
    /// How many lines it holds.
    pub fn lines(&self) -> usize {
        self.end.line - self.start.line
    }

    /// Whether it holds no line.
    pub fn is_empty(&self) -> bool {
        self.end.line == self.start.line
    }

    /// Its bytes within the content it belongs to.
    pub fn of<'a>(&self, content: &'a [u8]) -> &'a [u8] {
        &content[self.start.offset..self.end.offset]
    }
}

/// The smallest unit of difference: the lines `old` are replaced by the lines `new`.
///
/// Two changes of one diff are always separated by at least one unchanged line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What goes.
    pub old: Block,
    /// What comes in its place.
    pub new: Block,
}

impl Change {
    /// Whether it adds lines and removes none.
    pub fn is_insertion(&self) -> bool {
        self.old.is_empty()
    }

    /// Whether it removes lines and adds none.
    pub fn is_removal(&self) -> bool {
        self.new.is_empty()
    }
}
