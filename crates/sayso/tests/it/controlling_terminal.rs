//! Commands that rules allow have no controlling terminal.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Scene;
use crate::pty::Pty;
use crate::served::LONG;

const RULES: &str = "[[rule]]\nrun = ['./opens-tty', './reads-output', './sleeps']\noptions = 'any'\nthen = 'allow'\n";

fn scene(programs: &[(&str, &str)]) -> Scene {
    let scene = Scene::new(&[]);
    scene.configure(RULES);
    for (name, text) in programs {
        scene.write(name, text.as_bytes());
        let made = Command::new("chmod").arg("+x").arg(scene.path(name)).status().unwrap();
        assert!(made.success());
    }
    scene
}

#[test]
fn allowed_command_cannot_open_dev_tty() {
    let scene = scene(&[("opens-tty", "#!/bin/sh\nif (exec < /dev/tty); then echo OPENED; else echo REFUSED; fi\n")]);
    let mut runs = Pty::start(&scene, &["exec", "--", "./opens-tty"], &[]);
    let shown = runs.until("REFUSED");
    assert!(shown.contains("No such device or address"), "ENXIO: {shown}");
    assert_eq!(runs.ended(), Some(0));
}

#[test]
fn allowed_command_cannot_read_from_terminal_output() {
    // `less` reads keys from standard error if there is no terminal.
    let program = "#!/bin/bash\nfor number in 0 1 2; do [ -t $number ] && echo terminal $number; done\n\
                   read -r line <&1 || echo NO INPUT\n";
    let scene = scene(&[("reads-output", program)]);
    let mut runs = Pty::start(&scene, &["exec", "--", "./reads-output"], &[]);
    runs.types("typed\n");
    let shown = runs.until("NO INPUT");
    assert!(shown.contains("terminal 1") && shown.contains("terminal 2") && !shown.contains("terminal 0"), "{shown}");
    assert_eq!(runs.ended(), Some(0));
}

#[test]
fn interrupt_key_ends_an_allowed_command() {
    let scene = scene(&[("sleeps", "#!/bin/sh\necho $$ > pid\necho STARTED\nexec sleep 600\n")]);
    let mut runs = Pty::start(&scene, &["exec", "--", "./sleeps"], &[]);
    runs.until("STARTED");
    runs.types("\u{3}");
    assert_eq!(runs.ended(), Some(130));
    wait_for_end(&scene);
}

#[test]
fn kill_of_the_process_group_ends_an_allowed_command() {
    let scene = scene(&[("sleeps", "#!/bin/sh\necho STARTED\nsleep 600 &\necho $! > pid\nwait\n")]);
    let mut runs = Pty::start(&scene, &["exec", "--", "./sleeps"], &[]);
    runs.until("STARTED");
    let started = Instant::now();
    let call = loop {
        let found = Command::new("pgrep").args(["-f", "call [0-9a-f]{32}$"]).stderr(Stdio::null()).output().unwrap();
        let here = scene.path(".").canonicalize().unwrap();
        let calls = String::from_utf8(found.stdout).unwrap();
        let mut calls =
            calls.lines().filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == here));
        if let (Some(pid), true) = (calls.next(), scene.path("pid").exists()) {
            break pid.to_owned();
        }
        assert!(started.elapsed() < LONG, "`sayso call` does not run");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(Command::new("kill").args(["-9", &call]).status().unwrap().success());
    assert_eq!(runs.ended(), Some(137));
    wait_for_end(&scene);
}

/// Waits until the process whose number is in the file `pid` has ended.
fn wait_for_end(scene: &Scene) {
    let pid = scene.read("pid");
    let started = Instant::now();
    while std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(started.elapsed() < LONG, "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}
