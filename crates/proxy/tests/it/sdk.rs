//! The APIs' official Python libraries as clients of the gateway: waited for shorter and longer than the grace, edited, cancelled,
//! refused by an upstream that has too much to do, cut, and read slowly.
//!
//! `scripts/setup --sdk` puts them into a virtual environment in `~/.cache/sayso`. Where it cannot, a test is skipped with the reason.
//! A library runs in a process of its own, and what it is to ask goes over stdin; one process for all cases of an API, as it takes
//! seconds to start.

#![allow(clippy::print_stderr, reason = "the cases of a library are printed as they begin")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso_proxy::Settings;
use sayso_review::{PauseReason, RequestEnd, RequestId, RequestMode, RequestRecord, Resumer};
use sayso_testkit::model::{Answer, Fate, Gate, ModelServer, Turn};
use sayso_testkit::skip::skip;
use sayso_wire::stream::{Api, CANCELED, Ending, Finish, Script, ScriptBlock, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::scene::{NEVER, Scene, now, path, said_at, settings, turn};

/// How long a test waits for something that must happen.
const LIMIT: Duration = Duration::from_mins(1);
/// What the model says: more than one piece of a stream.
const HELLO: &str = "Hello, this is what the model says when it is asked.";
/// How many times over it says that in a long answer.
const LONG: usize = 200;
/// How often a library sends a request: the first time, and twice again.
const TRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Plain,
    Stream,
}

const MANNERS: [Manner; 2] = [Manner::Plain, Manner::Stream];

/// The interpreter that has the libraries.
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

/// A library in a process of its own.
struct Library {
    api: Api,
    child: Child,
    stdin: ChildStdin,
    lines: mpsc::UnboundedReceiver<Value>,
}

/// What a library made of an answer.
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
    /// The error that it raised, if it did.
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
            // Neither keys nor proxies of whoever runs the tests.
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
                // The test may be over.
                let _ = sender.send(serde_json::from_str(&line).expect("the script writes JSON"));
            }
        });
        Ok(Self { api, child, stdin, lines })
    }

    fn tell(&mut self, line: &Value) {
        writeln!(self.stdin, "{line}").expect("the script reads");
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(LIMIT, self.lines.recv()).await.expect("the library hangs");
        line.expect("the script goes on")
    }

    fn ask(&mut self, url: &str, manner: Manner) {
        let stream = manner == Manner::Stream;
        self.tell(&json!({"url": url, "stream": stream, "said": "hi", "session": null, "slowly": false}));
    }

    /// What the library makes of an answer, once it is over.
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
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The wire between a library and the gateway, so that a test sees what the library has been sent.
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
                // The test may be over.
                let Ok(server) = TcpStream::connect(&gateway) else { return };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || copy(from, to, None));
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || copy(server, client, Some(&seen)));
            }
        });
        Self { url, came }
    }

    /// How often something was sent to the library.
    fn count(&self, what: &[u8]) -> usize {
        self.came.lock().unwrap().windows(what.len()).filter(|window| *window == what).count()
    }

    /// Signs of life that were sent, each a chunk of its own.
    fn signs(&self, api: Api) -> usize {
        let sign = api.keep_alive();
        self.count(&[format!("{:X}\r\n", sign.len()).as_bytes(), sign, b"\r\n"].concat())
    }

    fn statuses(&self, status: u16) -> usize {
        self.count(format!("HTTP/1.1 {status} ").as_bytes())
    }
}

/// Passes on what comes until there is no more, and its end.
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
    // Whoever is on the other side may have gone first.
    let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
}

