//! The official Python SDKs as clients of the gateway: held within and beyond the grace period, edited, canceled, overloaded, broken,
//! and read slowly.
//!
//! `scripts/setup --sdk` installs them into a virtual environment in `~/.cache/sayso`. Without it, the tests are skipped with the reason.
//! An SDK runs in a process of its own and reads its requests from stdin. All cases of an API share one process, which takes seconds
//! to start.

#![allow(clippy::print_stderr, reason = "the cases of a library are printed as they begin")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso_proxy::Settings;
use sayso_review::{PauseReason, RequestEnd, RequestId, RequestMode, RequestRecord, Resumer};
use sayso_testkit::model::{Answer, Delivery, Latch, ModelServer, Turn};
use sayso_testkit::skip::skip;
use sayso_wire::stream::{Api, CANCELED, FinishReason, ModelScript, ScriptBlock, ScriptEnding, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::scene::{NEVER, Scene, now, path, settings, text_path, turn};

/// Time limit of a condition.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The response text, which is streamed in several chunks.
const HELLO: &str = "Hello, this is what the model says when it is asked.";
/// Repetitions of the text in a long response.
const LONG: usize = 200;
/// Attempts of an SDK: the first one and two retries.
const TRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Plain,
    Stream,
}

const MANNERS: [Manner; 2] = [Manner::Plain, Manner::Stream];

/// The Python interpreter of the virtual environment.
fn python() -> Result<PathBuf, String> {
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/setup"))
        .arg("--sdk")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("scripts/setup does not run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let python = said.lines().last().map(|directory| Path::new(directory).join("bin/python"));
    python
        .filter(|python| output.status.success() && python.is_file())
        .ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// An SDK in a process of its own.
struct Library {
    api: Api,
    child: Child,
    stdin: ChildStdin,
    lines: mpsc::UnboundedReceiver<Value>,
}

/// The response as an SDK reports it.
#[derive(Debug)]
struct Made {
    text: String,
    error: Option<LibraryError>,
}

#[derive(Debug)]
struct LibraryError {
    status: Option<u64>,
    message: String,
}

impl Made {
    /// The exception, if one was raised.
    #[track_caller]
    fn raised(self) -> LibraryError {
        let text = self.text;
        self.error.unwrap_or_else(|| panic!("it raised nothing, and read {text:?}"))
    }

    #[track_caller]
    fn is_hello(&self) {
        assert!(self.error.is_none(), "{self:?}");
        assert_eq!(self.text, HELLO);
    }
}

impl Library {
    fn start(api: Api) -> Result<Self, String> {
        let name = match api {
            Api::AnthropicMessages => "anthropic",
            Api::OpenAiChat => "chat",
            Api::OpenAiResponses => "responses",
            Api::Gemini => "gemini",
        };
        let mut child = Command::new(python()?)
            .arg("-B")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/client.py"))
            .arg(name)
            // Without API keys and proxies of the environment.
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an interpreter that is there runs");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(serde_json::from_str(&line).expect("the script writes JSON"));
            }
        });
        Ok(Self { api, child, stdin, lines })
    }

    fn tell(&mut self, line: &Value) {
        writeln!(self.stdin, "{line}").expect("the script reads");
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(TIMEOUT, self.lines.recv()).await.expect("the library hangs");
        line.expect("the script goes on")
    }

    fn ask(&mut self, url: &str, manner: Manner) {
        let stream = manner == Manner::Stream;
        self.tell(&json!({"url": url, "stream": stream, "said": "hi", "session": null, "slowly": false}));
    }

    /// Waits for the end of a response.
    async fn made(&mut self) -> Made {
        loop {
            let done = &mut self.line().await["done"];
            if let Some(text) = done["text"].as_str() {
                let error = &done["error"];
                let error = error["message"].as_str().map(|message| LibraryError {
                    status: error["status"].as_u64(),
                    message: format!("{}: {message}", error["type"]),
                });
                return Made { text: text.to_owned(), error };
            }
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A relay between an SDK and the gateway that counts the bytes sent to the SDK.
struct Tap {
    url: String,
    came: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    fn on(scene: &Scene) -> Self {
        let inside: http::Uri = scene.url("").parse().unwrap();
        let gateway = inside.authority().unwrap().to_string();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = scene.url("").replace(&gateway, &listener.local_addr().unwrap().to_string());
        let came = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&came);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // The test may have ended.
                let Ok(server) = TcpStream::connect(&gateway) else { return };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || copy(from, to, None));
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || copy(server, client, Some(&seen)));
            }
        });
        Self { url, came }
    }

    /// Number of writes to the SDK.
    fn count(&self, what: &[u8]) -> usize {
        self.came.lock().unwrap().windows(what.len()).filter(|window| *window == what).count()
    }

    /// Keep-alive events that were sent, each in a chunk of its own.
    fn signs(&self, api: Api) -> usize {
        let sign = api.keep_alive();
        self.count(&[format!("{:X}\r\n", sign.len()).as_bytes(), sign, b"\r\n"].concat())
    }

    fn statuses(&self, status: u16) -> usize {
        self.count(format!("HTTP/1.1 {status} ").as_bytes())
    }
}

