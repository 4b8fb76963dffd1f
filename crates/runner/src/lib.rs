//! Executes a [`Program`] without a shell.
//!
//! The runner walks the tree that [`sayso_shell`] has parsed. It expands words, opens redirections, connects pipelines and
//! starts programs. Right before a command runs, a [`Judge`] sees its real arguments, folder, environment and files. A refusal
//! ends the whole script with exit code 126.
//!
//! Subshells and stages of pipelines are threads with a copy of the state. The working directory is part of that state; the
//! process itself never changes its own.
//!
//! # Differences from bash
//!
//! - Standard input is `/dev/null` unless it is redirected or piped.
//! - Functions, aliases, `IFS`, traps, jobs and the locale do not exist. Words split at space, TAB and newline; file names sort
//!   by bytes; `?` matches one UTF-8 character.
//! - A file without `#!` that the kernel cannot execute gives status 126; bash would read it as a script.
//! - `/dev/stdin`, `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` as redirections duplicate the descriptor, so a regular file
//!   behind it keeps its offset.
//! - In a child, a closed standard descriptor is open but can neither be read nor written.
//! - All redirections of a command are expanded before the first one is opened, so that the judge sees every file. bash stops
//!   at the first one that fails, and never expands the others.
//! - An unset variable under `set -u` fails a subshell of one negated command, as in `( ! cat $x )`. bash reports success.
//! - A stage of a pipeline whose words all vanish has status 1 if its redirection fails. bash reports success.
//! - `_` and `SHLVL` are not maintained.
//! - A relative path is opened as folder plus path, so a folder that is renamed while the script stands in it is lost.

mod builtins;
mod child;
mod compound;
mod descriptors;
mod expand;
mod fields;
mod files;
mod glob;
mod judge;
mod lookup;
mod pattern;
mod redirect;
mod report;
mod shell;
mod simple;
mod substitute;
mod trace;
mod walk;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use sayso_shell::Program;

pub use child::{Handle, Interrupt};
pub use judge::{Judge, Judgement, PreparedCommand, PreparedRedirect, Target};
pub use report::{RanCommand, Refusal, Report};

/// Exit code of a script that was refused.
pub const REFUSED: u8 = 126;

/// The surroundings of a run.
#[derive(Debug)]
pub struct RunOptions {
    /// Environment of the script. Variables that change how a shell reads scripts are dropped.
    pub environment: BTreeMap<OsString, OsString>,
    /// Absolute path of the folder in which the script starts.
    pub directory: PathBuf,
    /// Standard input; `/dev/null` if absent.
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    /// Standard error, which also gets the messages of the runner itself.
    pub stderr: OwnedFd,
    /// Stops the script from another thread.
    pub handle: Handle,
}

/// Runs a program to its end, asking `judge` about every command right before it runs.
pub fn run(program: &Program, options: RunOptions, judge: &dyn Judge) -> Report {
    walk::run(program, options, judge)
}
