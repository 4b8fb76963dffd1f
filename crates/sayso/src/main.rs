//! The `sayso` program: reads the command line, the environment and the terminal, and hands values down.
//!
//! The libraries below it know none of the three. What a command found is an exit code: 0 done, 1 a difference or a denial,
//! 2 wrong usage or bad input, 3 refused by policy, 4 stale or conflict, 70 our fault.

#![allow(clippy::disallowed_methods, reason = "the program is where files are named and the environment is read")]

mod cli;
mod completions;
mod diff;
mod failure;
mod output;
mod terminal;
mod tool;
mod visible;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(cli::with_inline_lines(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return cli::report(&error),
    };
    let code = match cli.command {
        Command::Diff(arguments) if arguments.json => {
            return diff::run(&arguments).unwrap_or_else(|failure| failure.report_json());
        }
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Tool(arguments) => tool::run(&arguments),
        Command::Completions { shell } => completions::run(shell),
    };
    match code {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
