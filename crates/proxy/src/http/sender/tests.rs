//! Reuse of connections, and errors.

#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::super::pool::IDLE_TIMEOUT;
use super::*;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Accepts connections and passes them on.
async fn server() -> (SocketAddr, mpsc::UnboundedReceiver<BufReader<TcpStream>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            sender.send(BufReader::new(stream)).unwrap();
        }
    });
    (address, accepted)
}

/// The head of a request.
async fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "{head}");
    }
    head
}

fn request(to: SocketAddr) -> Request<Outbound> {
    let body = super::super::upstream::buffered(bytes::Bytes::new());
    Request::get(format!("http://{to}/a?b")).header("x-one", "1").body(body).unwrap()
}

async fn text(answer: Response<Incoming>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn until_free(sender: &Sender) {
    while !lock(&sender.pool).connections.iter().all(|kept| kept.protocol.is_ready()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connection_with_read_response_is_reused() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    let serve = async {
        let mut stream = accepted.recv().await.unwrap();
        for _ in 0..5 {
            let head = head(&mut stream).await;
            assert!(head.starts_with("GET /a?b HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(&format!("\r\nhost: {to}\r\n")), "{head}");
            stream.write_all(ANSWER).await.unwrap();
        }
        stream
    };
    let ask = async {
        for _ in 0..5 {
            assert_eq!(text(sender.send(request(to)).await.unwrap()).await, "ok");
            until_free(&sender).await;
        }
    };
    let (_open, ()) = tokio::join!(serve, ask);
    assert!(accepted.try_recv().is_err(), "a second connection");
    assert_eq!(lock(&sender.pool).connections.len(), 1);
}

#[tokio::test]
async fn connection_with_unread_response_is_not_reused() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    let (first, mut one) = tokio::join!(sender.send(request(to)), async {
        let mut one = accepted.recv().await.unwrap();
        head(&mut one).await;
        one.write_all(&ANSWER[..ANSWER.len() - 1]).await.unwrap();
        one
    });
    let first = first.unwrap();
    let (second, _other) = tokio::join!(sender.send(request(to)), async {
        let mut other = accepted.recv().await.unwrap();
        head(&mut other).await;
        other.write_all(ANSWER).await.unwrap();
        other
    });
    assert_eq!(text(second.unwrap()).await, "ok");
    // A waiting request takes the first connection as soon as it is free.
    let uri = request(to).uri().clone();
    lock(&sender.pool).connections.truncate(1);
    let free = poll_fn(|cx| lock(&sender.pool).poll_free(&uri, cx));
    let (free, read, ()) = tokio::join!(free, text(first), async { one.write_all(b"k").await.unwrap() });
    assert_eq!(read, "ok");
    assert!(free.protocol.is_ready());
    assert!(lock(&sender.pool).connections.is_empty());
}

#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn waiting_requests_do_not_wake_each_other() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    let (answer, _one) = tokio::join!(sender.send(request(to)), async {
        let mut one = accepted.recv().await.unwrap();
        head(&mut one).await;
        one.write_all(&ANSWER[..ANSWER.len() - 1]).await.unwrap();
        one
    });
    let (_answer, uri) = (answer.unwrap(), request(to).uri().clone());
    let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
    let mut waiting = wakes.clone().map(|wakes| (Box::pin(wait_for_free(&sender.pool, &uri)), wakes));
    for _ in 0..3 {
        for (waits, wakes) in &mut waiting {
            let waker = Arc::clone(wakes).into();
            assert!(waits.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        }
    }
    assert_eq!(wakes.map(|wakes| wakes.0.load(std::sync::atomic::Ordering::Relaxed)), [0, 0]);
    drop(waiting);
    let again = poll_fn(|cx| lock(&sender.pool).poll_free(&uri, cx));
    assert!(tokio::time::timeout(Duration::ZERO, again).await.is_err());
}

#[tokio::test]
async fn closed_connection_is_replaced() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    for _ in 0..3 {
        let serve = async {
            let mut stream = accepted.recv().await.unwrap();
            head(&mut stream).await;
            stream.write_all(ANSWER).await.unwrap();
        };
        let (answer, ()) = tokio::join!(sender.send(request(to)), serve);
        assert_eq!(text(answer.unwrap()).await, "ok");
        while !lock(&sender.pool).connections.iter().all(|kept| kept.protocol.is_closed()) {
            tokio::task::yield_now().await;
        }
    }
    assert!(lock(&sender.pool).connections.len() <= 1, "closed connections stay in the pool");
}

#[tokio::test]
async fn unwritten_request_is_returned_for_retry() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    let serve = async {
        let mut stream = accepted.recv().await.unwrap();
        head(&mut stream).await;
        stream.write_all(ANSWER).await.unwrap();
        stream
    };
    let (answer, stream) = tokio::join!(sender.send(request(to)), serve);
    assert_eq!(text(answer.unwrap()).await, "ok");
    until_free(&sender).await;
    // Taken while it is free, and closed by the server before the request is written.
    let uri = request(to).uri().clone();
    let mut taken = lock(&sender.pool).take(&uri).unwrap();
    drop(stream);
    while !taken.protocol.is_closed() {
        tokio::task::yield_now().await;
    }
    let unsent = taken.protocol.send(request(to)).await.unwrap_err().request.unwrap();
    assert_eq!(unsent.uri(), &uri);
    assert_eq!(unsent.headers(), request(to).headers());
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let (to, mut accepted) = server().await;
    let sender = Sender::new();
    let serve = async {
        let mut stream = accepted.recv().await.unwrap();
        head(&mut stream).await;
        stream.write_all(&ANSWER[..ANSWER.len() - 1]).await.unwrap();
        stream
    };
    let (answer, mut stream) = tokio::join!(sender.send(request(to)), serve);
    let answer = answer.unwrap();
    lock(&sender.pool).connections[0].last_used = Instant::now().checked_sub(IDLE_TIMEOUT).unwrap();
    lock(&sender.pool).sweep();
    assert_eq!(lock(&sender.pool).connections.len(), 1, "its response is still read");
    stream.write_all(b"k").await.unwrap();
    assert_eq!(text(answer).await, "ok");
    until_free(&sender).await;
    lock(&sender.pool).sweep();
    assert_eq!(lock(&sender.pool).connections.len(), 1, "its response was read just now");
    lock(&sender.pool).connections[0].last_used = Instant::now().checked_sub(IDLE_TIMEOUT).unwrap();
    lock(&sender.pool).sweep();
    assert!(lock(&sender.pool).connections.is_empty());
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn refused_and_broken_connections_differ() {
    let sender = Sender::new();
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(matches!(sender.send(request(unused)).await, Err(SendError::Connect(_))));
    let (to, mut accepted) = server().await;
    let (answer, ()) = tokio::join!(sender.send(request(to)), async {
        head(&mut accepted.recv().await.unwrap()).await;
    });
    assert!(matches!(answer, Err(SendError::Broken(_))));
}
