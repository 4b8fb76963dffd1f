//! What a person types in answer to a question.
//!
//! Nothing is read unless an answer is waited for, so that an editor has the terminal to itself. On a terminal, what was typed before a
//! question was shown is no answer to it: it is discarded.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{QueueSelector, tcflush};

/// Where answers come from.
pub(crate) trait Answers {
    /// Discards what was typed so far, since the next question was not shown yet.
    fn discard(&mut self);

    /// Waits for a line; `None` if nobody answers.
    fn line(&mut self) -> io::Result<Option<String>>;
}

/// Nobody, who answers nothing.
pub(crate) struct Nobody;

impl Answers for Nobody {
    fn discard(&mut self) {}

    fn line(&mut self) -> io::Result<Option<String>> {
        Ok(None)
    }
}

/// Standard input, or a terminal.
pub(crate) struct Typing {
    /// A terminal other than standard input.
    terminal: Option<File>,
    /// What was read and is not an answer yet.
    read: Vec<u8>,
    ended: bool,
}

impl Typing {
    pub(crate) fn stdin() -> Self {
        Self { terminal: None, read: Vec::new(), ended: false }
    }

    /// The terminal that this process belongs to, whatever its standard input is.
    pub(crate) fn terminal() -> io::Result<Self> {
        Ok(Self { terminal: Some(File::open("/dev/tty")?), ..Self::stdin() })
    }

    /// Whether a person's own typing shows their answers.
    pub(crate) fn is_echoed(&self) -> bool {
        self.terminal.is_some() || io::stdin().is_terminal()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match &self.terminal {
            Some(terminal) => terminal.as_fd(),
            // It is open for as long as the process runs.
            None => rustix::stdio::stdin(),
        }
    }

    /// Whether nothing more can be read.
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// A line that was read; at the end of input, what is left.
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

    /// Reads one byte, and waits if there is none. Not more: what follows a line is for whoever reads next, such as an editor.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1];
        let count = loop {
            match rustix::io::read(self.fd(), &mut buffer) {
                Err(rustix::io::Errno::INTR) => {}
                // A terminal that was hung up.
                Err(rustix::io::Errno::IO) => break 0,
                read => break read?,
            }
        };
        self.ended = count == 0;
        self.read.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}

impl Answers for Typing {
    fn discard(&mut self) {
        if self.is_echoed() {
            self.read.clear();
            // Without a terminal there is nothing to discard.
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
