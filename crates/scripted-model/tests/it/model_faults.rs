//! Failures, delays and breaks of the scripted model's answers.

use std::io::Write as _;
use std::time::Duration;

use sayso_testkit::model::{Answer, Delivery, Latch, ModelServer, Turn};
use sayso_wire::stream::collect::from_stream;
use sayso_wire::stream::{Api, StreamProblem};
use serde_json::{Value, json};

use super::client::{Http, post, request, send};

const PATH: &str = "/v1/messages";

fn ask() -> Value {
    json!({"stream": true, "tools": [{"name": "Write"}]})
}

/// Starts a server with one answer.
fn server_with(answer: Answer) -> ModelServer {
    let server = ModelServer::start([]);
    server.then(answer);
    server
}

#[tokio::test]
async fn errors_follow_the_api_format() {
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
    let server = server_with(Answer::status(418, "exactly this").header("content-type", "text/plain"));
    assert_eq!(post(&server, PATH, &ask()).await, (418, b"exactly this".to_vec()));
}

#[tokio::test]
async fn status_is_held_until_latch_opens() {
    for version in [Http::One, Http::Two] {
        let latch = Latch::closed();
        let server = server_with(Answer::from(Turn::says("late")).held_by(&latch));
        let message = request(&server, "POST", PATH, &ask());
        let watch = async {
            server.until(|received| received.len() == 1).await;
            assert_eq!(server.received()[0].delivery(), Delivery::Pending);
            latch.release(1);
        };
        let (answer, ()) = tokio::join!(send(&server, version, message), watch);
        let answer = answer.unwrap();
        assert_eq!(answer.response.status(), 200);
        let text = String::from_utf8(answer.rest().await.unwrap()).unwrap();
        assert!(text.contains("late"), "{text}");
        server.until(|received| received[0].delivery() == Delivery::Complete).await;
    }
}

#[tokio::test]
async fn chunks_are_paced_by_latch() {
    for version in [Http::One, Http::Two] {
        let latch = Latch::closed();
        let server = server_with(Answer::from(Turn::says("paced")).paced_by(&latch).after_keep_alives(2));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        assert_eq!(server.received()[0].chunks(), 0, "the status precedes the chunks");
        for count in 1..=2 {
            latch.release(1);
            assert_eq!(answer.next().await.unwrap().unwrap(), Api::AnthropicMessages.keep_alive());
            assert_eq!((server.received()[0].chunks(), server.received()[0].delivery()), (count, Delivery::Sending));
        }
        latch.open();
        let collected = from_stream(Api::AnthropicMessages, &answer.rest().await.unwrap());
        assert_eq!((collected.blocks.len(), collected.problems.len()), (1, 0));
        server.until(|received| received[0].delivery() == Delivery::Complete).await;
    }
}

#[tokio::test]
async fn stream_breaks_after_scripted_chunks() {
    for version in [Http::One, Http::Two] {
        let server = server_with(Answer::from(Turn::says("a long text that comes in pieces")).cut_after(3));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        let mut bytes = Vec::new();
        let error = loop {
            match answer.next().await.unwrap() {
                Ok(chunk) => bytes.extend(chunk),
                Err(error) => break error,
            }
        };
        assert_eq!(bytes.windows(2).filter(|pair| pair == b"\n\n").count(), 3, "{error}");
        server.until(|received| received[0].delivery() == Delivery::Cut).await;
    }
}

#[tokio::test]
async fn hang_up_sends_no_status() {
    for version in [Http::One, Http::Two] {
        let server = server_with(Answer::hang_up());
        assert!(send(&server, version, request(&server, "POST", PATH, &ask())).await.is_err());
        assert_eq!(server.received()[0].delivery(), Delivery::Cut);
    }
}

