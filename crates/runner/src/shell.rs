//! The state of one shell, which a subshell copies.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sayso_shell::program::{ShellOption, is_inherited};

use crate::descriptors::Descriptors;

/// The state of one shell.
#[derive(Clone)]
pub(crate) struct Shell {
    variables: BTreeMap<OsString, Variable>,
    /// Absolute path, with symbolic links as in the operand of `cd`.
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) descriptors: Descriptors,
    /// Status of the last command: `$?`.
    pub(crate) status: u8,
    /// Status of the last substitution within the current command.
    pub(crate) substitution_status: Option<u8>,
    /// `true` where a failing command does not end the script despite `set -e`.
    pub(crate) is_condition: bool,
    /// `true` after a construct that was left undone because a redirection failed.
    pub(crate) has_failed_redirection: bool,
    /// `true` in a copy of the first shell.
    pub(crate) is_subshell: bool,
    /// Substitutions around the current command, which a trace shows.
    pub(crate) depth: usize,
    /// Line of the current command.
    pub(crate) line: usize,
}

/// A variable that is set, or exported, or both.
#[derive(Clone)]
pub(crate) struct Variable {
    /// Absent for a variable that was exported before it has a value.
    value: Option<Vec<u8>>,
    is_exported: bool,
}

/// Options that `set` changes.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "the options of a shell are independent")]
pub(crate) struct Options {
    pub(crate) exits_on_error: bool,
    pub(crate) rejects_unset: bool,
    pub(crate) traces: bool,
    pub(crate) fails_in_pipe: bool,
}

impl Options {
    pub(crate) fn set(&mut self, option: ShellOption, is_on: bool) {
        match option {
            ShellOption::ExitOnError => self.exits_on_error = is_on,
            ShellOption::RejectUnset => self.rejects_unset = is_on,
            ShellOption::Trace => self.traces = is_on,
            ShellOption::PipeFail => self.fails_in_pipe = is_on,
        }
    }
}

impl Shell {
    pub(crate) fn new(environment: BTreeMap<OsString, OsString>, directory: PathBuf, descriptors: Descriptors) -> Self {
        let variables = environment
            .into_iter()
            .filter(|(name, _)| is_inherited(&name.to_string_lossy()))
            .map(|(name, value)| (name, Variable { value: Some(value.into_vec()), is_exported: true }))
            .collect();
        let mut shell = Self {
            variables,
            directory: directory.clone(),
            options: Options::default(),
            descriptors,
            status: 0,
            substitution_status: None,
            is_condition: false,
            has_failed_redirection: false,
            is_subshell: false,
            depth: 0,
            line: 1,
        };
        shell.export(OsStr::new("PWD"), directory.into_os_string().into_vec());
        shell
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.variables.get(OsStr::new(name))?.value.as_deref()
    }

    /// A copy of a variable, to be restored later.
    pub(crate) fn variable(&self, name: &OsStr) -> Option<Variable> {
        self.variables.get(name).cloned()
    }

    /// Gives a variable back what [`Shell::variable`] returned.
    pub(crate) fn restore(&mut self, name: &OsStr, variable: Option<Variable>) {
        match variable {
            Some(variable) => {
                self.variables.insert(name.to_owned(), variable);
            }
            None => self.unset(name),
        }
    }

    /// Sets a variable, which stays exported if it was.
    pub(crate) fn set(&mut self, name: &OsStr, value: Vec<u8>) {
        let is_exported = self.variables.get(name).is_some_and(|variable| variable.is_exported);
        self.variables.insert(name.to_owned(), Variable { value: Some(value), is_exported });
    }

    /// Sets a variable that children get.
    pub(crate) fn export(&mut self, name: &OsStr, value: Vec<u8>) {
        self.variables.insert(name.to_owned(), Variable { value: Some(value), is_exported: true });
    }

    /// Exports a variable with its current or future value.
    pub(crate) fn export_existing(&mut self, name: &OsStr) {
        let empty = Variable { value: None, is_exported: true };
        self.variables.entry(name.to_owned()).or_insert(empty).is_exported = true;
    }

    pub(crate) fn unset(&mut self, name: &OsStr) {
        self.variables.remove(name);
    }

    /// The environment of a child.
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        self.variables
            .iter()
            .filter(|(_, variable)| variable.is_exported)
            .filter_map(|(name, variable)| Some((name.clone(), OsString::from_vec(variable.value.clone()?))))
            .collect()
    }

    /// Makes a path absolute, with `..` as written.
    pub(crate) fn absolute(&self, path: &[u8]) -> PathBuf {
        self.directory.join(Path::new(OsStr::from_bytes(path)))
    }

    /// Writes a message of the runner to standard error.
    pub(crate) fn complain(&self, message: &str) {
        self.complain_bytes(message.as_bytes());
    }

    pub(crate) fn complain_bytes(&self, message: &[u8]) {
        let mut line = format!("bash: line {}: ", self.line).into_bytes();
        line.extend_from_slice(message);
        line.push(b'\n');
        // Standard error may be closed; there is no other place for the message.
        let _ = self.descriptors.write(2, &line);
    }
}
