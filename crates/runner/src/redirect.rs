//! Redirections: expanded first, judged, then opened.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

use sayso_shell::RedirectAccess;
use sayso_shell::program::{Operation, Redirection, UnexpandedWord};

use crate::descriptors::{Descriptors, error_text};
use crate::files;
use crate::judge::PreparedRedirect;
use crate::shell::Shell;
use crate::walk::{Stop, Walker};

/// Capacity of a pipe on every system, without a reader.
const PIPE_BYTES: usize = 4096;

/// A redirection with its words expanded.
pub(crate) struct Plan {
    descriptor: u8,
    step: Step,
}

enum Step {
    Open {
        path: PathBuf,
        shown: Vec<u8>,
        access: RedirectAccess,
        is_both: bool,
    },
    Duplicate(u8),
    Close,
    Text(Vec<u8>),
    /// The file's name became several words, or none.
    Ambiguous(String),
}

impl Walker<'_> {
    /// Expands the words of redirections.
    pub(crate) fn plan(&self, redirections: &[Redirection], shell: &mut Shell) -> Result<Vec<Plan>, Stop> {
        let mut plans = Vec::new();
        for Redirection { descriptor, operation } in redirections {
            let step = match operation {
                Operation::Read(word) => self.file(word, RedirectAccess::Read, false, shell)?,
                Operation::Write(word) => self.file(word, RedirectAccess::Write, false, shell)?,
                Operation::Append(word) => self.file(word, RedirectAccess::Append, false, shell)?,
                Operation::WriteBoth(word) => self.file(word, RedirectAccess::Write, true, shell)?,
                Operation::AppendBoth(word) => self.file(word, RedirectAccess::Append, true, shell)?,
                Operation::Duplicate(source) => Step::Duplicate(*source),
                Operation::Close => Step::Close,
                Operation::HereString(word) => {
                    let mut text = self.single(word, shell)?;
                    text.push(b'\n');
                    Step::Text(text)
                }
                Operation::HereDocument(index) => {
                    let body = self.program().documents.get(*index);
                    Step::Text(body.map(|body| self.single(body, shell)).transpose()?.unwrap_or_default())
                }
            };
            plans.push(Plan { descriptor: *descriptor, step });
        }
        Ok(plans)
    }

    fn file(
        &self,
        word: &UnexpandedWord,
        access: RedirectAccess,
        is_both: bool,
        shell: &mut Shell,
    ) -> Result<Step, Stop> {
        let mut names = self.arguments(std::slice::from_ref(word), shell)?;
        let (Some(name), true) = (names.pop(), names.is_empty()) else {
            let shown = self.program().source.get(word.span.clone()).unwrap_or_default();
            return Ok(Step::Ambiguous(shown.to_owned()));
        };
        let path = if name.is_empty() { PathBuf::new() } else { shell.absolute(name.as_bytes()) };
        Ok(Step::Open { path, shown: name.as_bytes().to_vec(), access, is_both })
    }
}

/// The files that plans open, for the judge.
pub(crate) fn prepared(plans: &[Plan]) -> Vec<PreparedRedirect> {
    let file = |plan: &Plan| match &plan.step {
        Step::Open { path, access, .. } => {
            Some(PreparedRedirect { descriptor: plan.descriptor, path: path.clone(), access: *access })
        }
        Step::Duplicate(_) | Step::Close | Step::Text(_) | Step::Ambiguous(_) => None,
    };
    plans.iter().filter_map(file).collect()
}

/// A redirection that failed. The reason has been written to standard error.
pub(crate) struct FailedRedirection;

/// Carries plans out in order.
pub(crate) fn apply(plans: Vec<Plan>, shell: &mut Shell) -> Result<(), FailedRedirection> {
    for Plan { descriptor, step } in plans {
        match step {
            Step::Open { path, shown, access, is_both } => {
                let file = open(&path, access, &shell.descriptors).map_err(|error| complain(shell, &shown, &error))?;
                if is_both {
                    shell.descriptors.set(2, Some(file.clone()));
                }
                shell.descriptors.set(descriptor, Some(file));
            }
            Step::Duplicate(source) => {
                let Some(file) = shell.descriptors.get(source).cloned() else {
                    shell.complain(&format!("{source}: Bad file descriptor"));
                    return Err(FailedRedirection);
                };
                shell.descriptors.set(descriptor, Some(file));
            }
            Step::Close => shell.descriptors.set(descriptor, None),
            Step::Text(text) => {
                let reader = readable(text).map_err(|error| complain(shell, b"here-document", &error))?;
                shell.descriptors.put(descriptor, reader);
            }
            Step::Ambiguous(shown) => {
                shell.complain(&format!("{shown}: ambiguous redirect"));
                return Err(FailedRedirection);
            }
        }
    }
    Ok(())
}

fn complain(shell: &Shell, subject: &[u8], error: &io::Error) -> FailedRedirection {
    let text = error_text(error);
    shell.complain_bytes(&[subject, b": ", text.as_bytes()].concat());
    FailedRedirection
}

/// Opens a file. `/dev/fd/N` and the like name descriptors of the shell rather than of this process.
fn open(path: &Path, access: RedirectAccess, descriptors: &Descriptors) -> io::Result<std::sync::Arc<std::fs::File>> {
    if let Some(number) = descriptor_named(path) {
        let missing = || io::Error::from(rustix::io::Errno::NOENT);
        return descriptors.get(number).cloned().ok_or_else(missing);
    }
    files::open(path, access).map(std::sync::Arc::new)
}

fn descriptor_named(path: &Path) -> Option<u8> {
    match path.as_os_str().as_bytes() {
        b"/dev/stdin" => Some(0),
        b"/dev/stdout" => Some(1),
        b"/dev/stderr" => Some(2),
        [b'/', b'd', b'e', b'v', b'/', b'f', b'd', b'/', digit @ b'0'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

/// A descriptor from which a text can be read.
fn readable(text: Vec<u8>) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    if text.len() <= PIPE_BYTES {
        writer.write_all(&text)?;
    } else {
        // Ends with the last reader at the latest.
        thread::Builder::new().spawn(move || writer.write_all(&text))?;
    }
    Ok(OwnedFd::from(reader))
}
