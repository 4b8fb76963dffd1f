//! The parser for the `*** Begin Patch` form.

use super::{Section, SectionAction, SectionChunk, SectionLine, SectionPatch};
use crate::hunk::LineKind;
use crate::patch::{Problem, ProblemKind};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const MOVE: &str = "*** Move to:";

/// `true` if a line is this marker, surrounding blanks ignored.
pub(super) fn is_marker(line: &str, marker: &str) -> bool {
    line.trim() == marker
}

pub(super) fn parse(text: &str) -> SectionPatch {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut reader = Reader { patch: SectionPatch::default(), number: 0, state: State::Outside };
    let mut at = 0;
    // Usually there is one patch, surrounded by shell or chat text.
    while let Some(begin) = lines[at..].iter().position(|line| is_marker(line, BEGIN)).map(|begin| at + begin) {
        reader.leftovers(&lines[at..begin], at);
        let end = end(&lines, begin + 1);
        reader.block(&lines[begin..end], begin);
        at = end;
        if at == lines.len() {
            reader.no_end();
            break;
        }
        at += 1;
    }
    if at == 0 {
        reader.problem_at(1, ProblemKind::NoBegin);
    }
    reader.leftovers(&lines[at..], at);
    reader.patch
}

/// Returns the line at which the patch ends, or the number of lines.
fn end(lines: &[&str], start: usize) -> usize {
    let find = |is_end: fn(&str) -> bool| lines[start..].iter().position(|line| is_end(line)).map(|end| start + end);
    // An indented end marker may be a context line. It counts only if there is no other.
    let indented = || lines[start..].iter().rposition(|line| is_marker(line, END)).map(|end| start + end);
    find(|line| line.trim_end() == END).or_else(indented).unwrap_or(lines.len())
}

struct Reader {
    patch: SectionPatch,
    /// Current line of the patch, from 1.
    number: usize,
    state: State,
}

/// The context of the next line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside of any section.
    Outside,
    /// Within a new file; holds the number of an unmarked empty last line.
    Adding { empty: Option<usize> },
    /// After a deletion, which has no lines.
    Deleting,
    /// At the start of an update, before any chunk.
    Updating,
    /// Within a chunk.
    InChunk,
    /// After the chunk at the end of the file.
    Ended,
}

impl Reader {
    /// Parses the lines from `*** Begin Patch` up to its end, exclusive.
    fn block(&mut self, lines: &[&str], offset: usize) {
        let (begin, lines) = lines.split_first().map_or(("", lines), |(begin, lines)| (*begin, lines));
        // The first line determines the notation of the whole patch: with `\r\n`, or indented. A `\r` in a patch
        // without `\r\n` belongs to its line.
        let returns = begin.ends_with('\r');
        let indent = &begin[..begin.len() - begin.trim_start().len()];
        let all_indented = lines.iter().all(|line| line.trim().is_empty() || line.starts_with(indent));
        for (index, line) in lines.iter().enumerate() {
            self.number = offset + index + 2;
            let line = if returns { line.strip_suffix('\r').unwrap_or(line) } else { line };
            self.line(if all_indented { line.strip_prefix(indent).unwrap_or(line) } else { line });
        }
        self.number = offset + lines.len() + 1;
        self.close();
    }

    fn line(&mut self, line: &str) {
        // Within a chunk, a leading blank marks a context line.
        let in_chunk = self.state == State::InChunk;
        let marker = if in_chunk { line } else { line.trim_start() };
        if marker.starts_with("***") {
            return self.marker(marker.trim_end());
        }
        match self.state {
            State::Adding { empty } => self.added(line, empty),
            State::Updating | State::InChunk | State::Ended => self.changed(line),
            State::Outside | State::Deleting if line.trim().is_empty() => {}
            State::Outside | State::Deleting => self.not_understood(ProblemKind::UnmarkedLine),
        }
    }

    fn marker(&mut self, marker: &str) {
        let update = SectionAction::Update { move_to: None, chunks: Vec::new() };
        let starts = [
            ("*** Add File:", State::Adding { empty: None }, SectionAction::Add { content: String::new() }),
            ("*** Delete File:", State::Deleting, SectionAction::Delete),
            ("*** Update File:", State::Updating, update),
        ];
        for (word, state, action) in starts {
            if let Some(path) = marker.strip_prefix(word).map(str::trim) {
                self.close();
                self.state = state;
                self.patch.sections.push(Section { path: path.to_owned(), action, incomplete: false });
                if path.is_empty() {
                    self.not_understood(ProblemKind::NoPath);
                }
                return;
            }
        }
        match (self.state, marker.strip_prefix(MOVE).map(str::trim), self.action()) {
            (State::Updating, Some(path), Some(SectionAction::Update { move_to: move_to @ None, .. })) => {
                *move_to = Some(path.to_owned());
                if path.is_empty() {
                    self.not_understood(ProblemKind::NoPath);
                }
            }
            (State::InChunk, _, _) if marker == END_OF_FILE => self.end_of_file(),
            _ => self.not_understood(ProblemKind::UnknownMarker),
        }
    }