/// A scene in which every turn waits, with so long a grace.
async fn pausing(grace: Duration, answers: impl IntoIterator<Item = Answer>) -> (Scene, Tap) {
    let model = ModelServer::start([]);
    for answer in answers {
        model.then(answer);
    }
    let settings = Settings { grace, keep_alive: Duration::from_millis(5), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let tap = Tap::on(&scene);
    (scene, tap)
}

fn hello() -> Answer {
    Turn::says(HELLO).into()
}

/// An upstream with too much to do, which the libraries are to ask again at once.
fn busy(status: u16) -> Answer {
    Answer::error(status, "busy").header("retry-after-ms", "1")
}

/// A long answer that breaks in the middle.
fn cut() -> Answer {
    Answer::from(Turn::says(&HELLO.repeat(LONG))).in_chunks_of(1_500).cut_after(2)
}

async fn waits(scene: &Scene) -> RequestId {
    scene.until("a request waits", || !scene.desk.waiting().is_empty()).await;
    scene.desk.waiting()[0]
}

/// Waits until the library has its status and some signs of life.
async fn committed(scene: &Scene, tap: &Tap, api: Api) {
    scene.until("the library has its status and signs of life", || tap.signs(api) >= 3).await;
    assert_eq!((tap.statuses(200), scene.model.received().len()), (1, 0));
}

/// All requests that came, the first one first.
fn records(scene: &Scene) -> Vec<RequestRecord> {
    let mut records = scene.desk.records(None, None, 100).unwrap();
    records.sort_by_key(|record| record.request);
    records
}

/// Why the requests waited that did.
fn pauses(scene: &Scene) -> Vec<PauseReason> {
    records(scene).into_iter().filter_map(|record| record.paused).collect()
}

/// Whether all that the model received is the request with its edit.
#[track_caller]
fn received_the_edit(scene: &Scene, times: usize) {
    let received = scene.model.received();
    assert_eq!(received.len(), times);
    for request in &received {
        assert_eq!(request.last_user_text(), "edited");
        assert_eq!(request.raw, received[0].raw);
    }
}

async fn what_passes_is_answered(library: &mut Library) {
    for manner in MANNERS {
        // One that names its session is passed on while it comes, another is taken in whole before.
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

async fn what_is_edited_within_the_grace_is_sent_so_and_answered(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, [hello()]).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        assert_eq!((tap.count(b"HTTP"), scene.model.received().len()), (0, 0));
        scene.set(id, said_at(library.api), "edited");
        scene.resume(id);
        library.made().await.is_hello();
        received_the_edit(&scene, 1);
        assert_eq!(records(&scene).len(), 1);
    }
}

async fn one_that_waits_longer_than_the_grace_gets_the_answer_after_signs_of_life(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.set(id, said_at(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 1);
    assert_eq!(records(&scene).len(), 1);
}

/// Without a stream there are no signs of life: the library waits for as long as it does by itself.
async fn one_without_a_stream_waits_longer_than_the_grace_too(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Plain);
    let id = waits(&scene).await;
    scene.set(id, said_at(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 1);
}

async fn one_that_is_cancelled_before_its_status_raises_and_is_not_sent_again(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, [hello()]).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        scene.desk.cancel(id, now()).unwrap();
        let error = library.made().await.raised();
        assert!(error.message.contains(CANCELED), "{error:?}");
        assert_eq!((error.status, tap.statuses(400)), (Some(400), 1), "{error:?}");
        assert_eq!(scene.model.received().len(), 0);
        assert_eq!(records(&scene).len(), 1, "the library did not try again");
        assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    }
}

async fn one_that_is_cancelled_after_its_status_raises_and_is_not_sent_again(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.desk.cancel(id, now()).unwrap();
    let made = library.made().await;
    assert_eq!(made.text, "");
    let error = made.raised();
    assert!(error.message.contains(CANCELED), "{error:?}");
    assert_eq!(scene.model.received().len(), 0);
    assert_eq!(records(&scene).len(), 1, "the library did not try again");
    assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
}

