//! The client: connections that each send one request after the other, and how long each answer takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::bodies::{Kind, Pieces, Session, Start};
use super::process::Process;

/// Sessions so far: no two of a run are the same.
static SESSIONS: AtomicUsize = AtomicUsize::new(1);

/// A session that was not there before.
pub fn new_session(start: &Start) -> Session {
    start.session(SESSIONS.fetch_add(1, Ordering::Relaxed))
}

/// A connection on which one request is under way at a time.
pub struct Connection {
    sender: SendRequest<Pieces>,
    host: String,
    path: String,
}

impl Connection {
    /// Connects to a program.
    pub async fn open(to: &Process) -> Result<Self> {
        let stream = TcpStream::connect(to.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, host: to.address.to_string(), path: format!("{}/v1/messages?beta=true", to.prefix) })
    }

    /// A request with the headers of Claude Code.
    fn request(&self, session: &mut Session) -> Result<Request<Pieces>> {
        let request = Request::post(&self.path)
            .header("host", &self.host)
            .header("accept", "application/json")
            .header("user-agent", "claude-cli/2.1.197 (external, cli)")
            .header("x-app", "cli")
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14")
            .header("anthropic-dangerous-direct-browser-access", "true")
            .header("x-api-key", "none")
            .header("x-stainless-lang", "js")
            .header("x-stainless-package-version", "0.70.0")
            .header("x-stainless-retry-count", "0")
            .header("x-stainless-timeout", "600")
            .header("content-type", "application/json");
        let request = match session.id() {
            Some(id) => request.header("x-claude-code-session-id", id),
            None => request,
        };
        Ok(request.body(session.next())?)
    }

    /// Sends the next request of a session; how long until the answer, or the first of its events, was here.
    pub async fn send(&mut self, session: &mut Session, kind: Kind) -> Result<Duration> {
        let request = self.request(session)?;
        self.sender.ready().await?;
        let start = Instant::now();
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let mut body = response.into_body();
        let mut first = None;
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                first.get_or_insert_with(|| start.elapsed());
                text.extend_from_slice(&data);
            }
        }
        let whole = start.elapsed();
        let said = String::from_utf8_lossy(&text);
        ensure!(
            status == StatusCode::OK,
            "{status} from {}: {}",
            self.host,
            said.chars().take(400).collect::<String>()
        );
        let complete = match kind {
            Kind::Plain => text.ends_with(b"}"),
            Kind::Streaming => said.trim_end().ends_with(r#"{"type":"message_stop"}"#),
        };
        ensure!(complete, "{} answered something else than the upstream did", self.host);
        Ok(if kind == Kind::Streaming { first.context("no event")? } else { whole })
    }
}

/// Waits until a program that takes its time to start passes requests on.
pub async fn until_ready(process: &mut Process, start: &Start, kind: Kind) -> Result<()> {
    let begin = Instant::now();
    loop {
        let tried = async { Connection::open(process).await?.send(&mut new_session(start), kind).await };
        match tried.await {
            Ok(_) => return Ok(()),
            Err(error) if begin.elapsed() > Duration::from_mins(3) => {
                return Err(error.context("it does not get ready"));
            }
            Err(_) if !process.runs()? => bail!("it ended instead of getting ready"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Sends `count` requests over `connections` at once; how long each answer took.
pub async fn send_many(
    to: &Process,
    start: &Start,
    kind: Kind,
    connections: usize,
    count: usize,
) -> Result<Vec<Duration>> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(Connection::open(to).await?);
    }
    let mut tasks = JoinSet::new();
    for mut connection in opened {
        let (start, count) = (start.clone(), count.div_ceil(connections));
        tasks.spawn(async move {
            let mut session = new_session(&start);
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                if session.is_over() {
                    session = new_session(&start);
                }
                times.push(connection.send(&mut session, kind).await?);
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    Ok(times)
}
