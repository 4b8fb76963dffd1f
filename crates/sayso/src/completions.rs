//! `sayso completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sayso", &mut script);
    let mut output = Output::stdout();
    output.write(&script)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
