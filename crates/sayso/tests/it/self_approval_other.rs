//! Other ways to the same end: decisions that are no verdicts, other processes, the engine itself, and what outlives its run.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sayso_review::ChangeStatus;

use crate::Scene;
use crate::self_approval::{ENTRIES, Entry, Ground, SAYSO};
use crate::served::LONG;

/// Commands that do what a verdict would have to allow. Under the gate each says that an agent cannot decide.
const DECISIONS: [&str; 22] = [
    "undo",
    "redo",
    "undo 1 --merge",
    "trust",
    "trust --revoke",
    "trust --rules",
    "gc --older-than 0",
    "snapshot restore 1",
    "branch some new task",
    "request mode normal",
    "request mode pause-every",
    "request mode pause-next",
    "request resume 1",
    "request cancel 1",
    "request replay 1",
    "request overrides remove --scope workspace",
    "login",
    "login --link",
    "serve --port 0",
    "env claude",
    "propose change.json --approve all",
    "exec --approve 'touch mine'",
];

#[test]
fn decisions_under_the_gate_are_all_refused() {
    let ground = Ground::new();
    ground.scene.write("change.json", br#"[{"operation":"write","path":"mine","new_content":"x\n"}]"#);
    ground.scene.write("sayso.toml", b"[[rule]]\nthen = \"allow\"\nwrite = [\"**\"]\n");
    for command in DECISIONS {
        let record = ground.propose();
        let refused = |said: &str| said.contains("agent cannot decide") || said.contains("accepts no verdicts");
        for entry in ENTRIES {
            ground.run(entry, &ground.script(&format!("timeout 60 @SAYSO {command} > said 2>&1"), &record));
            let said = ground.scene.read("said");
            assert!(refused(&said), "`{command}` by {entry:?}: {said}");
        }
        assert_eq!(ground.status(&record), ChangeStatus::Pending, "`{command}`");
        // Its own server would not end.
        if !command.starts_with("serve") {
            let output = ground.run_unmarked(&ground.script(&format!("@SAYSO {command} 2>&1"), &record));
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(!refused(&said), "`{command}` unmarked: {said}");
            let _ = std::fs::remove_file(ground.scene.path("mine"));
        }
    }
}

#[test]
fn unmarked_run_is_for_persons_and_recorded() {
    let ground = Ground::new();
    let record = ground.propose();
    for entry in ENTRIES {
        ground.run(entry, &ground.script("@SAYSO exec --approve --unmarked 'touch mine' > said 2>&1", &record));
        assert!(ground.scene.read("said").contains("runs under the gate itself"), "{entry:?}");
        assert!(!ground.scene.path("mine").exists());
    }
    let script = "grep -E 'NoNewPrivs|Seccomp_filters' /proc/self/status";
    let marks = |options: &[&str]| {
        let output = ground.scene.run(&[&["exec", "--approve"], options, &[script]].concat(), b"");
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(marks(&[]), "NoNewPrivs: 1 Seccomp_filters: 1");
    assert_eq!(marks(&["--unmarked"]), "NoNewPrivs: 0 Seccomp_filters: 0");
    let (log, _) = ground.scene.json(&["log", "--json", "-n", "1"]);
    assert!(log.to_string().contains("runs unmarked"), "{log:#}");
}

#[test]
fn doctor_lists_the_marks_of_the_kernel() {
    let ground = Ground::new();
    let record = ground.propose();
    let outside = ground.scene.transcript(&["doctor"]);
    assert!(outside.contains("seccomp filters mark") && outside.contains("Landlock scopes"), "{outside}");
    assert!(!outside.contains("this process runs under the gate"), "{outside}");
    ground.run(Entry::Agent, &ground.script("@SAYSO doctor > said 2>&1", &record));
    let inside = ground.scene.read("said");
    assert!(inside.contains("this process runs under the gate"), "{inside}");
}

/// A program that has connected to the socket for verdicts, as a reviewer has.
fn reviewer(ground: &Ground) -> Child {
    let mut child = Command::new(SAYSO)
        .args(["review", "--follow"])
        .current_dir(ground.scene.directory.path())
        .env_clear()
        .envs(ground.scene.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It shows what waits once it is connected.
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    child
}

/// Attacks on processes outside. Each prints `GOT` where it succeeds.
const ON_PROCESSES: [(&str, &str); 7] = [
    (
        "ptrace of the engine",
        "timeout -s INT 2 strace -f -e trace=none -p @ENGINE -o /dev/null 2>&1 | grep -q 'not permitted' || echo GOT",
    ),
    (
        "ptrace of a reviewer",
        "timeout -s INT 2 strace -e trace=none -p REVIEWER -o /dev/null 2>&1 | grep -q 'not permitted' || echo GOT",
    ),
    ("memory of the engine", "(: 3<>/proc/@ENGINE/mem) 2>/dev/null && echo GOT"),
    ("memory of a reviewer", "(: 3<>/proc/REVIEWER/mem) 2>/dev/null && echo GOT"),
    ("handles of a reviewer", "for f in /proc/REVIEWER/fd/*; do readlink $f >/dev/null && echo GOT; done"),
    ("root of the engine", "ls /proc/@ENGINE/root/ >/dev/null 2>&1 && echo GOT"),
    (
        "copied handles of a reviewer",
        "perl -e '$p = syscall(434, REVIEWER, 0); for (0..30) { print \"GOT\\n\" if syscall(438, $p, $_, 0) >= 0 }'",
    ),
];

#[test]
fn processes_outside_are_out_of_reach() {
    let ground = Ground::new();
    let record = ground.propose();
    let mut reviewer = reviewer(&ground);
    let id = reviewer.id().to_string();
    for (name, script) in ON_PROCESSES {
        let script = ground.script(&format!("{{ {script}; }} > got 2>&1; true"), &record).replace("REVIEWER", &id);
        for entry in ENTRIES {
            let output = ground.run(entry, &script);
            let got = ground.scene.read("got");
            assert!(!got.contains("GOT"), "{name} by {entry:?}: {got} {output:?}");
        }
        ground.run_unmarked(&script);
        assert!(ground.scene.read("got").contains("GOT"), "{name}, unmarked: {}", ground.scene.read("got"));
    }
    assert_eq!(ground.status(&record), ChangeStatus::Pending);
    reviewer.kill().unwrap();
    reviewer.wait().unwrap();
}

#[test]
fn agent_cannot_signal_engine_or_supervisor() {
    let ground = Ground::new();
    let record = ground.propose();
    let supervisor = "$(ps -o ppid= -p $PPID | tr -d ' ')";
    let script = format!("kill -9 @ENGINE; echo $? > said; kill -9 {supervisor}; echo $? >> said");
    ground.run(Entry::Agent, &ground.script(&script, &record));
    assert_eq!(ground.scene.read("said"), "1\n1\n");
    assert_eq!(ground.status(&record), ChangeStatus::Pending);
}

/// A command may kill the engine, as it may kill a server of its own. What it starts instead takes no verdicts.
#[test]
fn replaced_engine_decides_nothing() {
    let ground = Ground::new();
    let record = ground.propose();
    let script = "kill -9 @ENGINE; while kill -0 @ENGINE 2>/dev/null && ! grep -q ' Z ' /proc/@ENGINE/stat; do sleep 0.05; done; \
                  (timeout 20 @SAYSO serve --port 0 > served 2>&1 &); sleep 1; \
                  @SAYSO review @CHANGE --approve all > said 2>&1; \
                  @SAYSO propose change.json --approve all >> said 2>&1; cat said served";
    ground.scene.write("change.json", br#"[{"operation":"write","path":"mine","new_content":"x\n"}]"#);
    ground.run(Entry::Approved, &ground.script(script, &record));
    let said = ground.scene.read("said");
    assert_eq!(said.matches("agent cannot decide").count(), 2, "{said}");
    assert!(ground.scene.read("served").contains("agent cannot decide"));
    assert!(!ground.scene.path("mine").exists());
    let (pending, _) = ground.scene.json(&["show", &record.change.to_string(), "--json"]);
    assert!(pending.to_string().contains("pending"), "{pending:#}");
    // A person still decides, with an engine of their own.
    let said = ground.scene.transcript(&["review", &record.change.to_string(), "--approve", "all"]);
    assert!(said.ends_with("--- exit 0\n"), "{said}");
}

/// An agent that listens itself, under the name that the file gives, does not get the reviewer's verdict.
#[test]
fn forged_verdict_socket_gets_no_verdict() {
    let ground = Ground::new();
    let record = ground.propose();
    let forge = r#"printf forged-@ENGINE > "$(dirname @SOCKET)/verdicts"
      perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("\0forged-@ENGINE")) or die; listen(S, 5);
        open F, ">listens"; close F; $SIG{ALRM} = sub { exit }; alarm 20;
        while (accept(C, S)) { sysread C, my $b, 4096 and do { open G, ">got"; print G $b; close G } }' & "#;
    let run = Command::new(SAYSO)
        .args(["exec", "--approve", &format!("{}\nwait", ground.script(forge, &record))])
        .current_dir(ground.scene.directory.path())
        .env_clear()
        .envs(ground.scene.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut run = run.unwrap();
    until("the agent listens", || ground.scene.path("listens").exists());
    let said = ground.scene.transcript(&["review", &record.change.to_string(), "--approve", "all"]);
    assert!(said.contains("accepts no verdicts"), "{said}");
    assert!(!ground.scene.path("got").exists(), "the verdict went to the agent");
    run.kill().unwrap();
    run.wait().unwrap();
}

/// Without an engine, a proposal under the gate starts its own, which accepts no verdict and hands over to a person's.
#[test]
fn engine_under_the_gate_lets_nothing_through() {
    let scene = Scene::new(&[]);
    scene
        .configure("[[rule]]\nthen = \"allow\"\nwrite = [\"**\"]\n[[rule]]\nthen = \"allow\"\nrun = [\"./allowed\"]\n");
    scene.write("change.json", br#"[{"operation":"write","path":"mine","new_content":"x\n"}]"#);
    // It outlives its command, so that no engine is left but its own.
    let waits = "until [ -e go ]; do sleep 0.02; done";
    let script = format!("(setsid sh -c '{waits}; exec {SAYSO} propose change.json' > said 2>&1 &)");
    let output = scene.run(&["exec", "--approve", &script], b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("still run"), "{output:?}");
    scene.write("go", b"");
    until("it waits", || std::fs::read_to_string(scene.path("said")).is_ok_and(|said| said.contains("waits")));
    assert!(!scene.path("mine").exists(), "the rule allows it, and the engine was an agent's");
    let said = scene.transcript(&["review", "2", "--approve", "all"]);
    assert!(said.ends_with("--- exit 0\n"), "{said}");
    until("it happened", || scene.path("mine").exists());
}

#[test]
fn rewritten_configuration_lets_nothing_through() {
    let ground = Ground::new();
    ground.scene.write("change.json", br#"[{"operation":"write","path":"mine","new_content":"x\n"}]"#);
    let record = ground.propose();
    let script = "printf '[[rule]]\\nthen = \"allow\"\\nwrite = [\"**\"]\\nrun = [\"**\"]\\n' > @STATE/config/sayso/config.toml; \
                  printf '[[rule]]\\nthen = \"allow\"\\nwrite = [\"**\"]\\n' > sayso.toml; @SAYSO trust > said 2>&1; \
                  (timeout 3 @SAYSO propose change.json >> said 2>&1); true";
    for entry in ENTRIES {
        ground.run(entry, &ground.script(script, &record));
        let said = ground.scene.read("said");
        assert!(said.contains("agent cannot decide") && said.contains("waits"), "{entry:?}: {said}");
        assert!(!ground.scene.path("mine").exists(), "{entry:?}");
    }
    assert_eq!(ground.status(&record), ChangeStatus::Pending);
}

/// A surviving process cannot decide after its command, supervisor and registration are gone.
#[test]
fn survivor_of_its_command_decides_nothing() {
    let ground = Ground::new();
    for (name, ending) in [("ends", "exit 0"), ("kills its supervisor", "kill -9 $PPID")] {
        let record = ground.propose();
        let script = format!(
            "(setsid env -i PATH=$PATH XDG_STATE_HOME=@STATE sh -c 'until [ -e go ]; do sleep 0.02; done; rm -rf @STATE/sayso/agents; \
             @SAYSO review @CHANGE --approve all > said.part 2>&1; mv said.part said' >/dev/null 2>&1 &); {ending}"
        );
        ground.run(Entry::Approved, &ground.script(&script, &record));
        ground.scene.write("go", b"");
        until("it tried", || ground.scene.path("said").exists());
        let said = ground.scene.read("said");
        assert!(said.contains("agent cannot decide"), "{name}: {said}");
        assert_eq!(ground.status(&record), ChangeStatus::Pending, "{name}");
        for file in ["go", "said"] {
            std::fs::remove_file(ground.scene.path(file)).unwrap();
        }
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "{what}: it did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_over(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// A process left by a command is named, and its writes belong to the command's change.
#[test]
fn process_left_behind_is_named_with_its_writes() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let late = r#"select undef, undef, undef, 0.02 until -e "go"; open F, ">late.txt"; print F "late\n""#;
    let script = &format!("(setsid perl -e '{late}' >/dev/null 2>&1 &); echo two > a.txt");
    let said = scene.transcript(&["exec", "--approve", script]);
    assert!(said.contains("1 process still runs, pid ") && said.contains("Change 1 stays open"), "{said}");
    scene.write("go", b"");
    until("it is settled", || scene.json(&["log", "--json"]).0[0]["status"] == "applied");
    let shown = scene.transcript(&["show", "1"]);
    assert!(shown.contains("late.txt") && shown.contains("a.txt"), "{shown}");
    assert!(scene.run(&["undo", "1"], b"").status.success());
    assert_eq!(scene.read("a.txt"), "one\n");
    assert!(!scene.path("late.txt").exists());
}

/// A killed `sayso run` ends its agent's processes, except `nohup` processes.
#[test]
fn killed_run_ends_all_but_nohup_processes() {
    let ground = Ground::new();
    let record = ground.propose();
    let stays = "until [ -e go ]; do sleep 0.05; done";
    let script = format!(
        "(setsid sh -c 'echo $$ > detached; {stays}' >/dev/null 2>&1 &)\n(nohup sh -c 'echo $$ > kept; {stays}; \
         @SAYSO review @CHANGE --approve all > said.part 2>&1; mv said.part said' >/dev/null 2>&1 &)\n\
         until [ -s detached ] && [ -s kept ]; do sleep 0.02; done; echo $PPID > guardian; {stays}"
    );
    let folder = ground.scene.state_path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = folder.join("claude");
    let script = ground.script(&script, &record);
    std::fs::write(&agent, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut run = Command::new(SAYSO)
        .args(["run", "--", agent.to_str().unwrap()])
        .current_dir(ground.scene.directory.path())
        .env_clear()
        .envs(ground.scene.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("all run", || std::fs::read_to_string(ground.scene.path("guardian")).is_ok_and(|id| id.ends_with('\n')));
    let process = |file: &str| ground.scene.read(file).trim().to_owned();
    run.kill().unwrap();
    run.wait().unwrap();
    until("the guardian has ended", || is_over(&process("guardian")));
    assert!(is_over(&process("detached")));
    assert!(!is_over(&process("kept")));
    ground.scene.write("go", b"");
    until("it tried", || ground.scene.path("said").exists());
    assert!(ground.scene.read("said").contains("agent cannot decide"), "{}", ground.scene.read("said"));
    assert_eq!(ground.status(&record), ChangeStatus::Pending);
}