/// Copies a stream, including its end.
fn copy(mut from: TcpStream, mut to: TcpStream, seen: Option<&Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        if let Some(seen) = seen {
            seen.lock().unwrap().extend_from_slice(&buffer[..size]);
        }
        if to.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
    // The other side may have disconnected first.
    let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
}

/// A scene in which every turn is held, with a grace period.
async fn pausing(grace: Duration, answers: impl IntoIterator<Item = Answer>) -> (Scene, Tap) {
    let model = ModelServer::start([]);
    for answer in answers {
        model.then(answer);
    }
    let settings = Settings { grace, keep_alive: Duration::from_millis(5), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let tap = Tap::on(&scene);
    (scene, tap)
}

fn hello() -> Answer {
    Turn::says(HELLO).into()
}

/// An overloaded upstream that asks for an immediate retry.
fn busy(status: u16) -> Answer {
    Answer::error(status, "busy").header("retry-after-ms", "1")
}

/// A long response that breaks in the middle.
fn cut() -> Answer {
    Answer::from(Turn::says(&HELLO.repeat(LONG))).in_chunks_of(1_500).cut_after(2)
}

async fn waits(scene: &Scene) -> RequestId {
    scene.until("a request waits", || !scene.interceptor.held().is_empty()).await;
    scene.interceptor.held()[0]
}

/// Waits until the SDK received its status and some keep-alive events.
async fn committed(scene: &Scene, tap: &Tap, api: Api) {
    scene.until("the SDK received its status and keep-alive events", || tap.signs(api) >= 3).await;
    assert_eq!((tap.statuses(200), scene.model.received().len()), (1, 0));
}

/// All recorded requests, oldest first.
fn records(scene: &Scene) -> Vec<RequestRecord> {
    let mut records = scene.interceptor.records(None, None, 100).unwrap();
    records.sort_by_key(|record| record.request);
    records
}

/// The reasons of all holds.
fn pauses(scene: &Scene) -> Vec<PauseReason> {
    records(scene).into_iter().filter_map(|record| record.paused).collect()
}

/// Asserts that every received request has the edit.
#[track_caller]
fn received_the_edit(scene: &Scene, times: usize) {
    let received = scene.model.received();
    assert_eq!(received.len(), times);
    for request in &received {
        assert_eq!(request.last_user_text(), "edited");
        assert_eq!(request.raw, received[0].raw);
    }
}

async fn forwarded_request_is_answered(library: &mut Library) {
    for manner in MANNERS {
        // With a session header the request is streamed; without, its body names the session.
        for session in [Value::Null, "s1".into()] {
            let scene = Scene::new(settings(), ModelServer::start([Turn::says(HELLO)])).await;
            let stream = manner == Manner::Stream;
            let ask =
                json!({"url": scene.url(""), "stream": stream, "said": "hi", "session": session, "slowly": false});
            library.tell(&ask);
            library.made().await.is_hello();
            assert_eq!((scene.model.received().len(), records(&scene).len()), (1, 1));
            assert_eq!(scene.model.received()[0].api(), Some(library.api));
            assert!(pauses(&scene).is_empty());
        }
    }
}

async fn edit_within_grace_is_sent(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, [hello()]).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        assert_eq!((tap.count(b"HTTP"), scene.model.received().len()), (0, 0));
        scene.set(id, text_path(library.api), "edited");
        scene.resume(id);
        library.made().await.is_hello();
        received_the_edit(&scene, 1);
        assert_eq!(records(&scene).len(), 1);
    }
}

