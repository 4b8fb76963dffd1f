//! `sayso completions`: prints a completion script.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::cli::command;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(shell: Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "sayso", &mut script);
    let mut output = Output::stdout();
    output.write(&script)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
