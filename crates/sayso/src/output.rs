//! Standard output that ends quietly when its reader closes it, and messages beside it.

use std::io::{BufWriter, ErrorKind, StdoutLock, Write as _};

use sayso_present::escape::{escape_json, escape_unprintable};
use sayso_present::span::StyledText;

use crate::ansi::paint;
use crate::error::CliError;
use crate::terminal::Terminal;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// Buffered standard output.
pub(crate) struct Output {
    inner: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self { inner: BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock()) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.inner.write_all(bytes).map_err(|error| write_error(&error))
    }

    /// Writes text in the colours of the terminal.
    pub(crate) fn styled(&mut self, text: &StyledText, terminal: Terminal) -> Result<(), CliError> {
        self.write(paint(text, terminal).as_bytes())
    }

    /// Writes one JSON value and a line break.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), CliError> {
        self.write(escape_json(&format!("{value:#}\n")).as_bytes())
    }

    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        self.inner.flush().map_err(|error| write_error(&error))
    }

    /// Writes the rest. A dropped output would lose the error.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        self.flush()
    }
}

fn write_error(error: &std::io::Error) -> CliError {
    if error.kind() == ErrorKind::BrokenPipe {
        CliError::BrokenPipe
    } else {
        CliError::io("cannot write the output", error)
    }
}

/// Prints text on standard output.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut output = Output::stdout();
    output.write(text.as_bytes())?;
    output.finish()
}

/// Prints a message on standard error. File names in it may hold any character, so that it is escaped.
pub(crate) fn say(text: &str) {
    let lines: Vec<_> = text.lines().map(escape_unprintable).collect();
    // There is no other channel to report a failure of this one.
    let _ = std::io::stderr().write_all(format!("{}\n", lines.join("\n")).as_bytes());
}