async fn hold_beyond_grace_is_answered(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.set(id, text_path(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 1);
    assert_eq!(records(&scene).len(), 1);
}

/// Without a stream there are no keep-alive events: the timeout of the SDK applies.
async fn non_streaming_hold_is_answered(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Plain);
    let id = waits(&scene).await;
    scene.set(id, text_path(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 1);
}

async fn cancel_before_status_raises_without_retry(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, [hello()]).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        scene.interceptor.cancel(id, now()).unwrap();
        let error = library.made().await.raised();
        assert!(error.message.contains(CANCELED), "{error:?}");
        assert_eq!((error.status, tap.statuses(400)), (Some(400), 1), "{error:?}");
        assert_eq!(scene.model.received().len(), 0);
        assert_eq!(records(&scene).len(), 1, "the library did not try again");
        assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    }
}

async fn cancel_after_status_raises_without_retry(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.interceptor.cancel(id, now()).unwrap();
    let made = library.made().await;
    assert_eq!(made.text, "");
    let error = made.raised();
    assert!(error.message.contains(CANCELED), "{error:?}");
    assert_eq!(scene.model.received().len(), 0);
    assert_eq!(records(&scene).len(), 1, "the library did not try again");
    assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
}

async fn overload_before_status_is_retried_by_sdk(library: &mut Library) {
    for manner in MANNERS {
        for status in [429, 529] {
            let (scene, tap) = pausing(NEVER, [busy(status), busy(status), hello()]).await;
            library.ask(&tap.url, manner);
            let id = waits(&scene).await;
            scene.set(id, text_path(library.api), "edited");
            scene.resume(id);
            library.made().await.is_hello();
            received_the_edit(&scene, TRIES);
            assert_eq!((tap.statuses(status), tap.statuses(200)), (2, 1));
            let records = records(&scene);
            assert_eq!(records.len(), TRIES);
            assert!(records[1..].iter().all(|again| again.paused.is_none() && again.resumed == Some(Resumer::Retry)));
        }
    }
}

async fn persistent_overload_raises_status(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, std::iter::repeat_with(|| busy(429)).take(9)).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        scene.set(id, text_path(library.api), "edited");
        scene.resume(id);
        let error = library.made().await.raised();
        assert_eq!(error.status, Some(429), "{error:?}");
        assert!(error.message.contains("busy"), "{error:?}");
        received_the_edit(&scene, TRIES);
        assert_eq!(pauses(&scene).len(), 1);
    }
}

