//! The `sayso` program: reads the command line, the environment and the terminal, and hands values down.
//!
//! The libraries below it know none of the three. What a command found is an exit code: 0 done, 1 a difference or a denial,
//! 2 wrong usage or bad input, 3 refused by policy, 4 stale or conflict, 70 our fault.

#![allow(clippy::disallowed_methods, reason = "the program is where files are named and the environment is read")]

mod agents;
mod branch;
mod call;
mod child;
mod cli;
mod completions;
mod config;
mod diff;
mod doctor;
mod engine;
mod env;
mod exec;
mod failure;
mod gc;
mod history;
mod hook;
mod log;
mod login;
mod output;
mod pending;
mod policy;
mod propose;
mod records;
mod request;
mod review;
mod run;
mod serve;
mod session;
mod settings;
mod snapshot;
mod state;
mod terminal;
mod tool;
mod traffic;
mod trust;
mod typing;
mod under_gate;
mod undo;
mod visible;
mod watch;

use std::ffi::OsStr;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit};

use crate::cli::Command;
use crate::undo::Direction;

/// What agents send is allocated on one thread and freed on another, for which the system's own takes a fifth of all time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A change set holds every directory open that it writes to, and the usual limit is from times of smaller programs.
fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Where that is not allowed, a set that is too large says so.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn main() -> ExitCode {
    // First, and without the rest of the command line: every command under the gate goes through it.
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some(under_gate::NAME) => return under_gate::run(arguments),
        Some(call::NAME) => return call::run(arguments),
        Some(call::DIRECTORY) => return call::print_directory(arguments),
        _ => {}
    }
    raise_open_files();
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => return cli::report(&error),
    };
    let json = command.wants_json();
    let code = match command {
        Command::Propose(arguments) => propose::run(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Review(arguments) => review::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Request(arguments) => request::run(&arguments),
        Command::Log(arguments) => history::log(&arguments),
        Command::Show(arguments) => history::show(&arguments),
        Command::Undo(arguments) => undo::run(&arguments, Direction::Undo),
        Command::Redo(arguments) => undo::run(&arguments, Direction::Redo),
        Command::Status(arguments) => history::status(&arguments),
        Command::Branch(arguments) => branch::run(&arguments),
        Command::Gc(arguments) => gc::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Login(arguments) => login::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Hook(arguments) => return hook::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Tool(arguments) => tool::run(&arguments),
        Command::Policy(arguments) => policy::run(&arguments),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Config(arguments) => config::show::run(&arguments),
        Command::Completions { shell } => completions::run(shell),
    };
    match code {
        Ok(code) => code,
        Err(failure) if json => failure.report_json(),
        Err(failure) => failure.report(),
    }
}