#[tokio::test]
async fn answer_may_be_malformed_or_fail_midway() {
    let server = server_with(Answer::stream(["data: {broken\n\n", "\u{0}\u{fffd}"]));
    let (_, bytes) = post(&server, PATH, &ask()).await;
    assert_eq!(bytes, "data: {broken\n\n\u{0}\u{fffd}".as_bytes());
    assert!(matches!(from_stream(Api::AnthropicMessages, &bytes).problems[..], [StreamProblem::BrokenJson { .. }, ..]));

    server.then(Turn::says("so far").and_fails(529, "overloaded"));
    let (status, bytes) = post(&server, PATH, &ask()).await;
    let answer = from_stream(Api::AnthropicMessages, &bytes);
    assert_eq!((status, answer.blocks.len(), answer.error.unwrap().1), (200, 1, "overloaded".to_owned()));
    server.then(Turn::says("so far").and_fails(529, "overloaded"));
    let (status, _) = post(&server, PATH, &json!({"tools": [{}]})).await;
    assert_eq!(status, 529, "an answer that is not streamed fails as a whole");
}

#[tokio::test]
async fn chunks_ignore_event_boundaries() {
    let text = "ümläuts in pieces";
    let server = server_with(Answer::from(Turn::says(text)).in_chunks_of(7));
    let (_, bytes) = post(&server, PATH, &ask()).await;
    assert_eq!(server.received()[0].chunks(), bytes.len().div_ceil(7));
    assert!(String::from_utf8(bytes).unwrap().contains(text));
}

#[tokio::test]
async fn client_disconnect_is_recorded() {
    for version in [Http::One, Http::Two] {
        // Disconnects once before the status and once in the stream.
        let latch = Latch::closed();
        let server = server_with(Answer::from(Turn::says("x")).held_by(&latch));
        let message = request(&server, "POST", PATH, &ask());
        {
            let sending = std::pin::pin!(send(&server, version, message));
            let arrived = std::pin::pin!(server.until(|received| received.len() == 1));
            futures::future::select(sending, arrived).await;
        }
        if version == Http::Two {
            // Dropping the future resets the HTTP/2 stream. The HTTP/1.1 connection stays open in its own task.
            server.until(|received| received[0].delivery() == Delivery::ClientGone).await;
        }
        server.then(Answer::from(Turn::says("x")).paced_by(&latch));
        let mut answer = send(&server, version, request(&server, "POST", PATH, &ask())).await.unwrap();
        latch.release(1);
        answer.next().await.unwrap().unwrap();
        answer.hang_up();
        server.until(|received| received[1].delivery() == Delivery::ClientGone).await;
    }
}

#[test]
fn client_disconnect_before_status_is_recorded() {
    let server = server_with(Answer::from(Turn::says("x")).held_by(&Latch::closed()));
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let body = ask().to_string();
    write!(stream, "POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    server.wait_until(|received| received.len() == 1);
    drop(stream);
    server.wait_until(|received| received[0].delivery() == Delivery::ClientGone);
}

#[tokio::test]
async fn slow_reader_delays_answer_without_loss() {
    let text = "x".repeat(4 << 20);
    let server = server_with(Turn::says(&text).into());
    let answer = send(&server, Http::Two, request(&server, "POST", PATH, &ask())).await.unwrap();
    // Without a reader, the flow control window of HTTP/2 delays most of the answer.
    let all = text.len() / 24;
    assert!(server.received()[0].chunks() < all);
    assert_eq!(server.received()[0].delivery(), Delivery::Sending);
    let bytes = answer.rest().await.unwrap();
    assert_eq!(from_stream(Api::AnthropicMessages, &bytes).blocks.len(), 1);
    assert!(bytes.len() > text.len());
    server.until(|received| received[0].delivery() == Delivery::Complete).await;
}

#[tokio::test(start_paused = true)]
async fn until_ignores_paused_clock() {
    let latch = Latch::closed();
    let server = server_with(Answer::from(Turn::says("x")).held_by(&latch).paced_every(Duration::from_millis(1)));
    let message = request(&server, "POST", PATH, &ask());
    let watch = async {
        server.until(|received| received.len() == 1).await;
        // A paused clock advances when all tasks wait, so a limit by this clock would expire here.
        tokio::time::sleep(Duration::from_hours(1)).await;
        latch.open();
        server.until(|received| received[0].delivery() == Delivery::Complete).await;
    };
    let read = async { send(&server, Http::One, message).await.unwrap().rest().await.unwrap() };
    let (bytes, ()) = tokio::join!(read, watch);
    assert!(!bytes.is_empty());
}