async fn overload_after_status_is_retried_by_proxy(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [busy(429), busy(529), hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.set(id, text_path(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 3);
    assert_eq!((records(&scene).len(), tap.statuses(200)), (1, 1), "the library asked once");
    assert_eq!(scene.interceptor.record(id).unwrap().answer.unwrap().retries, 2);
}

async fn upstream_error_after_status_raises(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [Answer::error(403, "not for you")]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.resume(id);
    let error = library.made().await.raised();
    assert!(error.message.contains("not for you"), "{error:?}");
    assert_eq!((scene.model.received().len(), records(&scene).len()), (1, 1));
}

async fn broken_stream_raises(library: &mut Library) {
    for grace in [NEVER, Duration::ZERO] {
        let gate = Latch::closed();
        let (scene, tap) = pausing(grace, [cut().paced_by(&gate), hello()]).await;
        library.ask(&tap.url, Manner::Stream);
        let id = waits(&scene).await;
        if grace.is_zero() {
            committed(&scene, &tap, library.api).await;
        }
        scene.resume(id);
        gate.release(1);
        // Only the bytes before the break are certain to arrive.
        assert!(library.line().await["piece"].is_u64());
        gate.open();
        let made = library.made().await;
        assert!(made.text.starts_with("Hello") && made.text.len() < HELLO.len() * LONG, "{made:?}");
        made.raised();
        assert_eq!(scene.model.received().len(), 1);
        assert_eq!(scene.model.received()[0].delivery(), Delivery::Cut);
        let problem = scene.interceptor.record(id).unwrap().answer.unwrap().problem.unwrap_or_default();
        assert!(problem.contains("cut off"), "{problem}");
    }
}

/// The SDK's own retry is not held again.
async fn broken_body_raises(library: &mut Library) {
    let (scene, tap) = pausing(NEVER, std::iter::repeat_with(cut).take(9)).await;
    library.ask(&tap.url, Manner::Plain);
    let id = waits(&scene).await;
    scene.set(id, text_path(library.api), "edited");
    scene.resume(id);
    library.made().await.raised();
    let tries = scene.model.received().len();
    assert!(tries <= TRIES, "{tries}");
    received_the_edit(&scene, tries);
    assert_eq!(pauses(&scene).len(), 1);
}

/// Frames end anywhere, and an upstream may pause inside an event.
async fn keep_alive_never_splits_event(library: &mut Library) {
    let gate = Latch::closed();
    let (scene, tap) = pausing(Duration::ZERO, [hello().in_chunks_of(90).paced_by(&gate)]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.resume(id);
    scene.model.until(|received| received.len() == 1).await;
    // Another held request shows that the interval has passed.
    let clock = Tap::on(&scene);
    let mut request = scene.request_of("clock", library.api, &turn(library.api, "hi"));
    *request.uri_mut() = format!("{}{}", clock.url, path(library.api)).parse().unwrap();
    let (_, _ticks) = scene.paused(request).await;
    let fate = || scene.model.received()[0].delivery();
    while matches!(fate(), Delivery::Pending | Delivery::Sending) {
        gate.release(1);
        let until = clock.signs(library.api) + 4;
        scene.until("time passes", || clock.signs(library.api) >= until).await;
    }
    assert_eq!(fate(), Delivery::Complete);
    library.made().await.is_hello();
}

async fn slow_reader_receives_complete_response(library: &mut Library) {
    // More than all socket buffers hold.
    let pieces: Vec<String> = (0..32).map(|number| format!("{number:08}").repeat(1 << 15)).collect();
    let long = pieces.concat();
    let script = ModelScript {
        id: "answer_1".to_owned(),
        model: "a-model".to_owned(),
        blocks: vec![ScriptBlock::Text { pieces: pieces.clone() }],
        usage: Usage { input: Some(1), output: Some(1), ..Usage::default() },
        ending: ScriptEnding::Finished(FinishReason::EndTurn),
    };
    for grace in [NEVER, Duration::ZERO] {
        let (scene, tap) = pausing(grace, [script.clone().into()]).await;
        let url = if grace.is_zero() { tap.url.clone() } else { scene.url("") };
        library.tell(&json!({"url": url, "stream": true, "said": "hi", "session": null, "slowly": true}));
        let id = waits(&scene).await;
        if grace.is_zero() {
            committed(&scene, &tap, library.api).await;
        }
        scene.resume(id);
        for piece in &pieces {
            let line = library.line().await;
            assert_eq!(line["piece"].as_u64(), Some(piece.len() as u64), "{}", line["done"]["error"]);
            library.tell(&Value::Null);
        }
        let made = library.made().await;
        assert!(made.error.is_none(), "{:?}", made.error);
        assert!(made.text == long, "{} of {} came", made.text.len(), long.len());
        scene.until("it is recorded", || scene.interceptor.record(id).unwrap().answer.is_some()).await;
        assert_eq!(scene.interceptor.record(id).unwrap().answer.unwrap().problem, None);
    }
}

macro_rules! with {
    ($library:ident: $($case:ident),+ $(,)?) => {
        $(
            eprintln!("{:?}: {}", $library.api, stringify!($case));
            $case(&mut $library).await;
        )+
    };
}

async fn every_case(api: Api) {
    let mut library = match Library::start(api) {
        Ok(library) => library,
        Err(missing) => return skip(missing),
    };
    with!(library:
        forwarded_request_is_answered,
        edit_within_grace_is_sent,
        hold_beyond_grace_is_answered,
        non_streaming_hold_is_answered,
        cancel_before_status_raises_without_retry,
        cancel_after_status_raises_without_retry,
        overload_before_status_is_retried_by_sdk,
        persistent_overload_raises_status,
        overload_after_status_is_retried_by_proxy,
        upstream_error_after_status_raises,
        broken_stream_raises,
        broken_body_raises,
        keep_alive_never_splits_event,
        slow_reader_receives_complete_response,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_sdk_passes_all_cases() {
    every_case(Api::AnthropicMessages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_sdk_passes_chat_completions_cases() {
    every_case(Api::OpenAiChat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_sdk_passes_responses_cases() {
    every_case(Api::OpenAiResponses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_sdk_passes_all_cases() {
    every_case(Api::Gemini).await;
}
