//! HTTP/1.1 over dialled connections, a few of which are kept for the next call.
//!
//! Our own and not hyper-util's, since whether a call may be made again depends on whether it was sent, and only here that is known.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use connectrpc::client::{BoxFuture, ClientBody, ClientTransport};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;

use super::dial::Dial;
use super::written::{Noting, Unwritten};

/// Connections that are kept for the next call.
const MOST_IDLE: usize = 4;

/// A connection on which a call can be made.
#[derive(Debug)]
pub(super) struct Sender {
    requests: SendRequest<ClientBody>,
    unwritten: Unwritten,
}

/// A call that could not be made, and what was to be sent if nobody has seen any of it.
type Failed = (TransportError, Option<Request<ClientBody>>);

impl Sender {
    async fn send(&mut self, request: Request<ClientBody>) -> Result<Response<Incoming>, Failed> {
        self.requests.try_send_request(request).await.map_err(|mut error| {
            let unsent = error.take_message();
            let error = error.into_error();
            let unseen = unsent.is_some() || self.unwritten.is_so();
            (if unseen { TransportError::Unsent(error.into()) } else { TransportError::Cut(error) }, unsent)
        })
    }
}

/// Carries calls to an engine.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dial: Arc<dyn Dial>,
    authority: HeaderValue,
    idle: Mutex<Vec<Sender>>,
}

/// How far a call came that got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// Nobody has seen it, or the end of it.
    #[error("{0}")]
    Unsent(Box<dyn std::error::Error + Send + Sync>),
    /// Somebody may have seen it.
    #[error("the connection was cut: {0}")]
    Cut(hyper::Error),
}

impl Transport {
    pub(super) fn new(dial: Arc<dyn Dial>) -> Self {
        let authority = HeaderValue::try_from(dial.authority()).unwrap_or(HeaderValue::from_static("localhost"));
        Self { shared: Arc::new(Shared { dial, authority, idle: Mutex::default() }) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender>> {
        // A list of connections is never half changed.
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is open as far as is known, and free.
    async fn kept(&self) -> Option<Sender> {
        loop {
            let mut sender = self.idle().pop()?;
            if sender.requests.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<Sender, TransportError> {
        let connection = self.shared.dial.dial().await.map_err(|error| TransportError::Unsent(error.into()))?;
        let unwritten = Unwritten::default();
        let connection = Noting { connection, unwritten: unwritten.clone() };
        let (requests, work) =
            handshake(TokioIo::new(connection)).await.map_err(|error| TransportError::Unsent(error.into()))?;
        // Its errors reach whoever waits for an answer.
        tokio::spawn(work);
        Ok(Sender { requests, unwritten })
    }

    async fn exchange(self, mut request: Request<ClientBody>) -> Result<Response<Answer>, TransportError> {
        // On a connection, the path alone says what is asked for.
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| TransportError::Unsent(error.into()))?;
        request.headers_mut().insert(HOST, self.shared.authority.clone());
        while let Some(mut sender) = self.kept().await {
            match sender.send(request).await {
                Ok(response) => return self.answer(sender, response).await,
                // It was closed meanwhile.
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(error),
            }
        }
        let mut sender = self.connect().await?;
        let response = sender.send(request).await.map_err(|(error, _)| error)?;
        self.answer(sender, response).await
    }

    /// Reads an answer that has an end, so that its connection is free for the next call.
    async fn answer(&self, sender: Sender, response: Response<Incoming>) -> Result<Response<Answer>, TransportError> {
        let (head, body) = response.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if kind.starts_with(b"application/connect+") {
            return Ok(Response::from_parts(head, Answer::Stream { body, _sender: sender }));
        }
        let bytes = body.collect().await.map_err(TransportError::Cut)?.to_bytes();
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE {
            idle.push(sender);
        }
        drop(idle);
        Ok(Response::from_parts(head, Answer::Whole(Full::new(bytes))))
    }
}

impl ClientTransport for Transport {
    type ResponseBody = Answer;
    type Error = TransportError;

    fn send(&self, request: Request<ClientBody>) -> BoxFuture<'static, Result<Response<Answer>, TransportError>> {
        Box::pin(self.clone().exchange(request))
    }
}

/// What an engine answers.
#[derive(Debug)]
pub(super) enum Answer {
    /// All of it.
    Whole(Full<Bytes>),
    /// More is to come.
    Stream {
        body: Incoming,
        /// Without it, the connection would be closed.
        _sender: Sender,
    },
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Stream { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Stream { body, .. } => body.size_hint(),
        }
    }
}
