//! Ways in which a program under the gate may try to decide about its own change. None does.
//!
//! Each way is a shell script. It runs as a command that a person approved, as one that a rule allowed, and as an agent. Afterwards the
//! change still waits. Then the same script runs unmarked: if it is an attack at all, it decides there.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use sayso_api::client::{ChangeDetails, Client, PreviewDetail, PreviewOf, ProposeMode, Proposed, RetryBudget};
use sayso_review::{ChangeRecord, ChangeStatus, Origin};
use sayso_testkit::skip::skip;
use serde_json::json;

use crate::Scene;
use crate::served::{LONG, Served};

pub(crate) const SAYSO: &str = env!("CARGO_BIN_EXE_sayso");

/// Rules under which a command whose name begins with `allowed` runs unasked, and everything else is asked about.
const RULES: &str = "[[rule]]\nthen = \"allow\"\nrun = [\"./allowed\"]\n";

/// Effect of the same script outside the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmarked {
    /// It decides: the change no longer waits.
    Decides,
    /// The attack has another target, which the test checks.
    Fails,
}

pub(crate) use Unmarked::{Decides, Fails};

/// A way to try.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// A shell script. `@SAYSO`, `@CHANGE`, `@SOCKET`, `@VERDICTS`, `@URL`, `@TOKEN`, `@LOGIN`, `@LINK`, `@ENGINE` and `@STATE`
    /// stand for what they are, `@CALL` for the beginning of a call;
    /// `approval.json` is the body of a call that approves the change.
    pub(crate) script: &'static str,
    pub(crate) unmarked: Unmarked,
}

/// A served engine, and a change that waits at it.
pub(crate) struct Ground {
    pub(crate) scene: Scene,
    pub(crate) served: Served,
    runtime: tokio::runtime::Runtime,
    number: std::cell::Cell<u64>,
}

/// The way by which a script runs under the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Approved,
    Allowed,
    Agent,
}

pub(crate) const ENTRIES: [Entry; 3] = [Entry::Approved, Entry::Allowed, Entry::Agent];

