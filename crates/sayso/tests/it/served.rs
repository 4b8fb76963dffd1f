//! `sayso serve` as it runs: how it starts, how it ends, what it says, and how many it serves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_api::client::{
    AbstractSocket, ChangeDetails, Client, ClientError, Connection, Dial, NewSession, PreviewDetail, PreviewOf,
    RetryBudget, SideEffect,
};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, Decider, Verdict};
use serde_json::Value;

use crate::Scene;

/// Longer than anything here takes, on a busy machine, too.
pub(crate) const LONG: Duration = Duration::from_mins(2);

/// The socket for verdicts of whichever engine is behind the socket with this path.
#[derive(Clone, Debug)]
pub(crate) struct Deciding(pub(crate) PathBuf);

impl Dial for Deciding {
    fn dial(&self) -> BoxFuture<'static, std::io::Result<Connection>> {
        match std::fs::read_to_string(self.0.with_file_name("verdicts")) {
            Ok(name) => AbstractSocket(name).dial(),
            Err(error) => futures::future::ready(Err(error)).boxed(),
        }
    }
}

/// A running `sayso serve`. Killed when dropped.
pub(crate) struct Served {
    child: Child,
    /// Standard error, read continuously, so that the server never blocks.
    log: Option<JoinHandle<String>>,
    pub(crate) said: Value,
}

impl Served {
    pub(crate) fn start(scene: &Scene, arguments: &[&str]) -> Self {
        Self::begin(scene, arguments, &[]).wait_for_word()
    }

    /// Starts it with additional variables.
    pub(crate) fn start_with(scene: &Scene, environment: &[(&str, &str)]) -> Self {
        Self::begin(scene, &[], environment).wait_for_word()
    }

    /// Starts it, and does not wait until it says where it is.
    fn begin(scene: &Scene, arguments: &[&str], environment: &[(&str, &str)]) -> Beginning {
        let child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--json", "--port", "0"])
            .args(arguments)
            .current_dir(scene.directory.path())
            .env_clear()
            .envs(scene.environment())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            errors.read_to_string(&mut log).unwrap();
            log
        });
        Beginning { child, log }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.said))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A client on the socket for verdicts, which finds whichever engine is behind it.
    pub(crate) fn client(&self, patience: RetryBudget) -> Client {
        Client::new(Arc::new(Deciding(PathBuf::from(self.text("socket")))), None).with_retry_budget(patience)
    }

    /// The name of the socket for verdicts.
    pub(crate) fn verdict_socket(&self) -> String {
        std::fs::read_to_string(Path::new(self.text("socket")).with_file_name("verdicts")).unwrap()
    }

    fn address(&self) -> String {
        self.text("url").strip_prefix("http://").unwrap().to_owned()
    }

    /// Ends it without a warning.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits until it has ended as it should, and gives what it said besides.
    pub(crate) fn ended(self) -> String {
        let (status, log) = self.ended_somehow();
        assert!(status.success(), "{status:?} {:?}: {log}", status.signal());
        log
    }

    /// Waits until it has ended, and gives how, and what it said besides.
    pub(crate) fn ended_somehow(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let log = self.log.take().unwrap().join().unwrap();
        (status, log)
    }

    /// Returns its resident memory in kilobytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Beginning {
    child: Child,
    log: JoinHandle<String>,
}

impl Beginning {
    fn wait_for_word(mut self) -> Served {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match serde_json::from_str(&line) {
            Ok(said) => Served { child: self.child, log: Some(self.log), said },
            Err(error) => panic!("{error}: {line:?} {}", self.log.join().unwrap()),
        }
    }
}

/// Approves a change, on a thread of its own.
pub(crate) fn approve(client: Client, record: &ChangeRecord) -> JoinHandle<Result<ChangeDetails, ClientError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let verdict = Verdict {
        preview: record.preview,
        answer: Answer::Approve,
        comments: Vec::new(),
        message: None,
        by: Decider::PERSON,
    };
    let change = record.change;
    std::thread::spawn(move || {
        let decide = client.decide(change, verdict, None, PreviewDetail::Omitted);
        runtime.block_on(async { tokio::time::timeout(LONG, decide).await.unwrap() })
    })
}

