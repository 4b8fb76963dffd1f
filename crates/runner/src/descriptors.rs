//! File descriptors 0 to 9 of a shell. They exist in this table only; children get copies.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Number of descriptors that a redirection can name.
pub(crate) const COUNT: usize = 10;

/// The open files of a shell.
#[derive(Clone, Default)]
pub(crate) struct Descriptors {
    files: [Option<Arc<File>>; COUNT],
}

impl Descriptors {
    pub(crate) fn get(&self, number: u8) -> Option<&Arc<File>> {
        self.files.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn set(&mut self, number: u8, file: Option<Arc<File>>) {
        if let Some(slot) = self.files.get_mut(usize::from(number)) {
            *slot = file;
        }
    }

    pub(crate) fn put(&mut self, number: u8, file: impl Into<File>) {
        self.set(number, Some(Arc::new(file.into())));
    }

    /// Open descriptors above standard error.
    pub(crate) fn above_standard(&self) -> impl Iterator<Item = (u8, &Arc<File>)> {
        (3..COUNT as u8).filter_map(|number| Some((number, self.get(number)?)))
    }

    pub(crate) fn write(&self, number: u8, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = self.get(number) else { return Err(bad_descriptor()) };
        let mut file: &File = file;
        file.write_all(bytes)
    }

    /// Reads one byte; `None` at the end.
    pub(crate) fn read_byte(&self, number: u8) -> io::Result<Option<u8>> {
        let Some(file) = self.get(number) else { return Err(bad_descriptor()) };
        let mut file: &File = file;
        let mut byte = [0];
        loop {
            match file.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(byte[0])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn bad_descriptor() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::BADF.raw_os_error())
}

/// The text of an error as the C library has it, without Rust's number.
pub(crate) fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
