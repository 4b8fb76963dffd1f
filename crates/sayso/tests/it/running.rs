//! `sayso run` with agents that are scripts: what they leave behind, and several at once.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sayso_api::client::{PreviewDetail, PreviewOf, RetryBudget};
use sayso_review::{ChangeRecord, ChangeStatus};
use sayso_testkit::programs::run_with;
use serde_json::json;

use crate::Scene;
use crate::served::{LONG, Served};

const SAYSO: &str = env!("CARGO_BIN_EXE_sayso");

/// An environment without anything that we put there.
const CLEAN: &str = "env -i PATH=/usr/local/bin:/usr/bin:/bin";

/// Ends a script whose test is over and has taken its directory away.
const STAYS: &str = "{ [ -n \"$(ls)\" ] || exit 1; }";

/// A hook that is called when a session starts, as a command.
const HOOK: &str = r#"printf '{"session_id":"%s","cwd":"%s","hook_event_name":"SessionStart","source":"startup"}' "$3" "$PWD" | SAYSO hook claude"#;

/// Writes an agent that does this.
fn agent(scene: &Scene, script: &str) -> String {
    let folder = scene.state_path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("claude");
    std::fs::write(&path, format!("#!/bin/sh\n{}\n", script.replace("SAYSO ", &format!("{SAYSO} ")))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Waits for an expected file.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LONG, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn agent_without_hook_call_fails() {
    let scene = Scene::new(&[]);
    let said = |script: &str| scene.transcript(&["run", "--", &agent(&scene, script), "one"]);
    let silent = said("exit 0");
    assert!(silent.contains("warning: Claude Code called no hook") && silent.ends_with("--- exit 3\n"), "{silent}");
    let failed = said("exit 7");
    assert!(failed.contains("called no hook") && failed.ends_with("--- exit 7\n"), "{failed}");
    let hooked = said(HOOK);
    assert!(!hooked.contains("called no hook") && hooked.ends_with("--- exit 0\n"), "{hooked}");
    // A hook of an earlier run is none of this one.
    let silent = said("exit 0");
    assert!(silent.contains("called no hook") && silent.ends_with("--- exit 3\n"), "{silent}");
}

/// A served engine with a pending change.
struct Waiting {
    scene: Scene,
    served: Served,
    runtime: tokio::runtime::Runtime,
}

impl Waiting {
    fn new() -> Self {
        let scene = Scene::new(&[]);
        let served = Served::start(&scene, &[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { scene, served, runtime }
    }

    /// A pending change, and a command that approves it and saves the response.
    fn propose(&self) -> (ChangeRecord, String) {
        let client = self.served.client(RetryBudget::Limited(LONG));
        let record = self.runtime.block_on(crate::crash_restart::propose(&client, 0)).record;
        let verdict = json!({ "previewHash": record.preview.to_string(), "answer": { "approve": {} } });
        let body = json!({ "change": record.change.to_string(), "verdict": verdict });
        self.scene.write("approval.json", body.to_string().as_bytes());
        // Over TCP with a login, which everybody reaches: it is the marks that count.
        let (login, _) = self.scene.json(&["login", "--json"]);
        let (url, login) = (self.served.text("url"), login["login"].as_str().unwrap());
        let approve = format!(
            "curl -sS -m 60 -H content-type:\\ application/json -H authorization:\\ Bearer\\ {login} -d @approval.json \
             {url}/sayso.v1.ReviewService/Decide > said.part 2>&1; mv said.part said"
        );
        (record, approve)
    }

    fn status(&self, record: &ChangeRecord) -> ChangeStatus {
        let client = self.served.client(RetryBudget::Limited(LONG));
        let stands = client.get_change(record.change, PreviewDetail::Omitted, PreviewOf::Proposed);
        self.runtime.block_on(stands).unwrap().record.status
    }

    fn said(&self) -> String {
        let said = until("an answer", || std::fs::read_to_string(self.scene.path("said")).ok());
        std::fs::remove_file(self.scene.path("said")).unwrap();
        said
    }
}

/// It has neither an ancestor that is an agent, nor a mark: what is known of it is what `sayso run` noted when it ended.
#[test]
fn process_left_by_agent_cannot_decide() {
    let waiting = Waiting::new();
    let (record, approve) = waiting.propose();
    // Waits until it is told to, in a session of its own.
    let daemon = format!(
        "{CLEAN} setsid sh -c 'until [ -e go ]; do {STAYS} && sleep 0.02; done; {approve}' </dev/null >/dev/null 2>&1 &\nexit 0"
    );
    let told = waiting.scene.transcript(&["run", "--", &agent(&waiting.scene, &daemon)]);
    assert!(told.ends_with("--- exit 3\n"), "{told}");
    waiting.scene.write("go", b"");
    let said = waiting.said();
    assert!(said.contains("agent cannot decide"), "{said}");
    assert_eq!(waiting.status(&record), ChangeStatus::Pending);
    // The same command outside an agent may.
    let status = Command::new(agent(&waiting.scene, &daemon)).current_dir(waiting.scene.directory.path()).status();
    assert!(status.unwrap().success());
    let said = waiting.said();
    assert_eq!(waiting.status(&record), ChangeStatus::Applied, "{said}");
}

/// An agent that kills its guardian ends with it.
#[test]
fn agent_with_killed_guardian_cannot_decide() {
    let waiting = Waiting::new();
    let (record, approve) = waiting.propose();
    let noted = r#"n=0; until grep -q "^$PPID-" "$XDG_STATE_HOME"/sayso/agents/* || [ $n = 999 ]; do n=$((n+1)); sleep 0.01; done"#;
    let gone = "until [ ! -d /proc/$RUN ] || grep -q ' (sayso) Z' /proc/$RUN/stat; do sleep 0.01; done";
    let script = format!("{noted}\necho $$ > pid\nRUN=$PPID\nkill -9 $RUN\n{gone}\nexec {CLEAN} sh -c '{approve}'");
    let output = waiting.scene.run(&["run", "--", &agent(&waiting.scene, &script)], b"");
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    let stat = format!("/proc/{}/stat", waiting.scene.read("pid").trim());
    let is_over = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    until("the agent is over", || is_over().then_some(()));
    assert_eq!(waiting.status(&record), ChangeStatus::Pending);
}

/// The token identifies a person.
#[test]
fn serve_under_the_gate_prints_no_token() {
    let scene = Scene::new(&[]);
    let served = Served::start(&scene, &[]);
    let script = "for form in --json '--port 0'; do SAYSO serve $form > \"said$form\" 2>&1; echo $? >> codes; done";
    scene.transcript(&["run", "--", &agent(&scene, script)]);
    assert_eq!(scene.read("codes"), "3\n3\n");
    for said in ["said--json", "said--port 0"] {
        let said = scene.read(said);
        assert!(said.contains("agent cannot decide") && !said.contains(served.text("token")), "{said}");
    }
}

fn begin(scene: &Scene, agent: &str, name: &str) -> Child {
    let child = Command::new(SAYSO)
        .args(["run", "--", agent, name])
        .current_dir(scene.directory.path())
        .env_clear()
        .envs(scene.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child = child.unwrap();
    until("the agent", || scene.path(&format!("{name}.up")).exists().then_some(()));
    child
}

/// Lists the files of a folder and its subfolders.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// Hooks are for one run and come by its command line: no file of the user is written, even if the run is killed.
#[test]
fn agent_settings_are_unchanged_after_kill() {
    let scene = Scene::new(&[(".claude/settings.json", b"{\"model\": \"m\"}"), (".claude/settings.local.json", b"{}")]);
    let home = tempfile::tempdir().unwrap();
    for file in [".claude/settings.json", ".claude.json", ".codex/config.toml"] {
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"{}").unwrap();
    }
    let script = format!("{HOOK}; echo up >&2; cat > /dev/null");
    let agent = agent(&scene, &script);
    let settings = || (contents(home.path()), contents(&scene.path(".claude")));
    let before = settings();
    for signal in ["-KILL", "-TERM", ""] {
        let mut run = Command::new(SAYSO)
            .args(["run", "--", &agent, "one"])
            .current_dir(scene.directory.path())
            .env_clear()
            .envs(scene.environment())
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "up"), "{signal}");
        assert_eq!(settings(), before, "while it runs");
        if !signal.is_empty() {
            assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success());
        }
        // The agent ends with its input.
        drop(run.stdin.take());
        run.wait().unwrap();
        assert_eq!(settings(), before, "after {signal}");
    }
}

/// The login that a person's environment may have is not for an agent.
#[test]
fn agent_does_not_inherit_token() {
    let scene = Scene::new(&[]);
    let agent = agent(&scene, "env > environment");
    let environment = scene.environment();
    let mut environment = environment.each_ref().map(|(name, value)| (*name, value.as_str())).to_vec();
    environment.push(("SAYSO_AUTH_TOKEN", "0123456789abcdef-mine"));
    environment.push(("KEPT", "yes"));
    run_with(scene.directory.path(), SAYSO, &["run", "--", &agent], &environment, b"");
    let found = scene.read("environment");
    assert!(found.contains("KEPT=yes") && !found.contains("0123456789abcdef-mine"), "{found}");
}

/// Says who is who: whether each session of this workspace goes on.
fn sessions(served: &Served) -> Vec<(String, bool)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sessions = runtime.block_on(served.client(RetryBudget::Limited(LONG)).list_sessions(10)).unwrap();
    let mut sessions: Vec<_> = sessions.into_iter().map(|session| (session.session, session.active)).collect();
    sessions.sort();
    sessions
}

