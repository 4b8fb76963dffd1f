//! Instructions by callgrind: the one figure that a busy machine cannot disturb.
//!
//! The program runs itself over the whole corpus, once with the work and once without; the difference is the work.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::corpus::{Corpus, work_directory};
use crate::engines::Engine;
use crate::table::{Check, Section, Target, thousands};
use crate::words;

/// Work of a run under callgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads the corpus.
    Load,
    /// Reads it, and writes the unified diff of each pair.
    Unified(Engine),
    /// Reads it, and compares each pair.
    Compare,
    /// Compares, and marks the words of each hunk our way.
    Mark,
    /// Compares, and finds the spans of each hunk as the baseline does.
    MarkBare,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Unified(engine) => engine.name(),
            Self::Compare => "compare",
            Self::Mark => "mark",
            Self::MarkBare => "mark-bare",
        }
    }

    /// The work of this name, for the hidden subcommand.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Load, Self::Compare, Self::Mark, Self::MarkBare];
        all.into_iter().find(|work| work.name() == name).or_else(|| Engine::named(name).map(Self::Unified))
    }

    /// The hidden subcommand: does the work once over the pairs of a list.
    pub fn once(self, list: &Path) -> Result<()> {
        let corpus = Corpus::from_list(list)?;
        match self {
            Self::Load => {}
            Self::Unified(engine) => {
                for pair in &corpus.pairs {
                    black_box(engine.unified(&pair.old, &pair.new)?);
                }
            }
            Self::Compare => drop(black_box(words::diffs(&corpus))),
            Self::Mark => words::mark(&words::diffs(&corpus)),
            Self::MarkBare => words::mark_bare(&corpus, &words::diffs(&corpus)),
        }
        Ok(())
    }

    /// Instructions that the work takes in a process of its own.
    fn count(self, list: &Path) -> Result<usize> {
        let profile = work_directory().join(format!("callgrind.{}.out", self.name()));
        let status = Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(std::env::current_exe()?)
            .args(["once", self.name()])
            .arg(list)
            .stderr(Stdio::null())
            .status()?;
        ensure!(status.success(), "callgrind failed on `{}`", self.name());
        let text = fs::read_to_string(&profile)?;
        let total =
            text.lines().rev().find_map(|line| line.strip_prefix("totals: ")).context("no totals in the profile")?;
        Ok(total.trim().parse()?)
    }
}

/// Counts instructions of ours and of the bare engine, of unified text and of word spans.
pub fn section(near: &Path, far: &Path) -> Result<Section> {
    let columns = ["ours, million", "bare, million"];
    let section = Section::new("Instructions over the corpus", &columns, "ours/bare");
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(section.note("not measured: valgrind is not installed"));
    }
    let mut section = section.note(format!("profiles for callgrind_annotate in {}", work_directory().display()));
    let mut row = |name, list: &Path, [base, ours, bare]: [Work; 3], most| -> Result<()> {
        let base = base.count(list)?;
        let [ours, bare] = [ours.count(list)?.saturating_sub(base), bare.count(list)?.saturating_sub(base)];
        let cells = [ours, bare].map(|count| thousands(count / 1_000_000)).to_vec();
        section.row(name, cells, Some(Check::new(ours as f64 / bare as f64, Target::AtMost(most))));
        Ok(())
    };
    let unified = [Work::Load, Work::Unified(Engine::Ours), Work::Unified(Engine::Bare)];
    // The nearer versions last, so that theirs are the profiles that stay.
    row("whole unified text, first version to last", far, unified, 0.75)?;
    row("whole unified text, version to next", near, unified, 0.75)?;
    row("word spans, version to next", near, [Work::Compare, Work::Mark, Work::MarkBare], 1.0)?;
    Ok(section)
}
