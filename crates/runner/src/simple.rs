//! Simple commands: expanded, judged, run.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::Access;
use sayso_shell::program::{Assignment, Builtin, Invocation};

use crate::child;
use crate::descriptors::error_text;
use crate::files;
use crate::judge::{PreparedCommand, Target};
use crate::lookup::{self, Lookup};
use crate::redirect::{self, FailedRedirection, Plan};
use crate::report::RanCommand;
use crate::shell::{Shell, Variable};
use crate::trace;
use crate::walk::{Step, Stop, Walker};

/// Values of variables before a command changed them for itself.
type Saved = Vec<(OsString, Option<Variable>)>;

impl Walker<'_> {
    pub(crate) fn simple(&self, invocation: &Invocation, shell: &mut Shell) -> Step {
        self.invoke(invocation, shell, false)
    }

    /// Runs a command before `|&`: its standard error goes to its standard output.
    pub(crate) fn simple_with_errors(&self, invocation: &Invocation, shell: &mut Shell) -> Step {
        self.invoke(invocation, shell, true)
    }

    fn invoke(&self, invocation: &Invocation, shell: &mut Shell, joins_errors: bool) -> Step {
        self.check()?;
        shell.line = invocation.line;
        shell.substitution_status = None;
        let argv = self.arguments(&invocation.words, shell)?;
        let is_temporary = !argv.is_empty();
        let mut saved = Saved::new();
        let assignments = self.assign(&invocation.assignments, shell, is_temporary, &mut saved)?;
        trace::trace(&assignments, &argv, shell);
        // A redirection does not see the assignments before the command.
        for (name, variable) in saved.iter().rev() {
            shell.restore(name, variable.clone());
        }
        let plans = match self.plan(&invocation.redirections, shell) {
            // bash expands them in the child, so an unset variable ends only that.
            Err(Stop::Exit(status)) if runs_apart(&argv) => return Ok(status),
            plans => plans?,
        };
        if is_temporary {
            for (name, value) in &assignments {
                shell.export(name, value.as_bytes().to_vec());
            }
        }
        let command = self.prepare(argv, assignments, &plans, shell)?;
        self.ask(&command, shell)?;
        let outer = shell.descriptors.clone();
        let opened = redirect::apply(plans, shell);
        if joins_errors {
            let output = shell.descriptors.get(1).cloned();
            shell.descriptors.set(2, output);
        }
        let result = match opened {
            Ok(()) => self.dispatch(&command, shell),
            Err(FailedRedirection) => Ok(1),
        };
        shell.descriptors = outer;
        saved.into_iter().rev().for_each(|(name, value)| shell.restore(&name, value));
        result
    }

    /// Sets variables in order, each visible to the next one.
    fn assign(
        &self,
        assignments: &[Assignment],
        shell: &mut Shell,
        is_temporary: bool,
        saved: &mut Saved,
    ) -> Result<Vec<(OsString, OsString)>, Stop> {
        let mut assigned = Vec::new();
        for Assignment { name, value } in assignments {
            let value = self.single(value, shell)?;
            let name = OsStr::new(name);
            if is_temporary {
                saved.push((name.to_owned(), shell.variable(name)));
                shell.export(name, value.clone());
            } else {
                shell.set(name, value.clone());
            }
            assigned.push((name.to_owned(), OsString::from_vec(value)));
        }
        Ok(assigned)
    }

    fn prepare(
        &self,
        argv: Vec<OsString>,
        assignments: Vec<(OsString, OsString)>,
        plans: &[Plan],
        shell: &Shell,
    ) -> Result<PreparedCommand, Stop> {
        let target = match argv.first() {
            None => Target::Nothing,
            Some(name) => match name.to_str().and_then(Builtin::named) {
                Some(builtin) => Target::Builtin(builtin),
                None => match lookup::find(name, shell) {
                    Lookup::Found(path) => Target::Program(path),
                    Lookup::Missing => Target::Missing,
                },
            },
        };
        let rejection = argv.first().and_then(|name| name.to_str()).and_then(Builtin::rejection);
        let command = PreparedCommand {
            target,
            argv,
            directory: shell.directory.clone(),
            assignments,
            environment: shell.environment(),
            redirects: redirect::prepared(plans),
        };
        // A literal name of this kind does not parse; an expansion can still become one.
        match rejection {
            Some(reason) => Err(self.refuse(&command, reason, shell)),
            None => Ok(command),
        }
    }

    fn dispatch(&self, command: &PreparedCommand, shell: &mut Shell) -> Step {
        let result = match &command.target {
            Target::Nothing => return Ok(shell.substitution_status.unwrap_or(0)),
            Target::Missing => {
                complain(command, shell, "command not found");
                return Ok(127);
            }
            Target::Builtin(builtin) => self.builtin(*builtin, command, shell),
            Target::Program(path) => self.execute(path, command, shell),
        };
        if let Ok(exit) | Err(Stop::Exit(exit)) = result {
            let (argv, directory) = (command.argv.clone(), command.directory.clone());
            self.log.ran(RanCommand { argv, directory, exit });
        }
        result
    }

    fn execute(&self, path: &Path, command: &PreparedCommand, shell: &Shell) -> Step {
        match child::execute(path, command, &shell.descriptors, &self.handle) {
            Ok(status) => self.check().map(|()| status),
            Err(error) => Ok(not_executed(path, command, shell, &error)),
        }
    }
}

/// `true` for a program, `false` for a builtin and for assignments.
fn runs_apart(argv: &[OsString]) -> bool {
    argv.first().is_some_and(|name| name.to_str().and_then(Builtin::named).is_none())
}

/// Explains why a program did not start, as bash does, and gives the status.
fn not_executed(path: &Path, command: &PreparedCommand, shell: &Shell, error: &io::Error) -> u8 {
    if let Some(missing) = files::metadata_error(path) {
        complain(command, shell, &error_text(&missing));
        return if missing.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    }
    if files::is_directory(path) {
        complain(command, shell, "Is a directory");
        return 126;
    }
    if !files::allows(path, Access::EXEC_OK) {
        complain(command, shell, "Permission denied");
        return 126;
    }
    if error.kind() == io::ErrorKind::NotFound {
        complain(command, shell, "cannot execute: required file not found");
        return 127;
    }
    complain(command, shell, &format!("cannot execute: {}", error_text(error)));
    126
}

fn complain(command: &PreparedCommand, shell: &Shell, message: &str) {
    let name = command.argv.first().map(|name| name.as_bytes()).unwrap_or_default();
    shell.complain_bytes(&[name, b": ", message.as_bytes()].concat());
}