/// Two runs of one agent, the first of which began before the other and ends before it.
#[test]
fn each_run_ends_its_own_sessions() {
    let scene = Scene::new(&[]);
    let served = Served::start(&scene, &[]);
    let script = format!("{HOOK}; touch \"$3.up\"; until [ -e \"$3.go\" ]; do {STAYS} && sleep 0.02; done");
    let agent = agent(&scene, &script);
    let session = |name: &str, active| (name.to_owned(), active);
    let mut first = begin(&scene, &agent, "first");
    let mut second = begin(&scene, &agent, "second");
    assert_eq!(sessions(&served), [session("first", true), session("second", true)]);
    scene.write("first.go", b"");
    assert_eq!(first.wait().unwrap().code(), Some(0), "it ended its own session");
    assert_eq!(sessions(&served), [session("first", false), session("second", true)]);
    // Another engine knows whose they are.
    let mut third = begin(&scene, &agent, "third");
    served.kill();
    let served = Served::start(&scene, &[]);
    scene.write("second.go", b"");
    assert_eq!(second.wait().unwrap().code(), Some(0));
    assert_eq!(sessions(&served), [session("first", false), session("second", false), session("third", true)]);
    scene.write("third.go", b"");
    assert_eq!(third.wait().unwrap().code(), Some(0));
    assert!(sessions(&served).iter().all(|(_, active)| !active));
}

