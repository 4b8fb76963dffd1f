//! Event streams: complete and ordered across failing connections, without cost for others.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sayso_api::client::{Client, Connection, Dial, PreviewDetail, Reach, RetryBudget, Role, Watched};
use sayso_review::Answer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

use crate::scene::{Dice, Running, Scene, TOKEN, ask, no, verdict, within, write};

/// Connects with connections that fail after a random number of bytes.
#[derive(Debug)]
struct Breaking {
    address: SocketAddr,
    seed: u64,
    dialled: Arc<AtomicU64>,
}

impl Dial for Breaking {
    fn dial(&self) -> BoxFuture<'static, io::Result<Connection>> {
        let number = self.dialled.fetch_add(1, Ordering::Relaxed);
        let mut dice = Dice::new(self.seed.wrapping_add(number.wrapping_mul(7919)));
        let address = self.address;
        async move {
            if dice.below(8) == 0 {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let stream = TcpStream::connect(address).await?;
            Ok(Box::new(Broken { stream, left: dice.below(6_000), ends: dice.below(2) == 0 }) as Connection)
        }
        .boxed()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn authority(&self) -> String {
        self.address.to_string()
    }
}

/// A connection that fails after a number of bytes.
struct Broken {
    stream: TcpStream,
    left: u64,
    /// `true`: closed. `false`: reset.
    ends: bool,
}

impl AsyncRead for Broken {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(if self.ends { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) });
        }
        let most = usize::try_from(self.left).unwrap().min(buffer.remaining());
        let mut part = vec![0; most];
        let mut part = ReadBuf::new(&mut part);
        match Pin::new(&mut self.stream).poll_read(cx, &mut part) {
            Poll::Ready(Ok(())) => {
                self.left -= part.filled().len() as u64;
                buffer.put_slice(part.filled());
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Broken {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Proposes and decides changes.
async fn work(client: Client, name: u64, rounds: u64) {
    work_with_reason(client, name, rounds, "not this one").await;
}

/// Proposes and decides changes. Every third verdict denies with this reason.
async fn work_with_reason(client: Client, name: u64, rounds: u64, reason: &str) {
    for round in 0..rounds {
        let record = ask(&client, write(&format!("w{name}-{round}"), "text\n")).await.record;
        let answer = if round % 3 == 0 { no(reason) } else { Answer::Approve };
        client.decide(record.change, verdict(&record, answer), None, PreviewDetail::Omitted).await.unwrap();
    }
}

/// Watches up to an event and returns all numbers in the order of arrival.
async fn follow(client: Client, last: u64) -> Vec<u64> {
    let mut watch = client.watch(0, Role::Observer, RetryBudget::Unlimited);
    let mut numbers = Vec::new();
    while numbers.last().is_none_or(|number| *number < last) {
        if let Watched::Event(event) = watch.next().await.unwrap() {
            numbers.push(event.number);
        }
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn watchers_get_each_event_once() {
    const WATCHERS: u64 = 12;
    const WRITERS: u64 = 3;
    const ROUNDS: u64 = 25;
    // An approved change has four events: proposed, decided, applying, ended. A denied one has no applying.
    let last = WRITERS * (0..ROUNDS).map(|round| if round % 3 == 0 { 3 } else { 4 }).sum::<u64>();
    let (mut dice, _) = Dice::seeded();
    let scene = Scene::new();
    let server = scene.serve();
    let dialled = Arc::new(AtomicU64::new(0));
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let seed = dice.below(u64::MAX);
        let dial = Breaking { address: server.address, seed, dialled: Arc::clone(&dialled) };
        watchers.push(tokio::spawn(follow(Running::client_via(Arc::new(dial)), last)));
    }
    let writers = (0..WRITERS).map(|name| work(server.verdict_client(), name, ROUNDS));
    within("the end of the work", futures::future::join_all(writers)).await;
    let expected: Vec<u64> = (1..=last).collect();
    for watcher in watchers {
        assert_eq!(within("the last event", watcher).await.unwrap(), expected);
    }
    let dialled = dialled.load(Ordering::Relaxed);
    println!("{WATCHERS} watchers, {last} events, {dialled} connections");
    assert!(dialled > 4 * WATCHERS, "connections failed only {dialled} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn stalled_watcher_delays_only_itself() {
    const ROUNDS: u64 = 60;
    // More events than fit into the socket buffers, so that the server blocks on each stalled watcher.
    let buffers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap_or_default();
    let buffers: usize = buffers.split_whitespace().last().and_then(|most| most.parse().ok()).unwrap_or(4 << 20);
    let reason = "x".repeat(2 * buffers / (ROUNDS as usize / 3));
    let last = (0..ROUNDS).map(|round| if round % 3 == 0 { 3 } else { 4 }).sum::<u64>();
    let scene = Scene::new();
    let server = scene.serve();
    // Stalled watchers: they request all events and read none.
    let mut sleepers = Vec::new();
    for _ in 0..6 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        let mut stream = socket.connect(server.address).await.unwrap();
        let head = format!(
            "POST /sayso.v1.ReviewService/Watch HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/connect+proto\r\nconnect-protocol-version: 1\r\ncontent-length: 5\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&[0; 5]).await.unwrap();
        sleepers.push(stream);
    }
    let watcher = tokio::spawn(follow(server.tcp_client(), last));
    within("the end of the work", work_with_reason(server.verdict_client(), 0, ROUNDS, &reason)).await;
    assert_eq!(within("the last event", watcher).await.unwrap(), (1..=last).collect::<Vec<_>>());
    // Once they read, each gets all events.
    for mut sleeper in sleepers {
        let mut heard = Vec::new();
        let mut numbers = Vec::new();
        let mut part = vec![0; 1 << 20];
        while numbers.last() != Some(&last) {
            let read = within("what was missed", sleeper.read(&mut part)).await.unwrap();
            assert!(read > 0, "the stream ended at {:?}", numbers.last());
            heard.extend_from_slice(&part[..read]);
            // Parses only when the data may be complete.
            if heard.len() > reason.len() * (ROUNDS as usize / 3) {
                numbers = events(&heard);
            }
        }
        assert!(heard.len() > buffers + (64 << 10), "{} bytes fit into the socket buffers", heard.len());
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    }
    server.end();
}

/// Event numbers in the raw response of a watch: HTTP chunks with length-prefixed messages, whose events start with the number.
fn events(answer: &[u8]) -> Vec<u64> {
    let Some(start) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Vec::new() };
    let (mut rest, mut body) = (&answer[start + 4..], Vec::new());
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = rest.get(end + 2..end + 2 + size) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 2 + size + 2..).unwrap_or_default();
    }
    let (mut rest, mut numbers) = (&body[..], Vec::new());
    while let Some((head, after)) = rest.split_at_checked(5) {
        let size = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let Some((message, after)) = after.split_at_checked(size) else { break };
        rest = after;
        // Field 1 of the response is the event, and field 1 of the event its number.
        if message.first() == Some(&0x0a) {
            let mut fields = &message[1..];
            varint(&mut fields);
            assert_eq!(fields[0], 0x08);
            fields = &fields[1..];
            numbers.push(varint(&mut fields));
        }
    }
    numbers
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_stream_sends_heartbeats() {
    let scene = Scene::new();
    let server = scene.serve();
    let mut watch = server.verdict_client().watch(0, Role::Observer, RetryBudget::Unlimited);
    // The first heartbeat is immediate; the others follow at intervals.
    for _ in 0..2 {
        let next = within("a sign of life", watch.next()).await.unwrap();
        assert!(matches!(next, Watched::Heartbeat { last_event: 0 }), "{next:?}");
    }
}