    fn end_of_file(&mut self) {
        if let Some(chunk) = self.chunk() {
            chunk.at_end = true;
        }
        self.check_chunk();
        self.state = State::Ended;
    }

    fn added(&mut self, line: &str, empty: Option<usize>) {
        if let (Some(text), Some(SectionAction::Add { content })) = (line.strip_prefix('+'), self.action()) {
            content.push_str(text);
            content.push('\n');
            // An unmarked empty line between lines of a new file is ambiguous.
            if let Some(number) = empty {
                self.not_understood_at(number, ProblemKind::UnmarkedLine);
            }
            self.state = State::Adding { empty: None };
        } else if line.trim().is_empty() {
            self.state = State::Adding { empty: empty.or(Some(self.number)) };
        } else {
            self.not_understood(ProblemKind::UnmarkedLine);
        }
    }

    fn changed(&mut self, line: &str) {
        if let Some(anchor) = line.strip_prefix("@@") {
            if !anchor.trim().is_empty() && !anchor.starts_with(' ') {
                return self.not_understood(ProblemKind::UnmarkedLine);
            }
            let anchor = anchor.strip_prefix(' ').filter(|anchor| !anchor.trim().is_empty());
            // Consecutive `@@` lines belong to one chunk.
            let narrows = self.state == State::InChunk && self.chunk().is_some_and(|chunk| chunk.lines.is_empty());
            if !narrows {
                self.open_chunk();
            }
            if let (Some(chunk), Some(anchor)) = (self.chunk(), anchor) {
                chunk.anchors.push(anchor.to_owned());
            }
            return;
        }
        let kind = match line.chars().next() {
            Some('+') => LineKind::Add,
            Some('-') => LineKind::Remove,
            // Some programs strip the blank that marks an empty context line.
            Some(' ') | None => LineKind::Context,
            Some('\r') if line == "\r" => LineKind::Context,
            Some(_) => return self.not_understood(ProblemKind::UnmarkedLine),
        };
        match self.state {
            State::Updating | State::Ended if line.trim().is_empty() => return,
            State::Updating => self.open_chunk(),
            State::InChunk => {}
            _ => return self.not_understood(ProblemKind::UnmarkedLine),
        }
        let text = line.get(1..).unwrap_or_default().to_owned();
        if let Some(chunk) = self.chunk() {
            chunk.lines.push(SectionLine { kind, text });
        }
    }

    fn open_chunk(&mut self) {
        let line = self.number;
        if let Some(SectionAction::Update { chunks, .. }) = self.action() {
            chunks.push(SectionChunk { line, ..SectionChunk::default() });
        }
        self.state = State::InChunk;
    }

    /// Reports a finished chunk without lines.
    fn check_chunk(&mut self) {
        if let Some(line) = self.chunk().filter(|chunk| chunk.lines.is_empty()).map(|chunk| chunk.line) {
            self.not_understood_at(line, ProblemKind::Empty);
        }
    }

    /// Ends the current section.
    fn close(&mut self) {
        match self.state {
            State::InChunk => self.check_chunk(),
            State::Updating => {
                if let Some(SectionAction::Update { move_to: None, .. }) = self.action() {
                    self.not_understood(ProblemKind::Empty);
                }
            }
            State::Outside | State::Adding { .. } | State::Deleting | State::Ended => {}
        }
        self.state = State::Outside;
    }

    /// Handles a missing end marker; the last file may be truncated.
    fn no_end(&mut self) {
        self.problem_at(self.number, ProblemKind::NoEnd);
        if let Some(section) = self.patch.sections.last_mut() {
            section.incomplete = true;
        }
    }

    /// Reports patch lines outside of any patch.
    fn leftovers(&mut self, lines: &[&str], offset: usize) {
        let starts = ["*** Add File:", "*** Delete File:", "*** Update File:"];
        for (index, line) in lines.iter().enumerate() {
            if starts.iter().any(|start| line.trim_start().starts_with(start)) {
                self.problem_at(offset + index + 1, ProblemKind::UnknownMarker);
            }
        }
    }

    fn action(&mut self) -> Option<&mut SectionAction> {
        self.patch.sections.last_mut().map(|section| &mut section.action)
    }

    fn chunk(&mut self) -> Option<&mut SectionChunk> {
        match self.action() {
            Some(SectionAction::Update { chunks, .. }) => chunks.last_mut(),
            _ => None,
        }
    }

    fn problem_at(&mut self, line: usize, kind: ProblemKind) {
        self.patch.problems.push(Problem { line, kind });
    }

    fn not_understood(&mut self, kind: ProblemKind) {
        self.not_understood_at(self.number, kind);
    }

    /// Reports a line that was not understood, and marks the current file as incomplete.
    fn not_understood_at(&mut self, line: usize, kind: ProblemKind) {
        self.problem_at(line, kind);
        if let (true, Some(section)) = (self.state != State::Outside, self.patch.sections.last_mut()) {
            section.incomplete = true;
        }
    }
}
