//! The scripted model, asked by hand: how it fails, waits and breaks.

use std::io::Write as _;
use std::time::Duration;

use sayso_testkit::model::{Answer, Fate, Gate, ModelServer, Turn};
use sayso_wire::stream::collect::from_stream;
use sayso_wire::stream::{Api, Problem};
use serde_json::{Value, json};

use super::client::{Http, post, request, send};

const PATH: &str = "/v1/messages";

fn ask() -> Value {
    json!({"stream": true, "tools": [{"name": "Write"}]})
}

/// A server that has one answer.
fn with(answer: Answer) -> ModelServer {
    let server = ModelServer::start([]);
    server.then(answer);
    server
}

#[tokio::test]
async fn errors_have_the_form_of_their_api() {
    let paths = ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/x:generateContent"];
    for (api, path) in Api::ALL.into_iter().zip(paths) {
        for status in [429, 500, 503, 529] {
            let server = ModelServer::start([]);
            server.when(|_| true, Answer::error(status, "not today").header("retry-after", "0"));
            let (got, body) = post(&server, path, &json!({})).await;
            let answer = sayso_wire::stream::collect::from_body(api, &body).unwrap();
            assert_eq!((got, answer.error.map(|(_, message)| message)), (status, Some("not today".to_owned())));
        }
    }
    let server = with(Answer::status(418, "exactly this").header("content-type", "text/plain"));
    assert_eq!(post(&server, PATH, &ask()).await, (418, b"exactly this".to_vec()));
}

#[tokio::test]
async fn nothing_comes_before_the_gate_opens() {
    for version in [Http::One, Http::Two] {
        let gate = Gate::shut();
        let server = with(Answer::from(Turn::says("late")).waits_at(&gate));
        let asked = request(&server, "POST", PATH, &ask());
        let watch = async {
            server.until(|received| received.len() == 1).await;
            assert_eq!(server.received()[0].fate(), Fate::Waiting);
            gate.let_through(1);
        };
        let (answer, ()) = tokio::join!(send(&server, version, asked), watch);
        let answer = answer.unwrap();
        assert_eq!(answer.response.status(), 200);
        let text = String::from_utf8(answer.rest().await.unwrap()).unwrap();
        assert!(text.contains("late"), "{text}");
        server.until(|received| received[0].fate() == Fate::Answered).await;
    }
}

#[tokio::test]
async fn chunks_come_one_by_one_as_the_gate_lets_them() {
    for version in [Http::One, Http::Two] {
        let gate = Gate::shut();
        let server = with(Answer::from(Turn::says("paced")).paced_by(&gate).after_keep_alives(2));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        assert_eq!(server.received()[0].chunks(), 0, "the status came alone");
        for count in 1..=2 {
            gate.let_through(1);
            assert_eq!(answer.next().await.unwrap().unwrap(), Api::AnthropicMessages.keep_alive());
            assert_eq!((server.received()[0].chunks(), server.received()[0].fate()), (count, Fate::Answering));
        }
        gate.open();
        let collected = from_stream(Api::AnthropicMessages, &answer.rest().await.unwrap());
        assert_eq!((collected.blocks.len(), collected.problems.len()), (1, 0));
        server.until(|received| received[0].fate() == Fate::Answered).await;
    }
}

#[tokio::test]
async fn a_stream_is_cut_after_what_was_to_arrive() {
    for version in [Http::One, Http::Two] {
        let server = with(Answer::from(Turn::says("a long text that comes in pieces")).cut_after(3));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        let mut came = Vec::new();
        let error = loop {
            match answer.next().await.unwrap() {
                Ok(bytes) => came.extend(bytes),
                Err(error) => break error,
            }
        };
        assert_eq!(came.windows(2).filter(|pair| pair == b"\n\n").count(), 3, "{error}");
        server.until(|received| received[0].fate() == Fate::Cut).await;
    }
}

#[tokio::test]
async fn a_connection_ends_without_a_status() {
    for version in [Http::One, Http::Two] {
        let server = with(Answer::hang_up());
        assert!(send(&server, version, request(&server, "POST", PATH, &ask())).await.is_err());
        assert_eq!(server.received()[0].fate(), Fate::Cut);
    }
}