#[test]
fn token_is_not_logged() {
    let scene = Scene::new(&[]);
    let wrong = "wrong-but-somebodys-secret";
    let served = Served::start(&scene, &["--log", "trace"]);
    let (url, token) = (served.text("url").to_owned(), served.text("token").to_owned());
    for protocol in ["--http1.1", "--http2-prior-knowledge"] {
        for shown in [token.as_str(), wrong] {
            let output = Command::new("curl")
                .args(["-sS", "-m", "60", protocol, "-H", "content-type: application/json", "-d", "{}"])
                .args(["-H", &format!("authorization: Bearer {shown}")])
                .arg(format!("{url}/sayso.v1.ReviewService/Status?token={shown}"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said.contains("unauthenticated"), shown == wrong, "{output:?}");
        }
    }
    served.ask_to_end();
    let log = served.ended();
    assert!(log.contains("responded") && log.contains("rejected"), "{log}");
    for secret in [token.as_str(), wrong] {
        let found: Vec<&str> = log.lines().filter(|line| line.contains(secret)).collect();
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn concurrent_starts_yield_one_server() {
    let scene = Scene::new(&[]);
    for round in 0..12 {
        let starts: Vec<Beginning> = (0..3).map(|_| Served::begin(&scene, &[], &[])).collect();
        let (mut winners, mut losers) = (Vec::new(), Vec::new());
        for served in starts.into_iter().map(Beginning::wait_for_word) {
            if served.said["already"] == true { losers.push(served) } else { winners.push(served) }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        let winner = winners.remove(0);
        assert_eq!(winner.said["process"], winner.id());
        for loser in losers {
            for field in ["url", "token", "socket", "process", "workspace"] {
                assert_eq!(loser.said[field], winner.said[field], "round {round}: {field}");
            }
            loser.ended();
        }
        // Files left by a kill have no effect.
        if round % 2 == 0 {
            winner.kill();
        } else {
            winner.ask_to_end();
            winner.ended();
        }
    }
}

#[test]
fn doctor_shows_running_and_killed_engines() {
    let scene = Scene::new(&[]);
    let engines = || scene.json(&["doctor", "--json"]).0["engines"].clone();
    assert_eq!(engines(), serde_json::json!([]));
    let served = Served::start(&scene, &[]);
    let found = engines();
    assert_eq!(found[0]["state"], "running", "{found}");
    assert_eq!(found[0]["url"], served.said["url"]);
    assert_eq!(found[0]["process"], served.id());
    let told = scene.transcript(&["doctor"]);
    assert!(told.contains(served.text("url")) && !told.contains(served.text("token")), "{told}");
    served.kill();
    assert_eq!(engines()[0]["state"], "stale");
    assert!(scene.transcript(&["doctor"]).contains("was killed here"));
    let served = Served::start(&scene, &[]);
    assert_eq!(engines()[0]["state"], "running");
    served.ask_to_end();
    served.ended();
    assert_eq!(engines(), serde_json::json!([]));
}

#[test]
fn child_of_agent_cannot_approve_at_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = Scene::new(&[]);
    let served = Served::start(&scene, &[]);
    let client = served.client(RetryBudget::Limited(LONG));
    let record = runtime.block_on(crate::crash_restart::propose(&client, 0)).record;
    let (program, change) = (env!("CARGO_BIN_EXE_sayso"), record.change);
    let verdict = serde_json::json!({ "previewHash": record.preview.to_string(), "answer": { "approve": {} } });
    let body = serde_json::json!({ "change": change.to_string(), "verdict": verdict });
    scene.write("approval.json", body.to_string().as_bytes());
    let curl = "curl -sS -m 60 -H 'content-type: application/json' -d @approval.json";
    let call = "sayso.v1.ReviewService/Decide";
    let (socket, url, token) = (served.text("socket"), served.text("url"), served.text("token"));
    for attempt in [
        format!("{program} review {change} --approve all"),
        format!("setsid -w {program} review {change} --approve all"),
        format!("{curl} --unix-socket {socket} http://localhost/{call}"),
        // Should it have found the token, too.
        format!("{curl} -H 'authorization: Bearer {token}' {url}/{call}"),
    ] {
        let told = scene.transcript(&["exec", "--approve", &attempt]);
        let is_refused = told.contains("agent cannot decide") || told.contains("no verdicts");
        assert!(is_refused, "{attempt}:\n{told}");
        let stands = runtime.block_on(client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed)).unwrap();
        assert_eq!(stands.record.status, ChangeStatus::Pending, "{attempt}");
    }
    let told = scene.transcript(&["review", &change.to_string(), "--approve", "all"]);
    assert!(told.ends_with("--- exit 0\n") && crate::crash_restart::is_whole(&scene, 0), "{told}");
}

/// Asks for all events as bytes over HTTP/1.1.
fn watch(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let head = format!(
        "POST /sayso.v1.ReviewService/Watch HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/connect+json\r\nconnect-protocol-version: 1\r\ncontent-length: 7\r\n\r\n",
        served.text("token")
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[0, 0, 0, 0, 2, b'{', b'}']).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    stream
}

#[test]
fn server_stop_ends_streams_and_finishes_writes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 0..6_u64 {
        let scene = Scene::new(&[]);
        let served = Served::start(&scene, &[]);
        let mut stream = watch(&served);
        let client = served.client(RetryBudget::Limited(Duration::ZERO));
        let record = runtime.block_on(crate::crash_restart::propose(&client, round)).record;
        let deciding = approve(served.client(RetryBudget::Limited(Duration::ZERO)), &record);
        // Earlier or later in what it is at.
        std::thread::sleep(Duration::from_millis(round * 3));
        served.ask_to_end();
        let decided = deciding.join().unwrap();
        served.ended();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        let text = String::from_utf8_lossy(&rest);
        // A stream's last message is its end, which says nothing of an error, and then the answer itself is over.
        assert!(text.contains("{}") && !text.contains("\"error\""), "{text}");
        assert!(text.ends_with("\r\n0\r\n\r\n"), "{text:?}");
        match decided {
            Ok(progress) => {
                assert_eq!(progress.record.status, ChangeStatus::Applied);
                assert!(crate::crash_restart::is_whole(&scene, round));
            }
            Err(ClientError::Unreachable { side_effect: SideEffect::None, .. }) => {
                assert!(crate::crash_restart::is_untouched(&scene), "round {round}");
            }
            Err(error) => panic!("round {round}: {error:?}"),
        }
    }
}

/// Returns the numbers of watchers and events. Slow runs have fewer.
fn crowd() -> (usize, u64) {
    if std::env::var_os("SAYSO_CROWD").is_some() { (1_000, 1_000) } else { (200, 200) }
}

#[test]
fn many_watchers_get_every_event_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let scene = Scene::new(&[]);
    let served = Served::start(&scene, &[]);
    let idle = served.resident();
    let (watchers, events) = crowd();
    let (address, token) = (served.address(), served.text("token").to_owned());
    let most = runtime.block_on(async {
        let mut watching = Vec::new();
        let mut sender = None;
        for number in 0..watchers {
            if number % 250 == 0 {
                let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
                let (made, work) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
                tokio::spawn(work);
                sender = Some(made);
            }
            let request = http::Request::post(format!("http://{address}/sayso.v1.ReviewService/Watch"))
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/connect+proto")
                .header("connect-protocol-version", "1")
                .body(Full::new(Bytes::from_static(&[0; 5])))
                .unwrap();
            let answer = sender.as_mut().unwrap().send_request(request).await.unwrap();
            assert_eq!(answer.status(), 200);
            watching.push(tokio::spawn(follow(answer.into_body(), events)));
        }
        let client = served.client(RetryBudget::Limited(LONG));
        let mut most = served.resident();
        for number in 1..=events {
            let session = NewSession { session: format!("s{number}"), ..NewSession::default() };
            client.start_session(session).await.unwrap();
            most = most.max(served.resident());
        }
        for watcher in watching {
            tokio::time::timeout(LONG, watcher).await.unwrap().unwrap();
        }
        most.max(served.resident())
    });
    println!("{watchers} watchers × {events} events: idle {idle} kB, at most {most} kB");
    assert!(most < 150_000, "{most} kB");
}

/// Reads a stream of events until the last, each of which has to be the next.
async fn follow(mut body: hyper::body::Incoming, last: u64) {
    let (mut heard, mut seen) = (Vec::new(), 0);
    while seen < last {
        let frame = body.frame().await.unwrap().unwrap();
        heard.extend_from_slice(frame.data_ref().unwrap());
        let mut rest = &heard[..];
        while let Some((head, after)) = rest.split_at_checked(5) {
            let size = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
            let Some((message, after)) = after.split_at_checked(size) else { break };
            rest = after;
            if let Some(number) = number(message) {
                assert_eq!(number, seen + 1);
                seen = number;
            }
        }
        heard = rest.to_vec();
    }
}

/// The number of an event: the first field of the first field, as the bytes on the wire are.
fn number(message: &[u8]) -> Option<u64> {
    let varint = |bytes: &[u8]| {
        let size = bytes.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let value = bytes[..size].iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
        (value, size)
    };
    let event = message.strip_prefix(&[0x0a])?;
    let fields = &event[varint(event).1..];
    assert_eq!(fields[0], 0x08);
    Some(varint(&fields[1..]).0)
}
