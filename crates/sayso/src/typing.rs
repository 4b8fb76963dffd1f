//! Typed answers.
//!
//! Input is read only while a question waits for an answer, so that an editor has the terminal to itself. On a terminal, input that was
//! typed before its question was shown is discarded.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{QueueSelector, tcflush};

/// A source of answers.
pub(crate) trait AnswerSource {
    /// Discards input from before the next question.
    fn discard(&mut self);

    /// Waits for a line. `None` at the end of input.
    fn line(&mut self) -> io::Result<Option<String>>;
}

/// A source without answers.
pub(crate) struct NoAnswers;

impl AnswerSource for NoAnswers {
    fn discard(&mut self) {}

    fn line(&mut self) -> io::Result<Option<String>> {
        Ok(None)
    }
}

/// Standard input, or a terminal.
pub(crate) struct Typing {
    /// A terminal other than standard input.
    terminal: Option<File>,
    /// Bytes that were read and not returned.
    read: Vec<u8>,
    ended: bool,
}

impl Typing {
    pub(crate) fn stdin() -> Self {
        Self { terminal: None, read: Vec::new(), ended: false }
    }

    /// The controlling terminal of this process. Standard input may be a file.
    pub(crate) fn terminal() -> io::Result<Self> {
        Ok(Self { terminal: Some(File::open("/dev/tty")?), ..Self::stdin() })
    }

    /// `true` if a terminal shows typed answers.
    pub(crate) fn is_echoed(&self) -> bool {
        self.terminal.is_some() || io::stdin().is_terminal()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match &self.terminal {
            Some(terminal) => terminal.as_fd(),
            // Standard input stays open as long as the process runs.
            None => rustix::stdio::stdin(),
        }
    }

    /// `true` at the end of input.
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// Returns a line that was read. At the end of input, also one without a line break.
    pub(crate) fn read_line(&mut self) -> Option<String> {
        let end = match self.read.iter().position(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None if self.ended && !self.read.is_empty() => self.read.len(),
            None => return None,
        };
        let rest = self.read.split_off(end);
        let line = std::mem::replace(&mut self.read, rest);
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// Waits for one byte and reads it. Not more, because input after the line is for the next reader, such as an editor.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1];
        let count = loop {
            match rustix::io::read(self.fd(), &mut buffer) {
                Err(rustix::io::Errno::INTR) => {}
                // The terminal hung up.
                Err(rustix::io::Errno::IO) => break 0,
                read => break read?,
            }
        };
        self.ended = count == 0;
        self.read.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}

impl AnswerSource for Typing {
    fn discard(&mut self) {
        if self.is_echoed() {
            self.read.clear();
            // Fails without a terminal, where no input has to be discarded.
            let _ = tcflush(self.fd(), QueueSelector::IFlush);
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(line) = self.read_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            self.fill()?;
        }
    }
}
