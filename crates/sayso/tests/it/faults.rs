//! Missing, damaged or deleted files and limits while sayso runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sayso_testkit::skip::skip;
use serde_json::json;

use crate::Scene;
use crate::concurrent_clients::Terminal;
use crate::hooks;
use crate::served::Served;

/// Longer than anything here takes, on a busy machine, too.
const LONG: Duration = Duration::from_mins(2);

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let change = json!([{ "operation": "update", "path": "a.txt", "new_content": "two\n" }]);
    scene.write("a.json", change.to_string().as_bytes());
    scene
}

fn spawn(scene: &Scene, arguments: &[&str], environment: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(arguments).current_dir(scene.path(".")).env_clear().envs(scene.environment());
    command.envs(environment.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The folder of the scene's only workspace.
fn records(scene: &Scene) -> PathBuf {
    let folders = std::fs::read_dir(scene.state_path().join("sayso/workspaces")).unwrap();
    folders.map(|folder| folder.unwrap().path()).next().unwrap()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn engine_with_deleted_records_applies_nothing() {
    let scene = scene();
    let mut asks = Terminal::start(&scene, &["propose", "a.json"]);
    asks.until("hunk 1");
    std::fs::remove_dir_all(records(&scene)).unwrap();
    asks.types("y\n");
    asks.until("was removed or replaced while it was in use");
    assert_ne!(asks.ended(), Some(0));
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn server_with_deleted_records_ends_with_error() {
    let scene = scene();
    let served = Served::start(&scene, &[]);
    let folder = records(&scene);
    std::fs::rename(&folder, folder.with_extension("gone")).unwrap();
    let (status, log) = served.ended_somehow();
    assert!(!status.success());
    assert!(log.contains("a file of the journal was removed or replaced"), "{log}");
    // The next one starts with what is there now.
    assert!(scene.transcript(&["propose", "a.json", "--approve", "all"]).contains("Applied as change 1"));
}

#[test]
fn broken_configuration_allows_log_and_undo() {
    let scene = scene();
    scene.transcript(&["propose", "a.json", "--approve", "all"]);
    for break_it in [
        |scene: &Scene| scene.configure("rule = 7\n"),
        |scene: &Scene| {
            scene.configure("");
            scene.write("sayso.toml", b"[[rule]]\nthen = \"perhaps\"\n");
        },
    ] {
        break_it(&scene);
        let sick = scene.transcript(&["doctor"]);
        assert!(sick.contains("problem") && sick.contains("cannot read") && sick.contains("exit 1"), "{sick}");
        for arguments in [&["log"][..], &["show", "1"], &["status"], &["undo"], &["redo"]] {
            let said = scene.transcript(arguments);
            assert!(said.contains("exit 0") && said.contains("cannot read"), "{said}");
        }
        assert!(scene.transcript(&["status", "--short"]).contains("configuration not understood"));
        // What is judged by rules is not done without them.
        let refused = scene.transcript(&["exec", "--approve", "touch made"]);
        assert!(refused.contains("cannot read") && refused.contains("exit 2"), "{refused}");
        assert!(!scene.path("made").exists());
    }
}

#[test]
fn doctor_lists_agent_versions_and_remedies() {
    let scene = scene();
    scene.write("bin/claude", b"#!/bin/sh\necho '2.1.9 (Claude Code)'\n");
    scene.write("bin/codex", b"#!/bin/sh\necho 'codex-cli 0.150.0'\n");
    scene.write("bin/gemini", b"#!/bin/sh\nexit 1\n");
    for agent in ["claude", "codex", "gemini"] {
        let program = scene.path(&format!("bin/{agent}"));
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", scene.path("bin").display());
    let doctor = spawn(&scene, &["doctor"], &[("PATH", &path), ("HOME", "/nonexistent")]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).replace(scene.path("").to_str().unwrap(), "[DIR]/");
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("2.1.9 (Claude Code) at [DIR]/bin/claude"), "{said}");
    assert!(said.contains("codex-cli 0.150.0") && said.contains("it does not trust sayso's hooks"), "{said}");
    assert!(said.contains("does not print its version: it prints no number"), "{said}");
    assert!(said.contains("opencode is not installed"), "{said}");
    assert!(said.contains("of records of") && said.contains("nothing runs whose sayso is gone"), "{said}");
}

#[test]
fn agent_ends_with_its_supervisor() {
    let scene = Scene::new(&[]);
    let agent = scene.path("bin/opencode");
    scene
        .write("bin/opencode", b"#!/bin/sh\ntrap '' TERM HUP INT\necho $$ > pid.new\nmv pid.new pid\nexec sleep 600\n");
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", scene.path("bin").display());
    let mut run = spawn(&scene, &["run", "--", "opencode"], &[("PATH", &path)]);
    until("the agent runs", || scene.path("pid").exists());
    let agent = format!("/proc/{}", scene.read("pid").trim());
    assert!(Path::new(&agent).exists());
    run.kill().unwrap();
    run.wait().unwrap();
    // The zombie stays until its new parent reaps it.
    let over = |path: &str| std::fs::read_to_string(format!("{path}/stat")).map_or(true, |stat| stat.contains(") Z "));
    until("the agent ends", || over(&agent));
}

#[test]
fn tool_output_is_escaped_on_terminal() {
    let scene = Scene::new(&[("a", "one\n".as_bytes()), ("b", "t\u{9b}31m\u{202E}w\u{2028}o\n".as_bytes())]);
    let arguments = r#"{"path_a":"a","path_b":"b"}"#;
    let output = scene.run(&["tool", "Diff", "--grant", "Diff", "--read", "**", "--args", arguments], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(['\u{9b}', '\u{202E}', '\u{2028}']), "{text:?}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value.to_string().contains("\u{202E}"), "{value}");
}

#[test]
fn gc_empties_write_ahead_log() {
    let scene = scene();
    let _served = Served::start(&scene, &[]);
    scene.transcript(&["propose", "a.json", "--approve", "all"]);
    let log = records(&scene).join("journal.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    assert!(scene.transcript(&["gc"]).contains("exit 0"));
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
}

#[test]
fn log_mentions_older_changes() {
    let scene = Scene::new(&[]);
    for _ in 0..3 {
        scene.transcript(&["exec", "--approve", "true"]);
    }
    assert!(scene.transcript(&["log", "-n", "2"]).contains("There are older ones: `sayso log -n 20` shows more."));
    assert!(!scene.transcript(&["log", "-n", "3"]).contains("older"));
}

#[test]
fn proposal_without_terminal_waits_for_reviewer() {
    let scene = scene();
    let mut proposes = spawn(&scene, &["propose", "a.json"], &[]);
    until("the change waits", || scene.json(&["status", "--json"]).0["pending"] == 1);
    assert!(scene.transcript(&["review", "1", "--approve", "all"]).contains("Applied as change 1"));
    assert_eq!(proposes.wait().unwrap().code(), Some(0));
    assert_eq!(scene.read("a.txt"), "two\n");
}

/// Runs a script with mounts of its own, which only root may make.
fn with_mounts(scene: &Scene, script: &str) -> Option<String> {
    let possible = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skip("mounting needs root");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-eu", "-c", script]).current_dir(scene.path(".")).env_clear();
    command.envs(scene.environment()).env("SAYSO", env!("CARGO_BIN_EXE_sayso")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    Some(said)
}

#[test]
fn read_only_records_are_readable() {
    let scene = scene();
    scene.transcript(&["propose", "a.json", "--approve", "all"]);
    let script = r#"
        mount --bind "$XDG_STATE_HOME" "$XDG_STATE_HOME"
        mount -o remount,bind,ro "$XDG_STATE_HOME"
        "$SAYSO" log
        "$SAYSO" show 1
    "#;
    let Some(said) = with_mounts(&scene, script) else { return };
    assert!(said.contains("1  applied") && said.contains("+ two"), "{said}");
    assert!(said.contains("nothing can be written to"), "{said}");
}

#[test]
fn nearly_full_disk_leaves_no_interrupted_change() {
    let scene = scene();
    // The disk of the records is filled up to fewer and fewer bytes, with a change each time.
    let script = r#"
        mount -t tmpfs -o size=6m none "$XDG_STATE_HOME"
        "$SAYSO" propose a.json --approve all > /dev/null 2>&1
        left=1500
        while [ "$left" -ge 0 ]; do
            printf 'one\n' > a.txt
            rm -f "$XDG_STATE_HOME/filler"
            free=$(df --output=avail -k "$XDG_STATE_HOME" | tail -1)
            head -c "$(( (free - left) * 1024 ))" /dev/zero > "$XDG_STATE_HOME/filler" || true
            code=0
            "$SAYSO" propose a.json --approve all > said 2>&1 || code=$?
            echo "left $left: exit $code, file $(cat a.txt)"
            left=$((left - 60))
        done
        rm -f "$XDG_STATE_HOME/filler"
        "$SAYSO" log -n 100
    "#;
    let Some(said) = with_mounts(&scene, script) else { return };
    let mut outcomes = std::collections::BTreeSet::new();
    for line in said.lines().filter(|line| line.starts_with("left ")) {
        let (_, outcome) = line.split_once(": ").unwrap();
        let applied = outcome.ends_with("file two");
        assert_eq!(applied, outcome.starts_with("exit 0,"), "{line}\n{said}");
        outcomes.insert(applied);
    }
    assert_eq!(outcomes.len(), 2, "the disk was both large and small enough: {said}");
    assert!(!said.contains("interrupted"), "{said}");
}

/// A library that makes a program believe in another time.
fn clock(scene: &Scene, seconds: i64) -> Option<String> {
    let source = format!(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t id, struct timespec *now) {{\n\
           long done = syscall(SYS_clock_gettime, id, now);\n\
           if (done == 0 && id == CLOCK_REALTIME) {{ now->tv_sec = {seconds}; }}\n\
           return done;\n}}\n"
    );
    scene.write("clock.c", source.as_bytes());
    let library = scene.path("clock.so").to_str().unwrap().to_owned();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &library, "clock.c"]).current_dir(scene.path("."));
    let compiled = compiler.output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        skip("there is no C compiler");
        return None;
    }
    Some(library)
}

#[test]
fn extreme_clock_causes_no_panic() {
    for (seconds, says) in [(-1_000_000_000, "before 1970"), (300_000_000_000, "after the year 9999")] {
        let scene = scene();
        scene.transcript(&["propose", "a.json", "--approve", "all"]);
        let Some(library) = clock(&scene, seconds) else { return };
        let preload = [("LD_PRELOAD", library.as_str())];
        let commands: [&[&str]; 8] = [
            &["propose", "a.json", "--approve", "all"],
            &["exec", "--approve", "true"],
            &["serve", "--port", "0"],
            &["log"],
            &["show", "1"],
            &["status"],
            &["undo", "1"],
            &["gc"],
        ];
        for arguments in commands {
            let output = spawn(&scene, arguments, &preload).wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains(says) && !errors.contains("panicked"), "{seconds} {arguments:?}: {errors}");
        }
        assert_eq!(scene.read("a.txt"), "two\n");
    }
}

#[test]
fn rules_loosened_by_hooked_command_need_confirmation() {
    let scene = scene();
    scene.configure("[[rule]]\nrun = \"make\"\nthen = \"allow\"\n");
    let served = Served::start(&scene, &[]);
    let command = |text: &str| hooks::call(scene.directory.path(), "Bash", &json!({ "command": text }));
    let journal = hooks::journal(&served);
    let allowed = hooks::answer(hooks::begin(&scene, &journal, &[], &command("make")));
    assert_eq!(hooks::decision(&allowed).0, "allow", "{allowed}");
    // The command runs in the agent, which was not started by sayso; its end is not reported yet.
    let config = scene.state_path().join("config/sayso/config.toml");
    let mut rules = std::fs::read_to_string(&config).unwrap();
    rules.push_str("[[rule]]\nrun = \"date\"\nthen = \"allow\"\n");
    std::fs::write(&config, rules).unwrap();
    let asked = hooks::answer(hooks::begin(&scene, &journal, &["--timeout", "1"], &command("date")));
    assert_eq!(hooks::decision(&asked).0, "deny", "{asked}");
    assert!(hooks::decision(&asked).1.contains("There was no decision"), "{asked}");
}

#[test]
fn rules_loosened_by_command_need_confirmation() {
    let scene = scene();
    scene.configure("");
    let config = scene.state_path().join("config/sayso/config.toml");
    // Named in the command itself, sayso's own file is not to be touched.
    let loosen = format!("printf '[[rule]]\\nrun = \"date\"\\nthen = \"allow\"\\n' >> {}\n", config.display());
    scene.write("loosen.sh", loosen.as_bytes());
    let ran = scene.transcript(&["exec", "--approve", "sh loosen.sh"]);
    assert!(ran.contains("exit 0"), "{ran}");
    // The command's own rule does not count: sayso asks, and no reviewer answers.
    let mut waits = Terminal::start(&scene, &["exec", "date"]);
    let said = waits.until("waits for a decision");
    assert!(said.contains("became milder while something ran under the gate"), "{said}");
    scene.transcript(&["review", "--deny", "no"]);
    waits.ended();
    assert!(scene.transcript(&["doctor"]).contains("sayso trust --rules"));
    let confirmed = scene.transcript(&["trust", "--rules"]);
    assert!(confirmed.contains("+then = \"allow\""), "{confirmed}");
    assert!(scene.transcript(&["exec", "date"]).contains("exit 0"));
    assert!(scene.transcript(&["trust", "--rules"]).contains("All rules count already."));
    // An edit without a running command counts at once, and so does a stricter rule.
    scene.configure("[[rule]]\nrun = \"true\"\nthen = \"allow\"\n");
    assert!(scene.transcript(&["exec", "true"]).contains("exit 0"));
    let stricter = format!("printf '[[rule]]\\nrun = \"true\"\\nthen = \"deny\"\\n' >> {}\n", config.display());
    scene.write("stricter.sh", stricter.as_bytes());
    scene.transcript(&["exec", "--approve", "sh stricter.sh"]);
    assert!(scene.transcript(&["exec", "true"]).contains("exit 3"));
}
