//! The marks on real processes. Each test marks its own thread, which no other test shares.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests panic to fail, start programs, and say what they measured"
)]

use std::io::{ErrorKind, Read as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use sayso_marks::{Domain, InspectError, Inspection, KernelSupport, Marks, PeerProcess, Scope, apply};
use sayso_testkit::skip::skip;

/// Runs a test on its own thread, because marks stay on a thread.
fn marked(scope: Scope, test: impl FnOnce() + Send) {
    std::thread::scope(|threads| {
        let thread = threads.spawn(move || {
            let applied = apply(scope).unwrap();
            let expected = if KernelSupport::find().scopes { Domain::Entered } else { Domain::Missing };
            assert_eq!(applied.domain, expected);
            test();
        });
        thread.join().unwrap();
    });
}

/// `false`, and said, where the kernel has no scopes.
fn has_scopes() -> bool {
    let scopes = KernelSupport::find().scopes;
    if !scopes {
        skip("this kernel has no Landlock scopes");
    }
    scopes
}

/// Builds a program that runs without privileges: root may read every memory.
fn unprivileged(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
    command
}

/// A process outside, which ends with its standard input. It says when it is there.
fn outsider() -> Child {
    let mut command = unprivileged("sh");
    command.args(["-c", "echo x; exec cat >/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 2]).unwrap();
    child
}

fn end(mut outsider: Child) {
    drop(outsider.stdin.take());
    outsider.wait().unwrap();
}

fn filters_after(words: &[&str]) -> Marks {
    let mut child =
        Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = [0; 2];
    // The program says that it is there, under its own number.
    child.stdout.as_mut().unwrap().read_exact(&mut text).unwrap();
    let marks = Inspection::of(child.id()).unwrap().marks;
    drop(child.stdin.take());
    child.wait().unwrap();
    marks
}

#[test]
fn marks_survive_environment_session_and_namespaces() {
    let own = Marks::own().unwrap();
    assert!(!own.is_marked(), "the tests run outside the gate");
    let says = "echo x; cat >/dev/null";
    marked(Scope::Command, || {
        for words in [
            &["sh", "-c", says][..],
            &["env", "-i", "/bin/sh", "-c", says],
            &["setsid", "-w", "sh", "-c", says],
            &["unshare", "-Ur", "sh", "-c", says],
            &["unshare", "-Urpf", "sh", "-c", says],
        ] {
            let marks = filters_after(words);
            assert!(marks.is_marked_beside(own) && marks.is_marked(), "{words:?}: {marks:?}");
        }
    });
    assert!(!filters_after(&["sh", "-c", says]).is_marked());
}

#[test]
fn abstract_socket_outside_is_out_of_reach() {
    if !has_scopes() {
        return;
    }
    let address = SocketAddr::from_abstract_name(format!("sayso-marks-test-{}", std::process::id())).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert!(UnixStream::connect_addr(&address).is_ok());
    for scope in [Scope::Command, Scope::Agent] {
        marked(scope, || {
            let error = UnixStream::connect_addr(&address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            // One of its own is not outside.
            let own =
                SocketAddr::from_abstract_name(format!("sayso-marks-own-{scope:?}-{}", std::process::id())).unwrap();
            let _own = UnixListener::bind_addr(&own).unwrap();
            assert!(UnixStream::connect_addr(&own).is_ok());
        });
    }
}

#[test]
fn path_sockets_and_files_stay_in_reach() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    marked(Scope::Agent, || {
        assert!(UnixStream::connect(&path).is_ok());
        std::fs::write(folder.path().join("file"), "x").unwrap();
    });
}

#[test]
fn process_outside_cannot_be_looked_into() {
    if !has_scopes() {
        return;
    }
    let outsider = outsider();
    let id = outsider.id();
    let reads = |file: &str| {
        let path = format!("/proc/{id}/{file}");
        let output = unprivileged("head").args(["-c", "1", &path]).stdin(Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let follows = || unprivileged("readlink").arg(format!("/proc/{id}/fd/0")).output().unwrap().status.success();
    assert!(reads("environ").0 && reads("maps").0 && follows(), "outside the gate it can be looked into");
    marked(Scope::Command, || {
        for file in ["environ", "maps", "mem"] {
            let (read, said) = reads(file);
            assert!(!read && said.contains("denied"), "{file}: {said}");
        }
        assert!(!follows());
        // The engine's own check does not need it, and neither does a marked process.
        assert!(matches!(Inspection::of(id), Err(InspectError::Hidden { .. })));
    });
    end(outsider);
}

#[test]
fn signals_stay_within_an_agent_only() {
    if !has_scopes() {
        return;
    }
    let outsider = outsider();
    let id = outsider.id().to_string();
    let signal = |scope| {
        let (id, mut sent) = (id.clone(), false);
        marked(scope, || {
            sent = Command::new("kill").args(["-CONT", &id]).stderr(Stdio::null()).status().unwrap().success();
        });
        sent
    };
    assert!(signal(Scope::Command));
    assert!(!signal(Scope::Agent));
    end(outsider);
}

#[test]
fn marks_nest_deeper_than_the_kernel_nests_domains() {
    marked(Scope::Command, || {
        for _ in 0..20 {
            apply(Scope::Agent).unwrap();
        }
        assert!(filters_after(&["sh", "-c", "echo x; cat >/dev/null"]).filters >= 21);
    });
}

#[test]
fn peer_is_inspected_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let script = "use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die; <STDIN>";
    let mut child = Command::new("perl").args(["-e", script]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let peer = PeerProcess::of_socket(&stream).unwrap();
    assert_eq!(peer.id(), child.id());
    assert_eq!(peer.inspect().unwrap(), Inspection::own().unwrap());
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(matches!(peer.inspect(), Err(InspectError::Ended(_))));
    // A number that another process has by now is not the peer's.
    let gone = PeerProcess::of_number(child.id(), 0);
    assert!(gone.inspect().is_err());
}

/// Printed, and asserted nowhere: a busy machine is no slow kernel.
#[test]
fn cost_of_marks_is_printed() {
    let mut times = Vec::new();
    for _ in 0..50 {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let start = Instant::now();
                apply(Scope::Agent).unwrap();
                times.push(start.elapsed());
            });
        });
    }
    times.sort();
    println!("marks: median {:?}, worst {:?}", times[25], times[49]);
}
