//! Connections and answers: HTTP/1.1 and HTTP/2, told apart by how a client begins.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use sayso_wire::stream::Script;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::answer::{Content, Pace, error_body};
use super::asked::{self, Asked};
use super::encoding;
use super::received::{Fate, Progress, Received};
use super::shared::{Chosen, Shared};

type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

/// Serves everybody who comes.
pub(super) async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // One connection that could not be accepted says nothing about the next.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Without it a chunk may wait for the client's acknowledgement of the one before.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    // A client that went away, or an answer that was to be cut.
    drop(Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let raw = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let mut received = Received {
        method: head.method.to_string(),
        target: head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string),
        version: head.version,
        headers,
        decoded: raw.clone(),
        raw,
        body: serde_json::Value::Null,
        progress: Arc::default(),
    };
    if let Some(decoded) = encoding::decode(&received.raw, received.header("content-encoding")) {
        received.decoded = decoded;
    }
    received.body = serde_json::from_slice(&received.decoded).unwrap_or_default();
    let exchange = Exchange { progress: Arc::clone(&received.progress), shared: Arc::clone(&shared) };
    let chosen = shared.choose(&received);
    if let Some(gate) = &chosen.answer.before {
        gate.pass().await;
    }
    respond(&received, chosen, exchange)
}

/// A request that is being answered. Dropped before its end, its client has gone: nobody else would.
struct Exchange {
    progress: Arc<Progress>,
    shared: Arc<Shared>,
}

impl Exchange {
    fn becomes(&self, fate: Fate) {
        self.progress.set(fate);
        self.shared.tell();
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if matches!(self.progress.fate(), Fate::Waiting | Fate::Answering) {
            self.becomes(Fate::ClientGone);
        }
    }
}

/// Whether an answer's length is known when it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Known,
    Open,
}

fn respond(received: &Received, chosen: Chosen, exchange: Exchange) -> io::Result<Response<Body>> {
    let Chosen { answer, id } = chosen;
    let asked = Asked::of(received);
    let json = |status, body: Vec<u8>| (status, "application/json", vec![Bytes::from(body)]);
    let scripted = |script: &Script| match asked {
        Asked::Stream(api) => {
            (200, "text/event-stream", api.encode_events(script).into_iter().map(Bytes::from).collect())
        }
        Asked::Answer(api) => json(200, api.encode_body(script)),
        _ => json(404, error_body(None, 404, "a script answers only those who ask the model")),
    };
    let (status, content_type, mut chunks) = match answer.content {
        Content::HangUp => {
            exchange.becomes(Fate::Cut);
            return Err(io::Error::other("it was to hang up"));
        }
        Content::Turn(turn) => match (asked, turn.failure()) {
            (Asked::Answer(api), Some((status, message))) => json(status, error_body(Some(api), status, message)),
            (Asked::Answer(api) | Asked::Stream(api), _) => scripted(&turn.script(api, &id, &asked::model(received))),
            _ => json(404, error_body(None, 404, "a turn answers only those who ask the model")),
        },
        Content::Script(script) => scripted(&script),
        Content::Error { status, message } => json(status, error_body(asked.api(), status, &message)),
        Content::Exactly { status, content_type, body } => (status, content_type, body),
    };
    let length = if content_type == "text/event-stream" { Length::Open } else { Length::Known };
    if let (Length::Open, Some(api)) = (length, asked.api()) {
        chunks.splice(0..0, std::iter::repeat_n(Bytes::from_static(api.keep_alive()), answer.keep_alives));
    }
    let mut response = Response::builder().status(status).header("content-type", content_type);
    if length == Length::Known {
        response = response.header("content-length", chunks.iter().map(Bytes::len).sum::<usize>());
    }
    if let Some(bytes) = answer.chunk {
        chunks = rechunked(&chunks, bytes);
    }
    if received.method == "HEAD" {
        chunks.clear();
    }
    let end = match answer.cut {
        Some(after) if after <= chunks.len() => {
            chunks.truncate(after);
            Fate::Cut
        }
        _ => Fate::Answered,
    };
    exchange.becomes(if chunks.is_empty() && end == Fate::Answered { Fate::Answered } else { Fate::Answering });
    let mut response = response
        .body(StreamBody::new(frames(Sending {
            chunks: chunks.into_iter(),
            pace: answer.pace,
            end,
            length,
            exchange,
            last_written: None,
        })))
        .map_err(io::Error::other)?;
    for (name, value) in &answer.headers {
        let name = HeaderName::try_from(name).map_err(io::Error::other)?;
        response.headers_mut().insert(name, HeaderValue::try_from(value).map_err(io::Error::other)?);
    }
    Ok(response)
}

fn rechunked(chunks: &[Bytes], size: usize) -> Vec<Bytes> {
    let whole = Bytes::from(chunks.concat());
    (0..whole.len()).step_by(size.max(1)).map(|at| whole.slice(at..whole.len().min(at + size.max(1)))).collect()
}

/// A body on its way.
struct Sending {
    chunks: std::vec::IntoIter<Bytes>,
    pace: Option<Pace>,
    /// How it ends.
    end: Fate,
    length: Length,
    exchange: Exchange,
    /// Resolves when hyper has written the last chunk before a cut.
    last_written: Option<oneshot::Receiver<()>>,
}

/// A chunk that reports when it has been written: hyper then drops it, and the sender with it.
struct Tracked {
    chunk: Bytes,
    _written: oneshot::Sender<()>,
}

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

fn frames(sending: Sending) -> BoxStream<'static, io::Result<Frame<Bytes>>> {
    stream::unfold(Some(sending), |sending| async {
        let mut sending = sending?;
        let Some(chunk) = sending.chunks.next() else {
            sending.exchange.becomes(sending.end);
            if sending.end != Fate::Cut {
                return None;
            }
            // An error resets an HTTP/2 stream at once, and chunks that are still queued are lost.
            match sending.last_written.take() {
                Some(written) => drop(written.await),
                None => tokio::task::yield_now().await,
            }
            return Some((Err(io::Error::other("it was to be cut")), None));
        };
        match &sending.pace {
            Some(Pace::Gate(gate)) => gate.pass().await,
            Some(Pace::Every(pause)) => tokio::time::sleep(*pause).await,
            None => {}
        }
        sending.exchange.progress.count_chunk();
        // Nobody asks for more once all that was announced is there.
        if sending.length == Length::Known && sending.chunks.len() == 0 && sending.end == Fate::Answered {
            sending.exchange.progress.set(Fate::Answered);
        }
        sending.exchange.shared.tell();
        let chunk = if sending.end == Fate::Cut && sending.chunks.len() == 0 {
            let (written, last_written) = oneshot::channel();
            sending.last_written = Some(last_written);
            Bytes::from_owner(Tracked { chunk, _written: written })
        } else {
            chunk
        };
        Some((Ok(Frame::data(chunk)), Some(sending)))
    })
    .boxed()
}
