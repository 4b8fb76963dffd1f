//! Refusals, interrupts and reports.

use std::ffi::OsStr;
use std::time::Duration;

use sayso_runner::{Handle, Interrupt, Judge, Judgement, PreparedCommand, REFUSED, Target};
use sayso_shell::Program;

use crate::stage::{Recorder, Stage};

/// Refuses the commands of one name.
struct Against(&'static str);

impl Judge for Against {
    fn judge(&self, command: &PreparedCommand) -> Judgement {
        let is_named = command.argv.first().is_some_and(|name| name == self.0);
        if is_named { Judgement::Refuse { reason: "not today".to_owned() } } else { Judgement::Proceed }
    }
}

fn names(argvs: &[sayso_runner::RanCommand]) -> Vec<&OsStr> {
    argvs.iter().map(|ran| ran.argv[0].as_os_str()).collect()
}

#[test]
fn refusal_ends_script_with_126() {
    for script in [
        "echo a; rm x; echo b",
        "echo a; (rm x) || echo b",
        "echo a; x=$(rm x); echo b",
        "echo a; { sleep 60; } | rm x; echo b",
        "echo a; if rm x; then echo b; fi; echo b",
        "echo a; for i in 1 2; do rm $i; done; echo b",
        "echo a; c=rm; $c x || echo b",
    ] {
        let program = Program::parse(script).unwrap();
        let (outcome, report) = Stage::new().run(&program, &Against("rm"));
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (i32::from(REFUSED), "a\n"), "{script}");
        let refusal = report.refused.unwrap();
        assert_eq!((refusal.reason.as_str(), refusal.command.argv[0].as_os_str()), ("not today", OsStr::new("rm")));
        assert_eq!(names(&report.ran)[0], "echo", "{script}");
        assert!(outcome.stderr.starts_with("sayso: refused `rm"), "{script}: {}", outcome.stderr);
    }
}

#[test]
fn refusal_opens_no_file() {
    let program = Program::parse("rm x > made").unwrap();
    let stage = Stage::new();
    let (outcome, _) = stage.run(&program, &Against("rm"));
    assert!(!outcome.files.contains_key("made"));
}

#[test]
fn expansion_to_rejected_builtin_refuses() {
    for script in [
        "c=eval; $c 'echo evil'",
        "c=.; $c ./run.sh",
        "c=exec; $c ls",
        "c=export; $c PATH=/evil; ls",
        "c=printf; $c -v x evil",
        "x=-v; printf $x y evil",
        "c=unset; $c PATH",
        "c=set; $c -o history",
        "c=command; $c ls",
        "c=trap; $c 'echo evil' EXIT",
    ] {
        let program = Program::parse(script).unwrap();
        let (outcome, report) = Stage::new().run(&program, &Recorder::default());
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (i32::from(REFUSED), ""), "{script}");
        assert!(report.refused.is_some(), "{script}");
    }
}

#[test]
fn judge_sees_real_command() {
    let program = Program::parse("cd src; x=1; A=\"$x\" cat *.rs > \"../o $x\" 2>> /dev/null < lib.rs").unwrap();
    let (stage, recorder) = (Stage::new(), Recorder::default());
    stage.run(&program, &recorder);
    let seen = recorder.seen.into_inner().unwrap();
    let last = seen.last().unwrap();
    assert_eq!(last.argv, ["cat", "lib.rs", "main.rs"]);
    assert_eq!(last.target, Target::Program("/usr/bin/cat".into()));
    assert_eq!(last.directory, stage.root().join("src"));
    assert_eq!(last.assignments, [("A".into(), "1".into())]);
    assert_eq!(last.environment[OsStr::new("A")], "1");
    assert_eq!(last.environment[OsStr::new("PWD")], stage.root().join("src").as_os_str());
    assert!(!last.environment.contains_key(OsStr::new("x")));
    let paths: Vec<_> = last.redirects.iter().map(|redirect| (redirect.descriptor, redirect.path.clone())).collect();
    let root = stage.root().join("src");
    assert_eq!(paths, [(1, root.join("../o 1")), (2, "/dev/null".into()), (0, root.join("lib.rs"))]);
}

#[test]
fn interrupt_reaches_children_and_ends_script() {
    let program = Program::parse("sleep 60 | cat; echo never").unwrap();
    let handle = Handle::new();
    let sender = handle.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        sender.signal(Interrupt::Terminate);
    });
    let (outcome, _) = Stage::new().run_with(&program, &Recorder::default(), handle);
    thread.join().unwrap();
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (143, ""));
}

#[test]
fn report_names_commands_and_last_folder() {
    let program = Program::parse("cd src && ls nope; false; cd deep").unwrap();
    let stage = Stage::new();
    let (_, report) = stage.run(&program, &Recorder::default());
    assert_eq!(names(&report.ran), ["cd", "ls", "false", "cd"]);
    assert_eq!(report.ran.iter().map(|ran| ran.exit).collect::<Vec<_>>(), [0, 2, 1, 0]);
    assert_eq!(report.directory, stage.root().join("src/deep"));
    assert_eq!((report.exit_code, report.omitted), (0, 0));
}

#[test]
fn signal_of_child_becomes_status() {
    let program = Program::parse("sh -c 'kill -9 $$'; echo $?").unwrap();
    let (outcome, _) = Stage::new().run(&program, &Recorder::default());
    assert_eq!(outcome.stdout, "137\n");
}

#[test]
fn long_here_document_reaches_child() {
    let body = "line of text\n".repeat(20_000);
    let program = Program::parse(&format!("wc -c <<'E'\n{body}E\ntrue <<'E'\n{body}E\n")).unwrap();
    let (outcome, _) = Stage::new().run(&program, &Recorder::default());
    assert_eq!(outcome.stdout, format!("{}\n", body.len()));
}

#[test]
fn inherited_shell_variables_are_dropped() {
    let program = Program::parse("env").unwrap();
    let stage = Stage::new();
    let options = stage.options_with(&[
        ("BASH_ENV", "x"),
        ("BASH_FUNC_ls%%", "() { x; }"),
        ("IFS", "x"),
        ("PS4", "x"),
        ("KEPT", "1"),
    ]);
    let recorder = Recorder::default();
    sayso_runner::run(&program, options, &recorder);
    let seen = recorder.seen.into_inner().unwrap();
    let names: Vec<_> = seen[0].environment.keys().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(names, ["HOME", "KEPT", "LC_ALL", "PATH", "PWD", "USER"]);
}
