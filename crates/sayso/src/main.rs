//! The `sayso` program: the only crate that reads the command line, the environment and the terminal.
//!
//! Most commands are surfaces: they talk to an engine through `api` and take texts and decisions from `present`. A few modules start an
//! engine or inspect its files; the architecture test lists them. `sayso --help` lists the exit codes.

#![allow(clippy::disallowed_methods, reason = "the program is where files are named and the environment is read")]

mod agents;
mod ansi;
mod branch;
mod call;
mod change_diff;
mod child;
mod cli;
mod completions;
mod config;
mod demo;
mod diff;
mod doctor;
mod endpoint;
mod engine;
mod env;
mod error;
mod exec;
mod gc;
mod history;
mod hook;
mod log;
mod login;
mod open;
mod output;
mod pending;
mod policy;
mod prompt;
mod propose;
mod records;
mod request;
mod review;
mod run;
mod serve;
mod serve_model;
mod session;
mod sessions;
mod settings;
mod signals;
mod snapshot;
mod terminal;
mod tool;
mod trust;
mod typing;
mod under_gate;
mod undo;
mod watch;
mod workspace_location;

use std::ffi::OsStr;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit};

use crate::cli::Command;
use crate::undo::Direction;

/// Request bodies are allocated on one thread and freed on another. With the system's allocator that takes a fifth of all time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Raises the limit of open files, because an apply holds every directory open that it writes to.
fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Best effort: an apply beyond the limit fails with its own error.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn main() -> ExitCode {
    // These skip the parser of the command line for speed, because every command under the gate starts here.
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
        Command::Prompt(arguments) => prompt::run(&arguments),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
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
        Command::ServeModel(arguments) => serve_model::run(&arguments),
        Command::Open(arguments) => open::run(&arguments),
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
        Err(error) if json => error.report_json(),
        Err(error) => error.report(),
    }
}
