//! Standard output that ends quietly when its reader does.

use std::io::{BufWriter, ErrorKind, StdoutLock, Write as _};

use crate::failure::Failure;
use crate::visible::{visible, visible_json};

pub(crate) struct Output {
    inner: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self { inner: BufWriter::with_capacity(64 * 1024, std::io::stdout().lock()) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.inner.write_all(bytes).map_err(|error| failure(&error))
    }

    /// Writes one JSON value and a line break.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.write(visible_json(&format!("{value:#}\n")).as_bytes())
    }

    /// Lets a reader see what was written so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.inner.flush().map_err(|error| failure(&error))
    }

    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.inner.flush().map_err(|error| failure(&error))
    }
}

fn failure(error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        Failure::BrokenPipe
    } else {
        Failure::bad_input("the output could not be written").why(error)
    }
}

/// Says something beside the output. It may name files, whose names may hold anything.
pub(crate) fn say(text: &str) {
    let lines: Vec<_> = text.lines().map(visible).collect();
    // Nobody is left to tell if this fails.
    let _ = std::io::stderr().write_all(format!("{}\n", lines.join("\n")).as_bytes());
}
