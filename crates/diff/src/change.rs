//! Changes, as positions in lines and bytes.

/// A line boundary in one side, as the number of preceding lines and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Number of preceding lines; also the 0-based number of the line that starts here.
    pub line: usize,
    /// Number of preceding bytes.
    pub offset: usize,
}

/// A range of whole lines in one side; empty at an insertion or removal on the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Start of the first line.
    pub start: Cursor,
    /// End of the last line.
    pub end: Cursor,
}

impl Block {
    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.end.line - self.start.line
    }

    /// `true` if the range is empty.
    pub fn is_empty(&self) -> bool {
        self.end.line == self.start.line
    }

    /// Returns the bytes of the range within its content.
    pub fn of<'a>(&self, content: &'a [u8]) -> &'a [u8] {
        &content[self.start.offset..self.end.offset]
    }
}

/// The smallest unit of difference: the lines `old` are replaced by the lines `new`.
///
/// At least one unchanged line separates two changes of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub old: Block,
    pub new: Block,
}

impl Change {
    /// `true` if the change only adds lines.
    pub fn is_insertion(&self) -> bool {
        self.old.is_empty()
    }

    /// `true` if the change only removes lines.
    pub fn is_removal(&self) -> bool {
        self.new.is_empty()
    }
}