async fn an_overload_before_the_status_is_tried_again_by_the_library_and_asks_nobody_again(library: &mut Library) {
    for manner in MANNERS {
        for status in [429, 529] {
            let (scene, tap) = pausing(NEVER, [busy(status), busy(status), hello()]).await;
            library.ask(&tap.url, manner);
            let id = waits(&scene).await;
            scene.set(id, said_at(library.api), "edited");
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

async fn an_overload_that_does_not_end_raises_with_its_status(library: &mut Library) {
    for manner in MANNERS {
        let (scene, tap) = pausing(NEVER, std::iter::repeat_with(|| busy(429)).take(9)).await;
        library.ask(&tap.url, manner);
        let id = waits(&scene).await;
        scene.set(id, said_at(library.api), "edited");
        scene.resume(id);
        let error = library.made().await.raised();
        assert_eq!(error.status, Some(429), "{error:?}");
        assert!(error.message.contains("busy"), "{error:?}");
        received_the_edit(&scene, TRIES);
        assert_eq!(pauses(&scene).len(), 1);
    }
}

async fn an_overload_after_the_status_is_tried_again_by_us(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [busy(429), busy(529), hello()]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.set(id, said_at(library.api), "edited");
    scene.resume(id);
    library.made().await.is_hello();
    received_the_edit(&scene, 3);
    assert_eq!((records(&scene).len(), tap.statuses(200)), (1, 1), "the library asked once");
    assert_eq!(scene.desk.record(id).unwrap().answer.unwrap().retries, 2);
}

async fn another_error_after_the_status_raises_with_what_the_upstream_said(library: &mut Library) {
    let (scene, tap) = pausing(Duration::ZERO, [Answer::error(403, "not for you")]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.resume(id);
    let error = library.made().await.raised();
    assert!(error.message.contains("not for you"), "{error:?}");
    assert_eq!((scene.model.received().len(), records(&scene).len()), (1, 1));
}

async fn a_stream_that_is_cut_raises(library: &mut Library) {
    for grace in [NEVER, Duration::ZERO] {
        let gate = Gate::shut();
        let (scene, tap) = pausing(grace, [cut().paced_by(&gate), hello()]).await;
        library.ask(&tap.url, Manner::Stream);
        let id = waits(&scene).await;
        if grace.is_zero() {
            committed(&scene, &tap, library.api).await;
        }
        scene.resume(id);
        gate.let_through(1);
        // Only what it has already is sure to arrive.
        assert!(library.line().await["piece"].is_u64());
        gate.open();
        let made = library.made().await;
        assert!(made.text.starts_with("Hello") && made.text.len() < HELLO.len() * LONG, "{made:?}");
        made.raised();
        assert_eq!(scene.model.received().len(), 1);
        assert_eq!(scene.model.received()[0].fate(), Fate::Cut);
        let problem = scene.desk.record(id).unwrap().answer.unwrap().problem.unwrap_or_default();
        assert!(problem.contains("cut off"), "{problem}");
    }
}

/// A library that tries again by itself asks nobody again.
async fn a_plain_answer_that_is_cut_raises(library: &mut Library) {
    let (scene, tap) = pausing(NEVER, std::iter::repeat_with(cut).take(9)).await;
    library.ask(&tap.url, Manner::Plain);
    let id = waits(&scene).await;
    scene.set(id, said_at(library.api), "edited");
    scene.resume(id);
    library.made().await.raised();
    let tries = scene.model.received().len();
    assert!(tries <= TRIES, "{tries}");
    received_the_edit(&scene, tries);
    assert_eq!(pauses(&scene).len(), 1);
}

/// Frames end anywhere. An upstream that is slow within an event is no reason to break it.
async fn a_sign_of_life_never_comes_within_an_event(library: &mut Library) {
    let gate = Gate::shut();
    let (scene, tap) = pausing(Duration::ZERO, [hello().in_chunks_of(90).paced_by(&gate)]).await;
    library.ask(&tap.url, Manner::Stream);
    let id = waits(&scene).await;
    committed(&scene, &tap, library.api).await;
    scene.resume(id);
    scene.model.until(|received| received.len() == 1).await;
    // Another one that waits tells the time.
    let clock = Tap::on(&scene);
    let mut request = scene.request_of("clock", library.api, &turn(library.api, "hi"));
    *request.uri_mut() = format!("{}{}", clock.url, path(library.api)).parse().unwrap();
    let (_, _ticks) = scene.paused(request).await;
    let fate = || scene.model.received()[0].fate();
    while matches!(fate(), Fate::Waiting | Fate::Answering) {
        gate.let_through(1);
        let until = clock.signs(library.api) + 4;
        scene.until("time passes", || clock.signs(library.api) >= until).await;
    }
    assert_eq!(fate(), Fate::Answered);
    library.made().await.is_hello();
}

async fn a_reader_that_is_slow_gets_everything(library: &mut Library) {
    // More than the buffers of the sockets on the way hold.
    let pieces: Vec<String> = (0..32).map(|number| format!("{number:08}").repeat(1 << 15)).collect();
    let long = pieces.concat();
    let script = Script {
        id: "answer_1".to_owned(),
        model: "a-model".to_owned(),
        blocks: vec![ScriptBlock::Text { pieces: pieces.clone() }],
        usage: Usage { input: Some(1), output: Some(1), ..Usage::default() },
        ending: Ending::Finished(Finish::EndTurn),
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
        scene.until("it is recorded", || scene.desk.record(id).unwrap().answer.is_some()).await;
        assert_eq!(scene.desk.record(id).unwrap().answer.unwrap().problem, None);
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
        what_passes_is_answered,
        what_is_edited_within_the_grace_is_sent_so_and_answered,
        one_that_waits_longer_than_the_grace_gets_the_answer_after_signs_of_life,
        one_without_a_stream_waits_longer_than_the_grace_too,
        one_that_is_cancelled_before_its_status_raises_and_is_not_sent_again,
        one_that_is_cancelled_after_its_status_raises_and_is_not_sent_again,
        an_overload_before_the_status_is_tried_again_by_the_library_and_asks_nobody_again,
        an_overload_that_does_not_end_raises_with_its_status,
        an_overload_after_the_status_is_tried_again_by_us,
        another_error_after_the_status_raises_with_what_the_upstream_said,
        a_stream_that_is_cut_raises,
        a_plain_answer_that_is_cut_raises,
        a_sign_of_life_never_comes_within_an_event,
        a_reader_that_is_slow_gets_everything,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_anthropic_library_works_through_the_gateway() {
    every_case(Api::AnthropicMessages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_library_works_through_the_gateway_with_chat_completions() {
    every_case(Api::OpenAiChat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_library_works_through_the_gateway_with_responses() {
    every_case(Api::OpenAiResponses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gemini_library_works_through_the_gateway() {
    every_case(Api::Gemini).await;
}
