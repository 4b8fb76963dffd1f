//! Cost of `sayso diff` on two small files beyond an empty program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::clock::{self, Limit, median, milliseconds};
use crate::corpus::work_directory;
use crate::table::{Check, Section, Target};

/// Builds a small program next to this one; `cargo run` builds only what it runs.
pub fn build(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--bin", name, "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .stdout(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "`{name}` does not build");
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Returns the release build of `sayso`, or the program in `SAYSO_BIN`.
pub fn sayso() -> Option<PathBuf> {
    let path = std::env::var_os("SAYSO_BIN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/sayso"), PathBuf::from);
    path.exists().then_some(path)
}

/// Measures both programs in turns.
pub fn section(runs: usize) -> Result<Section> {
    let section = Section::new("Start-up: `sayso diff` on two small files", &["CPU ms"], "ms beyond empty");
    let Some(sayso) = sayso() else {
        return Ok(section.note("not built: `cargo build --release` in the repository, or set SAYSO_BIN"));
    };
    let mut section = section.note(format!("CPU time, median of {runs} runs in turns"));
    let empty = build("empty")?;
    let folder = work_directory().join("small");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("a"), "one\ntwo\nthree\n")?;
    fs::write(folder.join("b"), "one\n2\nthree\n")?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let mut ours = Command::new(&sayso);
        ours.args(["diff", "--color", "never", "a", "b"]).current_dir(&folder);
        let run = clock::run(&mut ours, Limit::Hanging)?.context("`sayso diff` hangs")?;
        ensure!(run.output.ends_with(b"-two\n+2\n three\n"), "`sayso diff` printed something else than the diff");
        times[0].push(run.cpu);
        let run = clock::run(&mut Command::new(&empty), Limit::Hanging)?.context("the empty program hangs")?;
        times[1].push(run.cpu);
    }
    let [ours, floor] = times.each_mut().map(|times| median(times));
    let beyond = ours.saturating_sub(floor).as_secs_f64() * 1e3;
    section.row("sayso diff", vec![milliseconds(ours)], Some(Check::new(beyond, Target::AtMost(2.0))));
    section.row("empty program", vec![milliseconds(floor)], None);
    Ok(section)
}
