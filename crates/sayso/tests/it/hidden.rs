//! Processes that hide from inspection cannot decide.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::Scene;
use sayso_testkit::skip::skip;

/// Sends a request and prints the answer; does not let others look at it first, if it is told the number of the call for that.
const CALLER: &str = "use Socket; \
    if ($ARGV[3]) { syscall(0 + $ARGV[3], 4, 0, 0, 0, 0) == 0 or die $! } \
    if ($ARGV[0] eq 'socket') { socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"\\0$ARGV[1]\")) or die $! } \
    else { socket(S, PF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in($ARGV[1], INADDR_LOOPBACK)) or die $! } \
    syswrite(S, $ARGV[2]); while (sysread(S, my $part, 4096)) { print $part }";

/// The number of `prctl`, where it is known.
fn prctl() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("157"),
        "aarch64" => Some("167"),
        _ => None,
    }
}

/// A user without privileges, because root can inspect every process.
struct Somebody {
    scene: Scene,
    program: PathBuf,
}

impl Somebody {
    fn new() -> Self {
        let scene = Scene::new(&[]);
        // Where they get at it, wherever it was built.
        let program = scene.state_path().join("sayso-program");
        let built = env!("CARGO_BIN_EXE_sayso");
        std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
        if rustix::process::geteuid().is_root() {
            let folders = [scene.state_path(), scene.directory.path().to_owned()];
            assert!(Command::new("chown").arg("65534:65534").args(folders).status().unwrap().success());
        }
        Self { scene, program }
    }

    /// A program that they run.
    fn runs(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() {
            command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        }
        command.current_dir(self.scene.directory.path()).env_clear().envs(self.scene.environment());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

struct Engine(Child);

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn uninspectable_process_cannot_decide() {
    let Some(prctl) = prctl() else {
        skip("the number of the prctl call is not known for this processor");
        return;
    };
    let somebody = Somebody::new();
    let serve = somebody.runs(somebody.program.to_str().unwrap()).args(["serve", "--json", "--port", "0"]).spawn();
    let mut engine = Engine(serve.unwrap());
    let mut line = String::new();
    BufReader::new(engine.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let text = |name: &str| said[name].as_str().unwrap();
    let port = text("url").rsplit(':').next().unwrap();
    let verdicts = std::fs::read_to_string(PathBuf::from(text("socket")).with_file_name("verdicts")).unwrap();
    let login = somebody.runs(somebody.program.to_str().unwrap()).args(["login", "--json"]).output().unwrap();
    let login: Value = serde_json::from_slice(&login.stdout).unwrap();
    for (way, place) in [("socket", verdicts.as_str()), ("tcp", port)] {
        for (hides, expected) in [(prctl, "agent cannot decide"), ("", "STATUS_APPLIED")] {
            let name = format!("{way}{}", hides.len());
            let change = json!({ "changes": [{ "write": { "path": name, "newContent": "x\n" } }] });
            let proposal = json!({ "proposal": change, "mode": "MODE_ASK" }).to_string();
            let proposed = somebody
                .runs("curl")
                .args(["-sS", "-m", "60", "-H", "content-type: application/json", "-d", &proposal])
                .args(["--unix-socket", text("socket"), "http://localhost/sayso.v1.ReviewService/Propose"])
                .output()
                .unwrap();
            let proposed: Value = serde_json::from_slice(&proposed.stdout).unwrap();
            let record = &proposed["details"]["change"];
            let verdict = json!({ "previewHash": record["previewHash"], "answer": { "approve": {} } });
            let body = json!({ "change": record["change"], "verdict": verdict }).to_string();
            let request = format!(
                "POST /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                login["login"].as_str().unwrap(),
                body.len()
            );
            let told = somebody.runs("perl").args(["-e", CALLER, way, place, &request, hides]).output().unwrap();
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            let is_refused = !hides.is_empty() && told.contains("is not an agent");
            assert!(is_refused || told.contains(expected), "{way} {hides}: {told} {proposed}");
            assert_eq!(somebody.scene.path(&name).exists(), hides.is_empty(), "{way} {hides}");
        }
    }
}