/// The sessions of another run do not count for this one.
#[test]
fn hook_check_is_per_run() {
    let scene = Scene::new(&[]);
    let talks = format!(
        "if [ $3 = loud ]; then {HOOK}; fi; touch \"$3.up\"; until [ -e \"$3.go\" ]; do {STAYS} && sleep 0.02; done"
    );
    let agent = agent(&scene, &talks);
    let mut silent = begin(&scene, &agent, "silent");
    let mut loud = begin(&scene, &agent, "loud");
    scene.write("silent.go", b"");
    assert_eq!(silent.wait().unwrap().code(), Some(3));
    scene.write("loud.go", b"");
    assert_eq!(loud.wait().unwrap().code(), Some(0));
}

/// The engine was in the first one's process, and went with it.
#[test]
fn ended_run_leaves_engine_to_other_run() {
    let scene = Scene::new(&[]);
    let script = format!("touch \"$3.up\"; until [ -e \"$3.go\" ]; do {STAYS} && sleep 0.02; done\n{HOOK}");
    let agent = agent(&scene, &script);
    let mut first = begin(&scene, &agent, "first");
    let mut second = begin(&scene, &agent, "second");
    let workspaces = scene.state_path().join("sayso/workspaces");
    let workspaces: Vec<PathBuf> =
        std::fs::read_dir(workspaces).unwrap().map(|folder| folder.unwrap().path()).collect();
    let [workspace] = &workspaces[..] else { panic!("{workspaces:?}") };
    scene.write("first.go", b"");
    assert_eq!(first.wait().unwrap().code(), Some(0), "its hook was heard");
    // A hook starts no engine, so that the test does.
    until("an engine", || UnixStream::connect(workspace.join("engine/socket")).ok());
    scene.write("second.go", b"");
    assert_eq!(second.wait().unwrap().code(), Some(0), "its hook was heard");
}