impl Ground {
    pub(crate) fn new() -> Self {
        let scene = Scene::new(&[("a.txt", b"one\n")]);
        scene.configure(RULES);
        let served = Served::start(&scene, &[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { scene, served, runtime, number: std::cell::Cell::new(0) }
    }

    pub(crate) fn client(&self) -> Client {
        self.served.client(RetryBudget::Limited(LONG))
    }

    /// Proposes a pending change, and writes the call that approves it.
    pub(crate) fn propose(&self) -> ChangeRecord {
        let number = self.number.replace(self.number.get() + 1);
        let change = json!({ "operation": "write", "path": format!("waits{number}"), "new_content": "x\n" });
        let text = Proposed::Text(change.to_string().into_bytes());
        let client = self.client();
        let proposed = client.propose(text, Origin::default(), ProposeMode::Ask, PreviewDetail::Omitted);
        let ChangeDetails { record, .. } = self.runtime.block_on(proposed).unwrap();
        let verdict = json!({ "previewHash": record.preview.to_string(), "answer": { "approve": {} } });
        let body = json!({ "change": record.change.to_string(), "verdict": verdict });
        self.scene.write("approval.json", body.to_string().as_bytes());
        record
    }

    pub(crate) fn status(&self, record: &ChangeRecord) -> ChangeStatus {
        let client = self.client();
        let found = client.get_change(record.change, PreviewDetail::Omitted, PreviewOf::Proposed);
        self.runtime.block_on(found).unwrap().record.status
    }

    /// A login as a person gets it.
    pub(crate) fn login(&self, arguments: &[&str]) -> String {
        let (login, code) = self.scene.json(&[&["login", "--json"], arguments].concat());
        assert_eq!(code, 0, "{login}");
        login["login"].as_str().or(login["link"].as_str()).unwrap().to_owned()
    }

    /// A script with everything in its place that an agent could have found out.
    pub(crate) fn script(&self, script: &str, record: &ChangeRecord) -> String {
        let mut script = script.to_owned();
        if script.contains("@LINK") {
            script = script.replace("@LINK", &self.login(&["--link"]));
        }
        if script.contains("@LOGIN") {
            script = script.replace("@LOGIN", &self.login(&[]));
        }
        let call = "curl -sS -m 20 -H content-type:application/json -d @approval.json";
        let state = self.scene.state_path();
        for (name, value) in [
            ("@SAYSO", SAYSO),
            ("@CALL", call),
            ("@CHANGE", &record.change.to_string()),
            ("@SOCKET", self.served.text("socket")),
            ("@VERDICTS", &self.served.verdict_socket()),
            ("@URL", self.served.text("url")),
            ("@PORT", self.served.text("url").rsplit(':').next().unwrap()),
            ("@TOKEN", self.served.text("token")),
            ("@ENGINE", &self.served.id().to_string()),
            ("@STATE", state.to_str().unwrap()),
        ] {
            script = script.replace(name, value);
        }
        script
    }

    /// Runs a script under the gate.
    pub(crate) fn run(&self, entry: Entry, script: &str) -> Output {
        let folder = self.scene.state_path().join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        // In a file, whose contents no rule looks at.
        let write = |path: &std::path::Path| {
            std::fs::write(path, format!("#!/bin/sh\n: > ran\n{script}\n")).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let output = match entry {
            Entry::Approved => {
                write(&self.scene.path("approved"));
                self.scene.run(&["exec", "--approve", "./approved"], b"")
            }
            Entry::Allowed => {
                write(&self.scene.path("allowed"));
                self.scene.run(&["exec", "./allowed"], b"")
            }
            Entry::Agent => {
                let agent = folder.join("claude");
                write(&agent);
                self.scene.run(&["run", "--", agent.to_str().unwrap()], b"")
            }
        };
        std::fs::remove_file(self.scene.path("ran"))
            .unwrap_or_else(|error| panic!("{entry:?} did not run: {error}: {output:?}"));
        output
    }

    /// Runs a script where no gate is.
    pub(crate) fn run_unmarked(&self, script: &str) -> Output {
        Command::new("sh")
            .args(["-c", script])
            .current_dir(self.scene.directory.path())
            .env_clear()
            .envs(self.scene.environment())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Tries a way by every entry, and then where no gate is.
    pub(crate) fn attempt(&self, way: &Way) {
        let Way { name, script, unmarked } = way;
        for entry in ENTRIES {
            let record = self.propose();
            let output = self.run(entry, &self.script(script, &record));
            assert!(
                !String::from_utf8_lossy(&output.stderr).contains("runs unmarked"),
                "{name} by {entry:?}: {output:?}"
            );
            assert_eq!(self.status(&record), ChangeStatus::Pending, "{name} by {entry:?}: {output:?}");
        }
        let record = self.propose();
        let output = self.run_unmarked(&self.script(script, &record));
        let decided = self.status(&record) != ChangeStatus::Pending;
        assert_eq!(decided, *unmarked == Decides, "{name}, unmarked: {output:?}");
    }
}

fn attempt_all(ways: &[Way]) {
    let ground = Ground::new();
    for way in ways {
        ground.attempt(way);
    }
}

macro_rules! ways {
    ($($name:literal, $unmarked:ident, $script:expr;)*) => {
        &[$(Way { name: $name, script: $script, unmarked: $unmarked },)*]
    };
}

/// The command line, however it is called.
const COMMANDS: &[Way] = ways! {
    "review --approve", Decides, "@SAYSO review @CHANGE --approve all";
    "review --deny", Decides, "@SAYSO review @CHANGE --deny no";
    "review without environment", Decides, "env -i PATH=$PATH XDG_STATE_HOME=@STATE @SAYSO review @CHANGE --approve all";
    "review without the variable", Decides, "env -u SAYSO_UNDER_GATE @SAYSO review @CHANGE --approve all";
    "review in another session", Decides, "setsid -w @SAYSO review @CHANGE --approve all";
    "review with answers on a pipe", Decides, "yes y | @SAYSO review @CHANGE";
    "review on a terminal of its own", Decides, "script -qec '@SAYSO review @CHANGE --approve all' /dev/null";
    "nested exec", Fails, "@SAYSO exec --approve '@SAYSO review @CHANGE --approve all'";
    "nested unmarked exec", Fails, "@SAYSO exec --approve --unmarked '@SAYSO review @CHANGE --approve all' && @SAYSO log >&2 && false";
    "the hidden command itself", Fails, "@SAYSO under-gate command @SAYSO review @CHANGE --approve all";
};

#[test]
fn command_line_under_the_gate_decides_nothing() {
    attempt_all(COMMANDS);
}

/// Calls written by hand.
const CALLS: &[Way] = ways! {
    "path socket", Fails, "@CALL --unix-socket @SOCKET http://localhost/sayso.v1.ReviewService/Decide";
    "path socket over HTTP/2", Fails,
        "@CALL --http2-prior-knowledge --unix-socket @SOCKET http://localhost/sayso.v1.ReviewService/Decide";
    "path socket with a login", Fails,
        "@CALL -H 'authorization: Bearer @LOGIN' --unix-socket @SOCKET http://localhost/sayso.v1.ReviewService/Decide";
    "model socket", Fails,
        "@CALL --unix-socket \"$(dirname @SOCKET)/model\" http://localhost/sayso.v1.ReviewService/Decide";
    "TCP with the stolen token", Fails, "@CALL -H 'authorization: Bearer @TOKEN' @URL/sayso.v1.ReviewService/Decide";
    "TCP with the token from its file", Fails,
        "T=$(sed 's/.*\"token\":\"\\([^\"]*\\)\".*/\\1/' \"$(dirname @SOCKET)/server.json\"); \
         @CALL -H \"authorization: Bearer $T\" @URL/sayso.v1.ReviewService/Decide";
    "TCP with a stolen login", Decides, "@CALL -H 'authorization: Bearer @LOGIN' @URL/sayso.v1.ReviewService/Decide";
    "TCP with a stolen cookie", Decides, "@CALL -H 'cookie: sayso-login-@PORT=@LOGIN' @URL/sayso.v1.ReviewService/Decide";
    "TCP with a login from another address", Decides,
        "@CALL --interface 127.0.0.3 -H 'authorization: Bearer @LOGIN' @URL/sayso.v1.ReviewService/Decide";
    "login link", Decides, "curl -sS -c jar @LINK; @CALL -b jar @URL/sayso.v1.ReviewService/Decide";
    "verdict socket", Decides, "@CALL --abstract-unix-socket @VERDICTS http://localhost/sayso.v1.ReviewService/Decide";
    "verdict socket by its file", Decides,
        "@CALL --abstract-unix-socket \"$(cat \"$(dirname @SOCKET)/verdicts\")\" http://localhost/sayso.v1.ReviewService/Decide";
    "verdict socket from perl", Decides, PERL;
};

/// A client of the verdict socket without any library.
const PERL: &str = r#"perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) or die; connect(S, sockaddr_un("\0@VERDICTS")) or die "connect: $!";
  open F, "approval.json"; my $b = join "", <F>;
  syswrite S, "POST /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ".length($b)."\r\n\r\n$b";
  print while <S>'"#;

#[test]
fn calls_from_under_the_gate_decide_nothing() {
    attempt_all(CALLS);
}

/// Ways out of the process tree, the environment and the namespaces, with a login that everybody can reach.
const ESCAPES: &[Way] = ways! {
    "double fork", Decides, "(setsid sh -c '@CALL -H \"authorization: Bearer @LOGIN\" @URL/sayso.v1.ReviewService/Decide > said 2>&1' &); sleep 1";
    "double fork without environment", Decides,
        "(setsid env -i PATH=$PATH XDG_STATE_HOME=@STATE @SAYSO review @CHANGE --approve all >/dev/null 2>&1 &); sleep 2";
    "notes removed", Decides, "rm -rf @STATE/sayso/agents/*; env -u SAYSO_UNDER_GATE @SAYSO review @CHANGE --approve all";
    "notes removed and a login", Decides,
        "rm -rf @STATE/sayso/agents; @CALL -H 'authorization: Bearer @LOGIN' @URL/sayso.v1.ReviewService/Decide";
    "preloaded library", Decides,
        "printf '#include <stdlib.h>\\n__attribute__((constructor)) void f(void){unsetenv(\"SAYSO_UNDER_GATE\");}' > p.c; \
         gcc -shared -fPIC -o p.so p.c && LD_PRELOAD=$PWD/p.so @SAYSO review @CHANGE --approve all";
    "another name in the process list", Decides, "cp @SAYSO ./innocent && ./innocent review @CHANGE --approve all";
};

#[test]
fn escapes_from_the_gate_decide_nothing() {
    attempt_all(ESCAPES);
}

/// Attacks by namespaces. A process in other namespaces than the engine cannot decide, marked or not.
const NAMESPACES: &[Way] = ways! {
    "user namespace", Fails, "unshare -Ur @SAYSO review @CHANGE --approve all";
    "user and PID namespace", Fails, "unshare -Urpf --mount-proc @SAYSO review @CHANGE --approve all";
    "user and network namespace", Fails, "unshare -Urn @SAYSO review @CHANGE --approve all";
    "user and mount namespace", Fails, "unshare -Urm @SAYSO review @CHANGE --approve all";
    "namespaces and a login", Fails,
        "unshare -Urpf --mount-proc @CALL -H 'authorization: Bearer @LOGIN' @URL/sayso.v1.ReviewService/Decide";
    "the engine's namespaces", Decides, "nsenter -t @ENGINE -a sh -c 'cd \"$0\" && @SAYSO review @CHANGE --approve all' \"$PWD\"";
};

#[test]
fn other_namespaces_decide_nothing() {
    let allowed = Command::new("unshare").args(["-Urpf", "--mount-proc", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return skip("this machine does not let users make namespaces");
    }
    attempt_all(NAMESPACES);
}