#[tokio::test]
async fn a_stream_may_be_no_stream_at_all_and_an_answer_may_fail_in_its_middle() {
    let server = with(Answer::stream(["data: {broken\n\n", "\u{0}\u{fffd}"]));
    let (_, bytes) = post(&server, PATH, &ask()).await;
    assert_eq!(bytes, "data: {broken\n\n\u{0}\u{fffd}".as_bytes());
    assert!(matches!(from_stream(Api::AnthropicMessages, &bytes).problems[..], [Problem::BrokenJson { .. }, ..]));

    server.then(Turn::says("so far").and_fails(529, "overloaded"));
    let (status, bytes) = post(&server, PATH, &ask()).await;
    let answer = from_stream(Api::AnthropicMessages, &bytes);
    assert_eq!((status, answer.blocks.len(), answer.error.unwrap().1), (200, 1, "overloaded".to_owned()));
    server.then(Turn::says("so far").and_fails(529, "overloaded"));
    let (status, _) = post(&server, PATH, &json!({"tools": [{}]})).await;
    assert_eq!(status, 529, "an answer that is not streamed fails as a whole");
}

#[tokio::test]
async fn chunks_may_end_anywhere() {
    let text = "ümläuts in pieces";
    let server = with(Answer::from(Turn::says(text)).in_chunks_of(7));
    let (_, bytes) = post(&server, PATH, &ask()).await;
    assert_eq!(server.received()[0].chunks(), bytes.len().div_ceil(7));
    assert!(String::from_utf8(bytes).unwrap().contains(text));
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    for version in [Http::One, Http::Two] {
        // Once before the status, once in the stream.
        let gate = Gate::shut();
        let server = with(Answer::from(Turn::says("x")).waits_at(&gate));
        let asked = request(&server, "POST", PATH, &ask());
        {
            let sending = std::pin::pin!(send(&server, version, asked));
            let arrived = std::pin::pin!(server.until(|received| received.len() == 1));
            futures::future::select(sending, arrived).await;
        }
        if version == Http::Two {
            // Its stream is reset when nobody waits for the answer any more; HTTP/1.1 has only its connection to close.
            server.until(|received| received[0].fate() == Fate::ClientGone).await;
        }
        server.then(Answer::from(Turn::says("x")).paced_by(&gate));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        gate.let_through(1);
        answer.next().await.unwrap().unwrap();
        answer.hang_up();
        server.until(|received| received[1].fate() == Fate::ClientGone).await;
    }
}

#[test]
fn a_client_that_closes_while_it_waits_is_noticed() {
    let server = with(Answer::from(Turn::says("x")).waits_at(&Gate::shut()));
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let body = ask().to_string();
    write!(stream, "POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    server.wait_until(|received| received.len() == 1);
    drop(stream);
    server.wait_until(|received| received[0].fate() == Fate::ClientGone);
}

#[tokio::test]
async fn a_slow_reader_holds_the_answer_back_and_loses_nothing() {
    let text = "x".repeat(4 << 20);
    let server = with(Turn::says(&text).into());
    let answer = send(&server, Http::Two, request(&server, "POST", PATH, &ask())).await.unwrap();
    // Nothing is read yet, so most of it has to wait: far more than any window.
    let all = text.len() / 24;
    assert!(server.received()[0].chunks() < all);
    assert_eq!(server.received()[0].fate(), Fate::Answering);
    let bytes = answer.rest().await.unwrap();
    assert_eq!(from_stream(Api::AnthropicMessages, &bytes).blocks.len(), 1);
    assert!(bytes.len() > text.len());
    server.until(|received| received[0].fate() == Fate::Answered).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_model_takes_real_time_only() {
    let gate = Gate::shut();
    let server = with(Answer::from(Turn::says("x")).waits_at(&gate).paced_every(Duration::from_millis(1)));
    let asked = request(&server, "POST", PATH, &ask());
    let watch = async {
        server.until(|received| received.len() == 1).await;
        // A clock that stands still jumps ahead whenever everybody waits; a limit by this clock would be over.
        tokio::time::sleep(Duration::from_hours(1)).await;
        gate.open();
        server.until(|received| received[0].fate() == Fate::Answered).await;
    };
    let read = async { send(&server, Http::One, asked).await.unwrap().rest().await.unwrap() };
    let (bytes, ()) = tokio::join!(read, watch);
    assert!(!bytes.is_empty());
}
