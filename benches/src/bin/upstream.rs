//! The model's side: answers at once, as JSON or, where the request says `stream`, as some thirty events a millisecond apart.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::time::{Sleep, sleep};

/// So far apart that no two events are read at once.
const GAP: Duration = Duration::from_millis(1);
const WORDS: usize = 24;
/// Length of the end of a body in which the `stream` flag usually is.
const TAIL: usize = 256;

const USAGE: &str =
    r#""usage":{"input_tokens":20000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":24}"#;

/// An answer of which the first piece is there at once, and each other after a gap.
struct Answer {
    pieces: std::vec::IntoIter<Bytes>,
    gap: Option<Pin<Box<Sleep>>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(gap) = &mut self.gap {
            ready!(gap.as_mut().poll(context));
        }
        let piece = self.pieces.next();
        self.gap = (!self.pieces.as_slice().is_empty()).then(|| Box::pin(sleep(GAP)));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.pieces.as_slice() {
            [only] => SizeHint::with_exact(only.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

/// `true` if a body asks for a stream. Searches its end first, then the rest.
fn streams(chunks: &[Bytes]) -> bool {
    let said = |text: &[u8]| {
        let at = memchr::memmem::rfind(text, br#""stream":"#)?;
        Some(text[at + br#""stream":"#.len()..].trim_ascii_start().starts_with(b"true"))
    };
    let mut first = chunks.len();
    let mut size = 0;
    while first > 0 && size < TAIL {
        first -= 1;
        size += chunks[first].len();
    }
    let tail = chunks[first..].concat();
    said(&tail[tail.len().saturating_sub(TAIL)..]).or_else(|| said(&chunks.concat())).unwrap_or(false)
}

fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {{\"type\":\"{name}\",{data}}}\n\n").into()
}

fn events() -> Vec<Bytes> {
    let message = format!(
        r#""message":{{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,{USAGE}}}"#
    );
    let mut events = vec![
        event("message_start", &message),
        event("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#),
    ];
    for number in 0..WORDS {
        let delta = format!(r#""index":0,"delta":{{"type":"text_delta","text":"some words and more, {number} "}}"#);
        events.push(event("content_block_delta", &delta));
    }
    events.push(event("content_block_stop", r#""index":0"#));
    let delta = r#""delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":24}"#;
    events.push(event("message_delta", delta));
    events.push(Bytes::from_static(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    events
}

fn message() -> Bytes {
    let text = "some words and more ".repeat(WORDS);
    format!(
        r#"{{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,{USAGE}}}"#
    )
    .into()
}

async fn answer(
    request: Request<Incoming>,
    events: Vec<Bytes>,
    message: Bytes,
) -> Result<Response<Answer>, hyper::Error> {
    let mut body = request.into_body();
    let mut chunks = Vec::new();
    while let Some(frame) = body.frame().await {
        chunks.extend(frame?.into_data().ok());
    }
    let (kind, pieces) = if streams(&chunks) {
        ("text/event-stream; charset=utf-8", events)
    } else {
        ("application/json", vec![message])
    };
    let mut response = Response::new(Answer { pieces: pieces.into_iter(), gap: None });
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let (events, message) = (events(), message());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (events, message) = (events.clone(), message.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(request, events.clone(), message.clone()));
                // A connection that breaks is its client's affair.
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}
