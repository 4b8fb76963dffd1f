//! Cost of `sayso call`, which runs a permitted command, beside `bash -c` and a direct start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use sayso_gate::{CallBasis, CallOrder, RuleSet};
use sayso_review::{Defaults, Layer, LayerTrust, Rule, Ruling, WsPath};

use crate::clock::{self, Limit, median, milliseconds};
use crate::corpus::work_directory;
use crate::startup;
use crate::table::{Check, Section, Target};

/// Identifies the order of the benchmark, in the form of the engine's own ids.
const ORDER: &str = "00000000000000000000000000000001";
const CONTENT: &str = "content\n";

/// Writes an order for `cat` with the starter rules, where `sayso call` finds it.
fn write_order(folder: &Path) -> Result<()> {
    let allow = |command: &str| Rule { run: vec![command.to_owned()], ..Rule::new(Ruling::Allow) };
    let rules = ["cat", "ls", "git status", "git diff", "cargo test", "rg", "wc", "head", "tail", "sort"];
    let layer = Layer {
        file: "config.toml".to_owned(),
        trust: LayerTrust::Trusted,
        defaults: Defaults::default(),
        rules: rules.map(allow).to_vec(),
    };
    let order = CallOrder {
        change: 1,
        command: "cat file".to_owned(),
        root: folder.to_str().context("the folder is not UTF-8")?.to_owned(),
        directory: WsPath::root(),
        agent: None,
        session: None,
        basis: CallBasis::Rules(RuleSet { layers: vec![layer], protected: Vec::new(), protected_outside: Vec::new() }),
    };
    let calls = folder.join("sayso/calls");
    fs::create_dir_all(&calls)?;
    fs::set_permissions(&calls, fs::Permissions::from_mode(0o700))?;
    fs::write(calls.join(format!("{ORDER}.json")), serde_json::to_vec(&order)?)?;
    Ok(())
}

/// Measures the three ways to start `cat` in turns.
pub fn section(runs: usize) -> Result<Section> {
    let section = Section::new("Commands: `cat` on a small file", &["CPU ms"], "ms beyond direct");
    let Some(sayso) = startup::sayso() else {
        return Ok(section.note("not built: `cargo build --release` in the repository, or set SAYSO_BIN"));
    };
    let mut section = section.note(format!("CPU time with children, median of {runs} runs in turns"));
    let folder = work_directory().join("call");
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    fs::write(folder.join("file"), CONTENT)?;
    write_order(&folder)?;
    let direct = || {
        let mut command = Command::new("/bin/cat");
        command.arg("file");
        command
    };
    let bash = || {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", "cat file; true"]);
        command
    };
    let call = || {
        let mut command = Command::new(&sayso);
        command.args(["call", ORDER]).env("XDG_STATE_HOME", &folder);
        command
    };
    let ways: [(&str, &dyn Fn() -> Command); 3] = [("direct", &direct), ("bash -c", &bash), ("sayso call", &call)];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..runs {
        for ((name, start), times) in ways.iter().zip(&mut times) {
            let run = clock::run(start().current_dir(&folder), Limit::Hanging)?;
            let run = run.with_context(|| format!("{name} hangs"))?;
            ensure!(run.output == CONTENT.as_bytes(), "{name} printed something else than the file");
            times.push(run.cpu);
        }
    }
    let medians = times.each_mut().map(|times| median(times));
    for ((name, _), time) in ways.iter().zip(medians) {
        let beyond = time.saturating_sub(medians[0]).as_secs_f64() * 1e3;
        let check = (*name == "sayso call").then(|| Check::new(beyond, Target::AtMost(3.0)));
        section.row(*name, vec![milliseconds(time)], check);
    }
    Ok(section)
}
