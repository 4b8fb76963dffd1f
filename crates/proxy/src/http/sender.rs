//! Sends requests to models, over connections that are kept for the next ones.
//!
//! hyper's own client does this for everybody, with a queue of those who wait, a task for each answer and a choice of strategies. Here it
//! is between an agent and its answer: a connection that is free is taken, and put back when the head of the answer is there.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower_service::Service as _;

use super::body::{BodyError, Outbound};
use super::pool::{Connection, Line, Origin, Pool, Unsent, free, lock, sweep};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(super) enum SendError {
    #[error("there is no connection to it")]
    Connect(#[source] BodyError),
    #[error("the connection to it failed")]
    Broken(#[source] hyper::Error),
}

/// Sends requests to models.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    connector: HttpsConnector<HttpConnector>,
    pool: Arc<Mutex<Pool>>,
}

impl Sender {
    pub(crate) fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let builder = HttpsConnectorBuilder::new();
        // The system's certificates; a machine that has none gets those that browsers come with.
        let builder = match builder.with_provider_and_native_roots(rustls::crypto::ring::default_provider()) {
            Ok(builder) => builder,
            Err(error) => {
                tracing::warn!(%error, "the system has no certificates; those of browsers are used");
                let provider = rustls::crypto::ring::default_provider();
                match HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider) {
                    Ok(builder) => builder,
                    // The provider is complete, so that this cannot be; without roots every connection is refused.
                    Err(_) => HttpsConnectorBuilder::new().with_tls_config(no_roots()),
                }
            }
        };
        let connector = builder.https_or_http().enable_all_versions().wrap_connector(tcp);
        Self { connector, pool: Arc::default() }
    }

    /// Sends a request to the server that its address names; the head of the answer, whose body is on its way.
    pub(super) async fn send(&self, mut request: Request<Outbound>) -> Result<Response<Incoming>, SendError> {
        loop {
            let free = lock(&self.pool).take(request.uri());
            let (mut connection, is_new) = match free {
                Some(free) => (free, false),
                // In a box, since it is seldom: all that is sent would be as large.
                None => Box::pin(self.next(request.uri())).await.map_err(SendError::Connect)?,
            };
            match connection.line.send(request).await {
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
                }
                // A server may close a connection that is not used, just when it is.
                Err(Unsent { request: Some(unsent), .. }) if !is_new => request = *unsent,
                Err(Unsent { error, .. }) => return Err(SendError::Broken(error)),
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut pool = lock(&self.pool);
        pool.keep(connection);
        if !std::mem::replace(&mut pool.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.pool)));
        }
    }

    /// A new connection, or one that becomes free before that is there; whether it is new.
    async fn next(&self, to: &Uri) -> Result<(Connection, bool), BodyError> {
        tokio::select! {
            biased;
            free = free(&self.pool, to) => Ok((free, false)),
            made = self.connect(to) => Ok((made?, true)),
        }
    }

    async fn connect(&self, to: &Uri) -> Result<Connection, BodyError> {
        let origin = Origin::of(to).ok_or("its address names no server")?;
        let host = origin.host().ok_or("its address is none that can be said")?;
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let stream = connector.call(to.clone()).await?;
        let (tell, cause) = oneshot::channel();
        let mut line = if stream.connected().is_negotiated_h2() {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) = builder.timer(TokioTimer::new()).adaptive_window(true).handshake(stream).await?;
            tokio::spawn(async { end(connection.await, tell) });
            // Others need not wait for the answer to this request.
            let shared = Line::Many(sender.clone());
            self.keep(Connection { to: origin.clone(), line: shared, used: Instant::now() });
            Line::Many(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(async { end(connection.await, tell) });
            Line::One { sender, host }
        };
        if let Err(closed) = poll_fn(|cx| line.poll_ready(cx)).await {
            // Whoever drives it knows why.
            return Err(cause.await.unwrap_or(closed).into());
        }
        Ok(Connection { to: origin, line, used: Instant::now() })
    }
}

