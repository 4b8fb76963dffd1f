//! Block numbers for dialects whose streams do not number their blocks.

use super::event::StreamEvent;

/// A kind of text content. A block of text ends when a block of another kind begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Thinking,
}

/// Numbers blocks in order of their start, and tracks the open block of text.
#[derive(Debug, Default)]
pub(super) struct BlockCounter {
    next: u32,
    open: Option<(TextKind, u32)>,
}

impl BlockCounter {
    /// Returns the number of a new block.
    pub(super) fn begin(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the number of the open block of this kind. If another kind is open, ends that block and begins a new
    /// one.
    pub(super) fn text_block(&mut self, kind: TextKind, out: &mut dyn FnMut(StreamEvent<'_>)) -> u32 {
        if let Some((open, block)) = self.open
            && open == kind
        {
            return block;
        }
        self.end_text(out);
        let block = self.begin();
        self.open = Some((kind, block));
        block
    }

    /// Ends the open block of text, if there is one.
    pub(super) fn end_text(&mut self, out: &mut dyn FnMut(StreamEvent<'_>)) {
        if let Some((_, block)) = self.open.take() {
            out(StreamEvent::BlockEnded { block });
        }
    }
}
