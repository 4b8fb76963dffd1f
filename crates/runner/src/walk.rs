//! The walk over lists and pipelines.

use std::os::fd::OwnedFd;
use std::thread;

use sayso_shell::Program;
use sayso_shell::program::{AndOr, Command, Compound, Connector, Construct, List, Pipeline, Stage};

use crate::child::Handle;
use crate::descriptors::Descriptors;
use crate::judge::{Judge, Judgement, PreparedCommand};
use crate::report::{Log, Refusal, Report};
use crate::shell::Shell;
use crate::substitute::cannot;
use crate::{REFUSED, RunOptions, files};

/// Reason to skip the remaining commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// This shell ends with a status; its parent shell continues.
    Exit(u8),
    /// The whole script ends: it was refused or interrupted.
    Abort,
}

/// Status of a command, or the reason to skip the commands behind it.
pub(crate) type Step = Result<u8, Stop>;

/// The parts of a run that all its threads share.
pub(crate) struct Walker<'r> {
    program: &'r Program,
    judge: &'r dyn Judge,
    pub(crate) handle: Handle,
    pub(crate) log: Log,
}

/// Runs a program from its first to its last command.
pub(crate) fn run(program: &Program, options: RunOptions, judge: &dyn Judge) -> Report {
    let walker = Walker { program, judge, handle: options.handle, log: Log::default() };
    let mut descriptors = Descriptors::default();
    match options.stdin {
        Some(file) => descriptors.put(0, file),
        // Without `/dev/null` standard input stays closed.
        None => descriptors.set(0, files::open_null_for_reading().ok().map(std::sync::Arc::new)),
    }
    descriptors.put(1, options.stdout);
    descriptors.put(2, options.stderr);
    let mut shell = Shell::new(options.environment, options.directory, descriptors);
    let exit_code = match walker.list(&program.body, &mut shell) {
        Ok(status) | Err(Stop::Exit(status)) => status,
        Err(Stop::Abort) => REFUSED,
    };
    let exit_code = walker.handle.interrupt().map_or(exit_code, crate::child::Interrupt::exit_code);
    walker.log.into_report(exit_code, shell.directory)
}