/// A connection has ended.
fn end(ended: hyper::Result<()>, tell: oneshot::Sender<hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to an upstream ended early");
        // Once it was ready, nobody asks any more.
        let _: Result<(), _> = tell.send(error);
    }
}

fn no_roots() -> rustls::ClientConfig {
    let builder = rustls::ClientConfig::builder();
    builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::net::SocketAddr;

    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::super::pool::IDLE;
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// Connections as they come.
    async fn server() -> (SocketAddr, mpsc::UnboundedReceiver<BufReader<TcpStream>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, accepted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tell.send(BufReader::new(stream)).unwrap();
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
        let body = super::super::upstream::whole(bytes::Bytes::new());
        Request::get(format!("http://{to}/a?b")).header("x-one", "1").body(body).unwrap()
    }

    async fn text(answer: Response<Incoming>) -> String {
        String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn until_free(sender: &Sender) {
        while !lock(&sender.pool).kept.iter().all(|kept| kept.line.is_ready()) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_connection_is_used_again_once_its_answer_is_read() {
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
        assert_eq!(lock(&sender.pool).kept.len(), 1);
    }

    #[tokio::test]
    async fn one_whose_answer_is_still_read_is_not_used() {
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
        // The other one is taken by whoever waits, as soon as it is free.
        let uri = request(to).uri().clone();
        lock(&sender.pool).kept.truncate(1);
        let free = poll_fn(|cx| lock(&sender.pool).poll_free(&uri, cx));
        let (free, read, ()) = tokio::join!(free, text(first), async { one.write_all(b"k").await.unwrap() });
        assert_eq!(read, "ok");
        assert!(free.line.is_ready());
        assert!(lock(&sender.pool).kept.is_empty());
    }

    #[derive(Default)]
    struct Wakes(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn those_who_wait_for_a_connection_do_not_wake_each_other() {
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
        let mut waiting = wakes.clone().map(|wakes| (Box::pin(free(&sender.pool, &uri)), wakes));
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
    async fn after_one_that_the_server_has_closed_another_is_made() {
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
            while !lock(&sender.pool).kept.iter().all(|kept| kept.line.is_closed()) {
                tokio::task::yield_now().await;
            }
        }
        assert!(lock(&sender.pool).kept.len() <= 1, "those that are closed are kept");
    }

    #[tokio::test]
    async fn a_request_that_nobody_has_seen_is_sent_again() {
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
        // Taken while it is free, and closed before anything is sent on it.
        let uri = request(to).uri().clone();
        let mut taken = lock(&sender.pool).take(&uri).unwrap();
        drop(stream);
        while !taken.line.is_closed() {
            tokio::task::yield_now().await;
        }
        let unsent = taken.line.send(request(to)).await.unwrap_err().request.unwrap();
        assert_eq!(unsent.uri(), &uri);
        assert_eq!(unsent.headers(), request(to).headers());
    }

    #[tokio::test]
    async fn what_nobody_uses_for_long_is_closed() {
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
        lock(&sender.pool).kept[0].used = Instant::now().checked_sub(IDLE).unwrap();
        lock(&sender.pool).sweep();
        assert_eq!(lock(&sender.pool).kept.len(), 1, "its answer is being read");
        stream.write_all(b"k").await.unwrap();
        assert_eq!(text(answer).await, "ok");
        until_free(&sender).await;
        lock(&sender.pool).sweep();
        assert_eq!(lock(&sender.pool).kept.len(), 1, "its answer has been read just now");
        lock(&sender.pool).kept[0].used = Instant::now().checked_sub(IDLE).unwrap();
        lock(&sender.pool).sweep();
        assert!(lock(&sender.pool).kept.is_empty());
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_and_one_that_breaks_off_are_told_apart() {
        let sender = Sender::new();
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert!(matches!(sender.send(request(nobody)).await, Err(SendError::Connect(_))));
        let (to, mut accepted) = server().await;
        let (answer, ()) = tokio::join!(sender.send(request(to)), async {
            head(&mut accepted.recv().await.unwrap()).await;
        });
        assert!(matches!(answer, Err(SendError::Broken(_))));
    }
}
