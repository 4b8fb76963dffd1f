//! Limits on the size and duration of requests.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use sayso_server::Timing;

use crate::raw::{Answer, connect, exchange, rest, status_with, token_header};
use crate::scene::{Scene, TIME_LIMIT};

const HOST: (&str, &str) = ("host", "localhost");

/// Short enough for a test, long enough for a busy machine.
const SHORT_TIMING: Timing = Timing {
    head: Duration::from_secs(2),
    idle: Duration::from_secs(2),
    body: Duration::from_secs(2),
    ..Timing::DEFAULT
};

/// More than the server accepts.
const OVERSIZED_BYTES: usize = 96 << 20;

/// Bytes that may be in flight: the largest socket buffers of both ends, and one piece of the sender.
fn max_bytes_in_flight() -> usize {
    let most = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        text.split_whitespace().last().unwrap().parse::<usize>().unwrap()
    };
    most("tcp_rmem") + most("tcp_wmem") + (4 << 20)
}

fn head(token: Option<(&str, &str)>, length: &str) -> String {
    let token = token.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
    format!(
        "POST /sayso.v1.ReviewService/Propose HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/proto\r\n\
         {token}{length}\r\n\r\n"
    )
}

/// Sends pieces until the server closes the connection. Returns the number of bytes and the response.
fn send_until_closed(address: SocketAddr, head: &str, piece: &[u8], max: usize) -> (usize, Answer) {
    let mut stream = connect(address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut sent = 0;
    while sent < max {
        match stream.write_all(piece) {
            Ok(()) => sent += piece.len(),
            Err(error) if [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()) => break,
            Err(error) => panic!("the server neither reads nor closes: {error}"),
        }
    }
    // The reset of the connection may discard the response.
    (sent, rest(&mut stream))
}

#[test]
fn oversized_body_is_rejected_before_arrival() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = token_header();
    let token = Some((right.0, right.1.as_str()));
    let megabyte = vec![b'a'; 1 << 20];
    let (sent, answer) =
        send_until_closed(server.address, &head(token, "content-length: 10000000000"), &megabyte, 4 * OVERSIZED_BYTES);
    assert!(sent <= OVERSIZED_BYTES + max_bytes_in_flight(), "{sent} bytes were taken");
    assert_ne!(answer.status, 200);
    // A chunked body has no announced size.
    let mut chunk = b"100000\r\n".to_vec();
    chunk.extend_from_slice(&megabyte);
    chunk.extend_from_slice(b"\r\n");
    let (sent, answer) =
        send_until_closed(server.address, &head(token, "transfer-encoding: chunked"), &chunk, 4 * OVERSIZED_BYTES);
    assert!(sent <= OVERSIZED_BYTES + max_bytes_in_flight(), "{sent} bytes were taken");
    assert_ne!(answer.status, 200);
    assert_eq!(status_with(server.address, &[HOST, (right.0, &right.1)]).status, 200);
}

#[test]
fn unauthenticated_body_is_not_read() {
    let scene = Scene::new();
    let server = scene.serve();
    let megabyte = vec![b'a'; 1 << 20];
    for length in ["content-length: 10000000000", "transfer-encoding: chunked"] {
        let (sent, answer) = send_until_closed(server.address, &head(None, length), &megabyte, OVERSIZED_BYTES);
        assert!(sent <= max_bytes_in_flight(), "the server read {sent} bytes of {length}");
        assert!([0, 401].contains(&answer.status), "{answer:?}");
    }
}

#[test]
fn contradictory_lengths_are_rejected() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = token_header();
    for lengths in [
        "content-length: 2\r\ncontent-length: 40",
        "content-length: -1",
        "content-length: 2, 3",
        "content-length: 99999999999999999999999999",
        "transfer-encoding: chunked, identity",
    ] {
        let request = format!(
            "POST /sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n\
             content-type: application/json\r\n{lengths}\r\nconnection: close\r\n\r\n{{}}",
            right.0, right.1
        );
        let answer = exchange(server.address, request.as_bytes());
        assert_eq!(answer.status, 400, "{lengths}: {answer:?}");
    }
}

#[test]
fn excessive_headers_are_rejected() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = token_header();
    let names: Vec<String> = (0..200).map(|number| format!("x-header-{number}")).collect();
    let mut many: Vec<(&str, &str)> = vec![HOST, (right.0, &right.1)];
    many.extend(names.iter().map(|name| (name.as_str(), "value")));
    assert_eq!(status_with(server.address, &many).status, 431);
    let large = "a".repeat(128 << 10);
    let answer = status_with(server.address, &[HOST, (right.0, &right.1), ("x-large", &large)]);
    assert!([0, 431].contains(&answer.status), "{answer:?}");
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(128 << 10));
    let answer = exchange(server.address, long.as_bytes());
    assert!([0, 414, 431].contains(&answer.status), "{answer:?}");
    assert_eq!(status_with(server.address, &[HOST, (right.0, &right.1)]).status, 200);
}

/// Sends single bytes until the server closes the connection. Fails after a time limit.
fn trickle(stream: &mut TcpStream, bytes: &mut impl Iterator<Item = u8>) {
    let start = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    loop {
        assert!(start.elapsed() < TIME_LIMIT, "the connection is still open");
        if bytes.next().is_some_and(|byte| stream.write_all(&[byte]).is_err()) {
            return;
        }
        // Waits for the end or a response before the next byte.
        match stream.read(&mut [0; 256]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(_) => return,
        }
    }
}

#[test]
fn slow_sender_is_disconnected() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| http.timing = SHORT_TIMING);
    let right = token_header();
    let token = Some((right.0, right.1.as_str()));
    let endless = || std::iter::repeat(b'a');
    let openings: [(&str, Vec<u8>); 6] = [
        ("nothing at all", Vec::new()),
        ("half a line", b"POST /say".to_vec()),
        ("half a header", b"POST / HTTP/1.1\r\nhost: localhost\r\nx-a: b".to_vec()),
        ("the start of HTTP/2", b"PRI * HTTP/2.0\r\n".to_vec()),
        ("a body by length", head(token, "content-length: 1000").into_bytes()),
        ("a body in chunks", [head(token, "transfer-encoding: chunked").as_bytes(), b"ffff\r\n"].concat()),
    ];
    std::thread::scope(|scope| {
        for (_, opening) in &openings {
            scope.spawn(|| {
                let mut stream = connect(server.address);
                stream.write_all(opening).unwrap();
                trickle(&mut stream, &mut endless());
            });
        }
        // A silent client is disconnected, too.
        for (_, opening) in &openings {
            scope.spawn(|| {
                let mut stream = connect(server.address);
                stream.write_all(opening).unwrap();
                trickle(&mut stream, &mut std::iter::empty());
            });
        }
        // Other clients are served meanwhile.
        for _ in 0..20 {
            assert_eq!(status_with(server.address, &[HOST, (right.0, &right.1)]).status, 200);
        }
    });
}
