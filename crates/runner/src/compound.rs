//! Constructs: groups, loops, branches and conditions.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::Access;
use sayso_shell::program::{Compound, Condition, Construct, List, UnaryTest, UnexpandedWord};

use crate::files;
use crate::judge::{PreparedCommand, Target};
use crate::redirect;
use crate::shell::Shell;
use crate::walk::{Step, Stop, Walker};

impl Walker<'_> {
    pub(crate) fn compound(&self, compound: &Compound, shell: &mut Shell) -> Step {
        self.redirected(compound, shell, false)
    }

    /// Runs a construct before `|&`: its standard error goes to its standard output.
    pub(crate) fn compound_with_errors(&self, compound: &Compound, shell: &mut Shell) -> Step {
        self.redirected(compound, shell, true)
    }

    fn redirected(&self, compound: &Compound, shell: &mut Shell, joins_errors: bool) -> Step {
        self.check()?;
        if compound.redirections.is_empty() && !joins_errors {
            return self.construct(&compound.construct, shell);
        }
        shell.line = compound.line;
        let outer = shell.descriptors.clone();
        let plans = match self.plan(&compound.redirections, shell) {
            // bash expands them in the subshell, so an unset variable ends only that.
            Err(Stop::Exit(status)) if matches!(compound.construct, Construct::Subshell(_)) => return Ok(status),
            plans => plans?,
        };
        let command = PreparedCommand {
            target: Target::Nothing,
            argv: Vec::new(),
            directory: shell.directory.clone(),
            assignments: Vec::new(),
            environment: shell.environment(),
            redirects: redirect::prepared(&plans),
        };
        self.ask(&command, shell)?;
        let opened = redirect::apply(plans, shell);
        if joins_errors {
            let output = shell.descriptors.get(1).cloned();
            shell.descriptors.set(2, output);
        }
        shell.has_failed_redirection = opened.is_err();
        let result = if opened.is_ok() { self.construct(&compound.construct, shell) } else { Ok(1) };
        shell.descriptors = outer;
        result
    }

    fn construct(&self, construct: &Construct, shell: &mut Shell) -> Step {
        match construct {
            Construct::Subshell(body) => self.subshell(body, shell.clone()),
            Construct::Group(body) => self.list(body, shell),
            Construct::For { variable, words, body } => self.for_loop(variable, words, body, shell),
            Construct::If { branches, otherwise } => self.branches(branches, otherwise.as_ref(), shell),
            Construct::Case { subject, arms } => self.case(subject, arms, shell),
            Construct::WhileRead { variable, keeps_blanks, body } => {
                self.while_read(variable, *keeps_blanks, body, shell)
            }
            Construct::Condition(condition) => {
                self.trace_condition(condition, shell)?;
                Ok(u8::from(!self.holds(condition, shell)?))
            }
        }
    }

    fn for_loop(&self, variable: &str, words: &[UnexpandedWord], body: &List, shell: &mut Shell) -> Step {
        let mut status = 0;
        for value in self.arguments(words, shell)? {
            self.check()?;
            self.trace_loop(variable, words, shell);
            shell.set(OsStr::new(variable), value.as_bytes().to_vec());
            status = self.list(body, shell)?;
        }
        Ok(status)
    }

    fn while_read(&self, variable: &str, keeps_blanks: bool, body: &List, shell: &mut Shell) -> Step {
        let mut status = 0;
        loop {
            self.check()?;
            let (mut line, is_complete) = read_line(shell);
            if !keeps_blanks {
                line = trimmed(&line).to_vec();
            }
            shell.set(OsStr::new(variable), line);
            if !is_complete {
                return Ok(status);
            }
            // The status of the `read`.
            shell.status = 0;
            status = self.list(body, shell)?;
        }
    }

    fn branches(&self, branches: &[(List, List)], otherwise: Option<&List>, shell: &mut Shell) -> Step {
        for (condition, body) in branches {
            let outer = std::mem::replace(&mut shell.is_condition, true);
            let status = self.list(condition, shell);
            shell.is_condition = outer;
            if status? == 0 {
                return self.list(body, shell);
            }
        }
        otherwise.map_or(Ok(0), |body| self.list(body, shell))
    }

    fn case(&self, subject: &UnexpandedWord, arms: &[(Vec<UnexpandedWord>, List)], shell: &mut Shell) -> Step {
        let subject = self.single(subject, shell)?;
        for (patterns, body) in arms {
            for pattern in patterns {
                if self.pattern(pattern, shell)?.matches(&subject) {
                    return self.list(body, shell);
                }
            }
        }
        Ok(0)
    }

    fn holds(&self, condition: &Condition, shell: &mut Shell) -> Result<bool, Stop> {
        Ok(match condition {
            Condition::Not(inner) => !self.holds(inner, shell)?,
            Condition::And(left, right) => self.holds(left, shell)? && self.holds(right, shell)?,
            Condition::Or(left, right) => self.holds(left, shell)? || self.holds(right, shell)?,
            Condition::Unary(test, word) => passes(*test, &self.single(word, shell)?, shell),
            Condition::Matches(left, right) => {
                let left = self.single(left, shell)?;
                self.pattern(right, shell)?.matches(&left)
            }
            Condition::Differs(left, right) => {
                let left = self.single(left, shell)?;
                !self.pattern(right, shell)?.matches(&left)
            }
        })
    }
}

/// Carries out a test of one word, for `[[` and `[` alike.
pub(crate) fn passes(test: UnaryTest, operand: &[u8], shell: &Shell) -> bool {
    match test {
        UnaryTest::Empty => return operand.is_empty(),
        UnaryTest::NotEmpty => return !operand.is_empty(),
        _ if operand.is_empty() => return false,
        _ => {}
    }
    let path = shell.absolute(operand);
    match test {
        UnaryTest::Exists => files::metadata(&path).is_some(),
        UnaryTest::File => files::metadata(&path).is_some_and(|metadata| metadata.is_file()),
        UnaryTest::Directory => files::is_directory(&path),
        UnaryTest::Filled => files::metadata(&path).is_some_and(|metadata| metadata.len() > 0),
        UnaryTest::Readable => files::allows(&path, Access::READ_OK),
        UnaryTest::Writable => files::allows(&path, Access::WRITE_OK),
        UnaryTest::Executable => files::allows(&path, Access::EXEC_OK),
        UnaryTest::SymbolicLink => files::link_metadata(&path).is_some_and(|metadata| metadata.is_symlink()),
        UnaryTest::Empty | UnaryTest::NotEmpty => false,
    }
}

/// Reads a line byte by byte, since commands of the loop read from the same file. `false` if it has no newline.
fn read_line(shell: &Shell) -> (Vec<u8>, bool) {
    let mut line = Vec::new();
    loop {
        match shell.descriptors.read_byte(0) {
            Ok(Some(b'\n')) => return (line, true),
            Ok(Some(0)) => {}
            Ok(Some(byte)) => line.push(byte),
            Ok(None) | Err(_) => return (line, false),
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = line.iter().position(is_text).unwrap_or(line.len());
    let end = line.iter().rposition(is_text).map_or(start, |last| last + 1);
    &line[start..end]
}
