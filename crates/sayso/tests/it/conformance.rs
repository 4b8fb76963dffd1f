//! One table of cases over every transport: the official clients from npm, `curl`, and our own client from Rust.
//!
//! The cases for the official clients are in `tests/conformance`; they are run by `node` against the real program, each transport
//! against an engine of its own. What they need comes from npm, into `~/.cache/sayso/conformance-…`. Where there is no Node 20 or npm
//! cannot install, those rows are left out, and that is said.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sayso_review::ContentHash;
use sayso_testkit::programs::{self, run_with};
use sayso_testkit::skip::skip;
use serde_json::{Value, json};

use super::{Scene, conformance_rust};

/// A page that may call.
const ORIGIN: &str = "http://page.example:5173";
/// Initial content of the file in each workspace.
pub(crate) const BEFORE: &str = "old pond\na frog jumps in\nthe sound of water\n";

/// A running `sayso serve` in a workspace of its own.
pub(crate) struct Served {
    pub(crate) scene: Scene,
    /// The JSON that it printed at its start.
    pub(crate) told: Value,
    child: Child,
}

impl Served {
    fn start() -> Self {
        let scene = Scene::new(&[("haiku.txt", BEFORE.as_bytes())]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--json", "--port", "0", "--log", "error", "--allow-origin", ORIGIN])
            .current_dir(scene.directory.path())
            .env_clear()
            .env("HOME", scene.state_path())
            .envs(scene.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        told["origin"] = ORIGIN.into();
        told["login"] = scene.json(&["login", "--json"]).0["login"].clone();
        let socket = PathBuf::from(told["socket"].as_str().unwrap());
        told["verdicts"] = std::fs::read_to_string(socket.with_file_name("verdicts")).unwrap().into();
        Self { scene, told, child }
    }

    pub(crate) fn told(&self, key: &str) -> &str {
        self.told[key].as_str().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself, which a case will have noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Rows by transport, in the order in which they came; cells by case.
#[derive(Default)]
struct Table {
    cases: Vec<String>,
    rows: Vec<(String, BTreeMap<String, String>)>,
    failures: Vec<String>,
}

impl Table {
    fn add(&mut self, transport: &str, case: &str, result: &str) {
        if !self.cases.iter().any(|known| known == case) {
            self.cases.push(case.to_owned());
        }
        let at = self.rows.iter().position(|(name, _)| name == transport).unwrap_or_else(|| {
            self.rows.push((transport.to_owned(), BTreeMap::new()));
            self.rows.len() - 1
        });
        self.rows[at].1.insert(case.to_owned(), result.to_owned());
    }

    fn drawn(&self) -> String {
        let name = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = format!("{:name$}  {}\n", "", self.cases.join("  "));
        for (transport, cells) in &self.rows {
            let cells = self.cases.iter().map(|case| {
                let cell = cells.get(case).map_or("MISSING", String::as_str);
                format!("{cell:width$}", width = case.chars().count())
            });
            text.push_str(&format!("{transport:name$}  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
        }
        text
    }

    /// Every cell that is not as it should be, a missing one included.
    fn wrong(&self) -> Vec<String> {
        let all =
            self.rows.iter().flat_map(|(row, cells)| self.cases.iter().map(move |case| (row, case, cells.get(case))));
        let is_wrong = |cell: Option<&String>| !matches!(cell.map(String::as_str), Some("ok" | "–"));
        all.filter(|(.., cell)| is_wrong(*cell)).map(|(row, case, _)| format!("{row}: {case}")).collect()
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "the table is what the test is for, and what was left out has to be said")]
fn all_transports_behave_alike() {
    let mut table = Table::default();
    match official() {
        Ok(place) => run_official(&place, &mut table),
        Err(missing) => {
            skip(format!("the official clients: {missing}"));
            table.cases = conformance_rust::CASES.map(str::to_owned).to_vec();
        }
    }
    for case in conformance_rust::CASES {
        assert!(table.cases.iter().any(|known| known == case), "{case} has another name elsewhere");
    }
    for transport in ["Rust TCP", "Rust socket"] {
        let served = Served::start();
        for (case, result) in conformance_rust::run(&served, transport, &table.cases) {
            table.add(transport, &case, result);
        }
    }
    eprintln!("{}", table.drawn());
    assert!(table.wrong().is_empty(), "{:#?}\n{}", table.wrong(), table.failures.join("\n"));
}

fn run_official(place: &Place, table: &mut Table) {
    let names: Vec<String> = serde_json::from_slice(&place.node(&["--names"], b"").stdout).unwrap();
    let served: Vec<Served> = names.iter().map(|_| Served::start()).collect();
    let servers: Vec<&Value> = served.iter().map(|served| &served.told).collect();
    let output = place.node(&[], json!({ "servers": servers }).to_string().as_bytes());
    let cells: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // They ran side by side, so they are put in order first.
    for name in &names {
        for cell in cells.iter().filter(|cell| cell["transport"] == name.as_str()) {
            let (case, result) = (cell["case"].as_str().unwrap(), cell["result"].as_str().unwrap());
            table.add(name, case, result);
            if let Some(why) = cell["why"].as_str() {
                table.failures.push(format!("{name}: {case}: {why}"));
            }
        }
    }
    assert_eq!(table.rows.len(), names.len(), "{output:?}");
}

/// A throw-away folder with the cases, the clients, and what was generated from the protocol.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    fn node(&self, arguments: &[&str], input: &[u8]) -> Output {
        self.run("run.mjs", arguments, input)
    }

    /// Runs one of the scripts.
    pub(crate) fn run(&self, script: &str, arguments: &[&str], input: &[u8]) -> Output {
        let arguments = [&[script], arguments].concat();
        let output = run_with(self.0.path(), "node", &arguments, &[], input);
        assert!(output.status.success(), "{output:?}");
        output
    }
}

/// The official clients, ready to be run; or why they cannot be.
pub(crate) fn official() -> Result<Place, String> {
    let ours = programs::root().join("crates/sayso/tests/conformance");
    let version =
        Command::new("node").arg("--version").output().map_err(|error| format!("node does not run: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < 20) {
        return Err(format!("node is {version:?}, and they need 20 or newer"));
    }
    let installed = install(&ours)?;
    let place = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&ours).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.path().join(entry.file_name())).unwrap();
    }
    std::os::unix::fs::symlink(installed.join("node_modules"), place.path().join("node_modules")).unwrap();
    let protocol = programs::root().join("proto");
    let arguments = ["generate", protocol.to_str().unwrap()];
    let generated = run_with(place.path(), "node_modules/.bin/buf", &arguments, &[], b"");
    assert!(generated.status.success(), "{generated:?}");
    Ok(Place(place))
}

/// Returns the folder of the packages, and installs them with npm if needed.
fn install(ours: &Path) -> Result<PathBuf, String> {
    let lock = std::fs::read(ours.join("package-lock.json")).unwrap();
    let home = std::env::var_os("HOME").ok_or("HOME is not set, so there is nowhere to keep packages")?;
    let name = format!("conformance-{}", ContentHash::of(&lock).short());
    let directory = Path::new(&home).join(".cache/sayso").join(name);
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(&directory).map_err(failed)?;
    // One at a time, should several of us be run at once.
    let turn = File::create(directory.join(".lock")).map_err(failed)?;
    turn.lock().map_err(failed)?;
    let done = directory.join(".installed");
    if done.exists() {
        return Ok(directory);
    }
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(ours.join(file), directory.join(file)).map_err(failed)?;
    }
    let output = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"])
        .current_dir(&directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm does not run: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm cannot install them: {}", String::from_utf8_lossy(&output.stderr)));
    }
    File::create(done).map_err(failed)?;
    Ok(directory)
}