impl Walker<'_> {
    pub(crate) fn program(&self) -> &Program {
        self.program
    }

    /// Returns an error once the script was refused or interrupted.
    pub(crate) fn check(&self) -> Result<(), Stop> {
        if self.handle.is_stopped() { Err(Stop::Abort) } else { Ok(()) }
    }

    /// Asks the judge about a command.
    pub(crate) fn ask(&self, command: &PreparedCommand, shell: &Shell) -> Result<(), Stop> {
        self.check()?;
        match self.judge.judge(command) {
            Judgement::Proceed => Ok(()),
            Judgement::Refuse { reason } => Err(self.refuse(command, reason, shell)),
        }
    }

    /// Ends the whole script because of a command.
    pub(crate) fn refuse(&self, command: &PreparedCommand, reason: String, shell: &Shell) -> Stop {
        let words: Vec<_> = command.argv.iter().map(|word| word.to_string_lossy()).collect();
        let message = format!("sayso: refused `{}`: {reason}\n", words.join(" "));
        // The write may fail: the report has the command and the reason, too.
        let _ = shell.descriptors.write(2, message.as_bytes());
        self.log.refused(Refusal { command: command.clone(), reason });
        self.handle.refuse();
        Stop::Abort
    }

    pub(crate) fn list(&self, list: &List, shell: &mut Shell) -> Step {
        let mut status = 0;
        for item in &list.items {
            status = self.and_or(item, shell)?;
        }
        Ok(status)
    }

    /// Runs a list in a copy of the shell.
    pub(crate) fn subshell(&self, list: &List, mut shell: Shell) -> Step {
        shell.is_subshell = true;
        match self.list(list, &mut shell) {
            Ok(status) | Err(Stop::Exit(status)) => self.check().map(|()| status),
            Err(Stop::Abort) => Err(Stop::Abort),
        }
    }

    /// Runs pipelines that `&&` and `||` connect.
    fn and_or(&self, item: &AndOr, shell: &mut Shell) -> Step {
        let last = item.rest.len();
        let mut status = self.pipeline(&item.first, shell, last > 0)?;
        for (index, (connector, pipeline)) in item.rest.iter().enumerate() {
            let is_reached = match connector {
                Connector::And => status == 0,
                Connector::Or => status != 0,
            };
            if is_reached {
                status = self.pipeline(pipeline, shell, index + 1 < last)?;
            }
        }
        Ok(status)
    }

    /// Runs a pipeline. In a condition its failure does not end the script despite `set -e`.
    fn pipeline(&self, pipeline: &Pipeline, shell: &mut Shell, is_condition: bool) -> Step {
        let outer = shell.is_condition;
        shell.is_condition |= is_condition || pipeline.is_negated;
        let result = match pipeline.stages.as_slice() {
            [stage] => self.command(&stage.command, shell),
            stages => self.stages(stages, shell),
        };
        let can_exit = !shell.is_condition;
        shell.is_condition = outer;
        let mut status = result?;
        // A construct is left undone if its redirection fails. bash then ignores a `!` before it.
        let is_undone = std::mem::take(&mut shell.has_failed_redirection) && pipeline.stages.len() == 1;
        if pipeline.is_negated && !is_undone {
            status = u8::from(status == 0);
        }
        shell.status = status;
        if status != 0 && can_exit && shell.options.exits_on_error && (is_undone || ends_script(&pipeline.stages)) {
            return Err(Stop::Exit(status));
        }
        Ok(status)
    }

    pub(crate) fn command(&self, command: &Command, shell: &mut Shell) -> Step {
        match command {
            Command::Simple(invocation) => self.simple(invocation, shell),
            Command::Compound(compound) => self.compound(compound, shell),
        }
    }

    /// Runs the stages of a pipeline at the same time, each in a copy of the shell: the last on this thread, the others on their own.
    fn stages(&self, stages: &[Stage], shell: &mut Shell) -> Step {
        let mut shells = match connected(stages, shell) {
            Ok(shells) => shells,
            Err(error) => return Err(cannot(shell, &error)),
        };
        let last = shells.pop();
        let results: Vec<Step> = thread::scope(|scope| {
            let mut running = Vec::new();
            for (stage, inner) in stages.iter().zip(shells) {
                running.push(thread::Builder::new().spawn_scoped(scope, move || self.stage(stage, inner)));
            }
            let last = stages.last().zip(last).map(|(stage, inner)| self.stage(stage, inner));
            let joined = running.into_iter().map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or(Err(Stop::Abort)),
                Err(error) => Err(cannot(shell, &error)),
            });
            joined.chain(last).collect()
        });
        let mut status = 0;
        let mut failed = 0;
        for result in results {
            status = result?;
            failed = if status == 0 { failed } else { status };
        }
        Ok(if shell.options.fails_in_pipe { failed } else { status })
    }

    /// Runs a stage. An exit ends only its copy of the shell.
    fn stage(&self, stage: &Stage, mut shell: Shell) -> Step {
        shell.is_subshell = true;
        let result = match &stage.command {
            Command::Simple(invocation) if stage.pipes_errors => self.simple_with_errors(invocation, &mut shell),
            Command::Compound(compound) if stage.pipes_errors => self.compound_with_errors(compound, &mut shell),
            command => self.command(command, &mut shell),
        };
        match result {
            Ok(status) | Err(Stop::Exit(status)) => self.check().map(|()| status),
            Err(Stop::Abort) => Err(Stop::Abort),
        }
    }
}

/// One copy of the shell for each stage, with pipes between them.
fn connected(stages: &[Stage], shell: &Shell) -> std::io::Result<Vec<Shell>> {
    let mut shells = Vec::new();
    let mut input: Option<OwnedFd> = None;
    for index in 0..stages.len() {
        let mut inner = shell.clone();
        if let Some(reader) = input.take() {
            inner.descriptors.put(0, reader);
        }
        if index + 1 < stages.len() {
            let (reader, writer) = std::io::pipe()?;
            inner.descriptors.put(1, OwnedFd::from(writer));
            input = Some(OwnedFd::from(reader));
        }
        shells.push(inner);
    }
    Ok(shells)
}

/// `true` if a failure of the pipeline itself counts for `set -e`; constructs pass on failures of what is inside.
fn ends_script(stages: &[Stage]) -> bool {
    match stages {
        [Stage { command: Command::Compound(Compound { construct, .. }), .. }] => {
            matches!(construct, Construct::Subshell(_) | Construct::Condition(_))
        }
        _ => true,
    }
}
