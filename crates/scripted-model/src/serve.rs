//! HTTP server: HTTP/1.1 and HTTP/2, detected by the client's first bytes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use sayso_wire::stream::ModelScript;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::answer::{Content, Pace, error_body};
use crate::control;
use crate::encoding;
use crate::endpoint::Endpoint;
use crate::received::{Delivery, Progress, Received};
use crate::shared::{Chosen, Shared};

type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

/// Bytes of a request's body. A longer one closes the connection.
const MAX_BODY_BYTES: usize = 64 << 20;

pub(crate) async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // A failed accept does not affect later connections.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Otherwise a chunk may be delayed until the client acknowledges the previous chunk.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    // Fails if the client disconnects or the answer is scripted to break off.
    drop(Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let raw = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(io::Error::other)?.to_bytes();
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
    let chosen = match control::answer(&received, &shared) {
        Some(answer) => Chosen { answer, id: String::new() },
        None => shared.choose(&received),
    };
    if let Some(latch) = &chosen.answer.before {
        latch.pass().await;
    }
    respond(&received, chosen, exchange)
}

/// Records the state of one answer. Only a disconnected client causes a drop before the end.
struct Exchange {
    progress: Arc<Progress>,
    shared: Arc<Shared>,
}

impl Exchange {
    fn set(&self, delivery: Delivery) {
        self.progress.set(delivery);
        self.shared.notify();
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if matches!(self.progress.delivery(), Delivery::Pending | Delivery::Sending) {
            self.set(Delivery::ClientGone);
        }
    }
}

/// Length of a body, as far as known when the answer starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Known,
    Open,
}

fn respond(received: &Received, chosen: Chosen, exchange: Exchange) -> io::Result<Response<Body>> {
    let Chosen { answer, id } = chosen;
    let endpoint = Endpoint::of(received);
    let json = |status, body: Vec<u8>| (status, "application/json".to_owned(), vec![Bytes::from(body)]);
    let scripted = |script: &ModelScript| match endpoint {
        Endpoint::Stream(api) => {
            let events = api.encode_events(script).into_iter().map(Bytes::from).collect();
            (200, "text/event-stream".to_owned(), events)
        }
        Endpoint::Answer(api) => json(200, api.encode_body(script)),
        _ => json(404, error_body(None, 404, "a script answers only requests to the model")),
    };
    let (status, content_type, mut chunks) = match answer.content {
        Content::HangUp => {
            exchange.set(Delivery::Cut);
            return Err(io::Error::other("scripted hang-up"));
        }
        Content::Turn(turn) => {
            let turn = if answer.has_placeholders { turn.filled(received) } else { turn };
            match (endpoint, turn.failure()) {
                (Endpoint::Answer(api), Some((status, message))) => {
                    json(status, error_body(Some(api), status, message))
                }
                (Endpoint::Answer(api) | Endpoint::Stream(api), _) => {
                    scripted(&turn.script(api, &id, &received.model()))
                }
                _ => json(404, error_body(None, 404, "a turn answers only requests to the model")),
            }
        }
        Content::Script(script) => scripted(&script),
        Content::Error { status, message } => json(status, error_body(endpoint.api(), status, &message)),
        Content::Exactly { status, content_type, body } => (status, content_type, body),
    };
    let length = if content_type == "text/event-stream" { Length::Open } else { Length::Known };
    if let (Length::Open, Some(api)) = (length, endpoint.api()) {
        chunks.splice(0..0, std::iter::repeat_n(Bytes::from_static(api.keep_alive()), answer.keep_alives));
    }
    let mut response = Response::builder().status(status).header("content-type", &content_type);
    if length == Length::Known {
        response = response.header("content-length", chunks.iter().map(Bytes::len).sum::<usize>());
    }
    if let Some(bytes) = answer.chunk_bytes {
        chunks = rechunked(&chunks, bytes);
    }
    if received.method == "HEAD" {
        chunks.clear();
    }
    let end = cut(&mut chunks, answer.cut_after_chunks, answer.cut_after_bytes);
    exchange.set(if chunks.is_empty() && end == Delivery::Complete { Delivery::Complete } else { Delivery::Sending });
    let mut response = response
        .body(StreamBody::new(frames(SendState {
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

/// Truncates the chunks of a body that breaks off. Returns the state after the last chunk.
fn cut(chunks: &mut Vec<Bytes>, after_chunks: Option<usize>, after_bytes: Option<usize>) -> Delivery {
    if let Some(after) = after_chunks.filter(|after| *after <= chunks.len()) {
        chunks.truncate(after);
        return Delivery::Cut;
    }
    let Some(mut left) = after_bytes.filter(|after| *after <= chunks.iter().map(Bytes::len).sum()) else {
        return Delivery::Complete;
    };
    for chunk in chunks.iter_mut() {
        chunk.truncate(left);
        left -= chunk.len();
    }
    chunks.retain(|chunk| !chunk.is_empty());
    Delivery::Cut
}

fn rechunked(chunks: &[Bytes], size: usize) -> Vec<Bytes> {
    let whole = Bytes::from(chunks.concat());
    (0..whole.len()).step_by(size.max(1)).map(|at| whole.slice(at..whole.len().min(at + size.max(1)))).collect()
}

/// State of a body that is being sent.
struct SendState {
    chunks: std::vec::IntoIter<Bytes>,
    pace: Option<Pace>,
    /// State after the last chunk.
    end: Delivery,
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

fn frames(sending: SendState) -> BoxStream<'static, io::Result<Frame<Bytes>>> {
    stream::unfold(Some(sending), |sending| async {
        let mut sending = sending?;
        let Some(chunk) = sending.chunks.next() else {
            sending.exchange.set(sending.end);
            if sending.end != Delivery::Cut {
                return None;
            }
            // An error resets an HTTP/2 stream at once, and chunks that are still queued are lost.
            match sending.last_written.take() {
                Some(written) => drop(written.await),
                None => tokio::task::yield_now().await,
            }
            return Some((Err(io::Error::other("scripted break")), None));
        };
        match &sending.pace {
            Some(Pace::Latch(latch)) => latch.pass().await,
            Some(Pace::Every(pause)) => tokio::time::sleep(*pause).await,
            None => {}
        }
        sending.exchange.progress.count_chunk();
        // Hyper does not poll again after the announced length.
        if sending.length == Length::Known && sending.chunks.len() == 0 && sending.end == Delivery::Complete {
            sending.exchange.progress.set(Delivery::Complete);
        }
        sending.exchange.shared.notify();
        let chunk = if sending.end == Delivery::Cut && sending.chunks.len() == 0 {
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
