//! Moves each insertion or removal to its most readable position.
//!
//! A block that starts with the line after it, or ends with the line before it, can move by that line without changing
//! the result. Blocks that meet a neighbour are merged with it. Otherwise the surrounding indentation decides (git's
//! heuristic, as implemented in `gix-imara-diff`). The moves walk the bytes and need neither tokens nor a line index.

use gix_imara_diff::{IndentHeuristic, IndentLevel, SliderHeuristic as _, Token};

use super::Text;
use crate::change::{Block, Change, Cursor};

/// Maximum number of lines that a block moves in each direction. It matches the range of the heuristic and keeps the
/// work linear.
const MAX_MOVES: usize = 100;
/// Number of blank lines around a position that the heuristic examines, plus the line after them.
const SURROUNDINGS: usize = 21;

/// Merges changes that can be moved together, and moves the others to their best positions.
pub(super) fn settle(changes: &mut Vec<Change>, old: Text<'_>, new: Text<'_>) {
    let mut settled: Vec<Change> = Vec::with_capacity(changes.len());
    let mut waiting = changes.drain(..).peekable();
    while let Some(mut change) = waiting.next() {
        // Repeat until the change has both sides, or no neighbour to merge with.
        while let Some(mut slider) = Slider::new(change, old, new) {
            let before = settled.last().map_or(0, |previous| previous.old.end.line);
            let room = slider.change.old.start.line - before;
            slider.move_up(room.min(MAX_MOVES));
            if let Some(previous) = settled.pop_if(|previous| touch(previous, &slider.change)) {
                change = join(&previous, &slider.change);
                continue;
            }
            let earliest = slider.change;
            let room = waiting.peek().map_or(usize::MAX, |next| next.old.start.line - earliest.old.end.line);
            let moves = slider.move_down(room.min(2 * MAX_MOVES));
            if let Some(next) = waiting.next_if(|next| touch(&slider.change, next)) {
                change = join(&slider.change, &next);
                continue;
            }
            if moves > 0 {
                let up = slider.preferred_moves_up(moves);
                slider.move_up(up);
            }
            change = slider.change;
            break;
        }
        settled.push(change);
    }
    drop(waiting);
    *changes = settled;
}

fn touch(first: &Change, second: &Change) -> bool {
    first.old.end == second.old.start && first.new.end == second.new.start
}

fn join(first: &Change, second: &Change) -> Change {
    Change {
        old: Block { start: first.old.start, end: second.old.end },
        new: Block { start: first.new.start, end: second.new.end },
    }
}

/// A change of one side only, with the text of that side.
struct Slider<'a> {
    change: Change,
    text: Text<'a>,
}

impl<'a> Slider<'a> {
    fn new(change: Change, old: Text<'a>, new: Text<'a>) -> Option<Self> {
        match (change.is_insertion(), change.is_removal()) {
            (true, false) => Some(Self { change, text: new }),
            (false, true) => Some(Self { change, text: old }),
            _ => None,
        }
    }

    fn block(&self) -> Block {
        if self.change.is_insertion() { self.change.new } else { self.change.old }
    }

    fn line_before(&self, end: usize) -> &'a [u8] {
        &self.text.bytes[self.text.line_break.line_start(self.text.bytes, end)..end]
    }

    fn line_from(&self, start: usize) -> &'a [u8] {
        &self.text.bytes[start..self.text.line_break.line_end(self.text.bytes, start)]
    }

    /// Moves up by at most `most` lines. The passed lines are equal on both sides, so all boundaries move by the same
    /// number of bytes.
    fn move_up(&mut self, most: usize) {
        for _ in 0..most {
            let Block { start, end } = self.block();
            if start.offset == 0 {
                return;
            }
            let line = self.line_before(end.offset);
            if !self.text.bytes[..start.offset].ends_with(line) || self.line_before(start.offset).len() != line.len() {
                return;
            }
            self.shift(|at| Cursor { line: at.line - 1, offset: at.offset - line.len() });
        }
    }

    fn move_down(&mut self, most: usize) -> usize {
        for moves in 0..most {
            let Block { start, end } = self.block();
            if end.offset == self.text.bytes.len() {
                return moves;
            }
            let line = self.line_from(start.offset);
            if !self.text.bytes[end.offset..].starts_with(line) || self.line_from(end.offset).len() != line.len() {
                return moves;
            }
            self.shift(|at| Cursor { line: at.line + 1, offset: at.offset + line.len() });
        }
        most
    }

    fn shift(&mut self, step: impl Fn(Cursor) -> Cursor) {
        let Change { old, new } = &mut self.change;
        for end in [&mut old.start, &mut old.end, &mut new.start, &mut new.end] {
            *end = step(*end);
        }
    }

    /// Returns the best number of lines to move up from the lowest position, of `moves` possible.
    fn preferred_moves_up(&self, moves: usize) -> usize {
        let Block { start, end } = self.block();
        // The lines around both ends, from top to bottom. The inside of a long block is irrelevant.
        let mut lines = self.lines_before(start.offset, moves + SURROUNDINGS, 0);
        lines.reverse();
        let lead = lines.len();
        let edge = moves + SURROUNDINGS + 1;
        if end.line - start.line > 2 * edge {
            lines.extend(self.lines_from(start.offset, edge));
            let tail = lines.len();
            lines.extend(self.lines_before(end.offset, edge, start.offset));
            lines[tail..].reverse();
        } else {
            lines.extend(self.lines_from(start.offset, end.line - start.line));
        }
        let bottom = lines.len();
        lines.extend(self.lines_from(end.offset, SURROUNDINGS + 1));

        // The heuristic takes tokens and asks for their indentation, so line numbers can serve as tokens.
        let tokens: Vec<Token> = (0..lines.len() as u32).map(Token).collect();
        let indent = |token: Token| {
            let bytes = lines[token.0 as usize].iter().copied();
            // Ignore the zero bytes of UTF-16.
            IndentLevel::for_ascii_line(bytes.filter(|&byte| byte != 0), 8)
        };
        let best =
            IndentHeuristic::new(indent).best_slider_end(&tokens, lead as u32..bottom as u32, (bottom - moves) as u32);
        bottom - best as usize
    }

    /// Returns up to `most` lines above `end`, not beyond `floor`, nearest first.
    fn lines_before(&self, mut end: usize, most: usize, floor: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::with_capacity(most);
        while end > floor && lines.len() < most {
            let line = self.line_before(end);
            lines.push(line);
            end -= line.len();
        }
        lines
    }

    fn lines_from(&self, mut start: usize, most: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::with_capacity(most.min(1024));
        while start < self.text.bytes.len() && lines.len() < most {
            let line = self.line_from(start);
            lines.push(line);
            start += line.len();
        }
        lines
    }
}
