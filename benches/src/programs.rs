//! The peers that are programs. Each compares two directories in one process, and what it costs to start is taken off.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::clock::{self, median};
use crate::corpus::Trees;

/// A program that compares two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// GNU diff.
    Gnu,
    /// git with its default algorithm.
    GitMyers,
    /// git with the algorithm that gix-imara-diff's histogram follows.
    GitHistogram,
    /// Python's difflib, timed inside Python.
    Difflib,
}

/// Result of a program for two trees.
pub struct Measured {
    /// CPU time; what starting costs is still in it, except for difflib.
    pub cpu: Duration,
    /// CPU time of each pair, where the program can tell.
    pub each: Vec<Duration>,
    /// The unified text of all pairs.
    pub text: Vec<u8>,
}

impl Program {
    /// All programs.
    pub const ALL: [Self; 4] = [Self::Gnu, Self::GitMyers, Self::GitHistogram, Self::Difflib];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gnu => "GNU diff",
            Self::GitMyers => "git Myers",
            Self::GitHistogram => "git histogram",
            Self::Difflib => "difflib",
        }
    }

    fn command(self, folder: &Path) -> Command {
        let git = |algorithm| {
            let mut command = Command::new("git");
            command.args(["diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-U3"]);
            command.args([algorithm, "old", "new"]);
            command
        };
        let mut command = match self {
            Self::Gnu => {
                let mut command = Command::new("diff");
                command.args(["--recursive", "--text", "--unified=3", "old", "new"]);
                command
            }
            Self::GitMyers => git("--diff-algorithm=myers"),
            Self::GitHistogram => git("--diff-algorithm=histogram"),
            Self::Difflib => {
                let mut command = Command::new("python3");
                command.args(["-c", include_str!("difflib.py")]).arg(folder);
                command
            }
        };
        command.current_dir(folder);
        // Neither the person's settings nor the repository around the folder may change what git does.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_CEILING_DIRECTORIES", folder);
        command
    }

    /// Compares two trees; `None` if it did not end in time.
    pub fn measure(self, trees: &Trees, limit: clock::Limit) -> Result<Option<Measured>> {
        let Some(run) = clock::run(&mut self.command(&trees.folder), limit)? else { return Ok(None) };
        if self != Self::Difflib {
            return Ok(Some(Measured { cpu: run.cpu, each: Vec::new(), text: run.output }));
        }
        let each: Vec<Duration> = String::from_utf8_lossy(&run.output)
            .lines()
            .map(|seconds| Ok(Duration::try_from_secs_f64(seconds.parse()?)?))
            .collect::<Result<_>>()
            .context("difflib.py printed something else than seconds")?;
        let text =
            fs::read(trees.folder.join("difflib.diff")).context("difflib.py wrote no diff; is there a python3?")?;
        Ok(Some(Measured { cpu: each.iter().sum(), each, text }))
    }

    /// Returns the cost for trivial `trees`, to be subtracted.
    pub fn overhead(self, trees: &Trees, rounds: usize) -> Result<Duration> {
        if self == Self::Difflib {
            return Ok(Duration::ZERO);
        }
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.extend(self.measure(trees, clock::Limit::Hanging)?.map(|measured| measured.cpu));
        }
        Ok(median(&mut times))
    }
}
