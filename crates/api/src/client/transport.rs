//! HTTP/1.1 with a small pool of connections.
//!
//! hyper-util's client does not report if a request was sent, on which retries depend, so this module pools connections itself.

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

use super::delivery::{TrackedConnection, Undelivered};
use super::dial::Dial;

const MAX_IDLE_CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(super) struct Sender {
    requests: SendRequest<ClientBody>,
    undelivered: Undelivered,
}

/// The error of a request, with the request itself if hyper has not started to send it.
type SendFailure = (TransportError, Option<Request<ClientBody>>);

impl Sender {
    async fn send(&mut self, request: Request<ClientBody>) -> Result<Response<Incoming>, SendFailure> {
        self.requests.try_send_request(request).await.map_err(|mut error| {
            let unsent = error.take_message();
            let error = error.into_error();
            let not_sent = unsent.is_some() || self.undelivered.is_set();
            let error =
                if not_sent { TransportError::NotSent(error.into()) } else { TransportError::ConnectionLost(error) };
            (error, unsent)
        })
    }
}

/// Connection pool of a client and its clones.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    dial: Arc<dyn Dial>,
    authority: HeaderValue,
    idle: Mutex<Vec<Sender>>,
}

/// Failure of a request without a response.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// The engine did not receive the whole request.
    #[error("{0}")]
    NotSent(Box<dyn std::error::Error + Send + Sync>),
    /// The engine may have received it.
    #[error("connection lost: {0}")]
    ConnectionLost(hyper::Error),
}

impl Transport {
    pub(super) fn new(dial: Arc<dyn Dial>) -> Self {
        let authority = HeaderValue::try_from(dial.authority()).unwrap_or(HeaderValue::from_static("localhost"));
        Self { pool: Arc::new(Pool { dial, authority, idle: Mutex::default() }) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender>> {
        // Each update is a single push or pop, so a poisoned list is intact.
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle connection that is not known to be closed.
    async fn take_idle(&self) -> Option<Sender> {
        loop {
            let mut sender = self.idle().pop()?;
            if sender.requests.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<Sender, TransportError> {
        let connection = self.pool.dial.dial().await.map_err(|error| TransportError::NotSent(error.into()))?;
        let undelivered = Undelivered::default();
        let connection = TrackedConnection { connection, undelivered: undelivered.clone() };
        let (requests, work) =
            handshake(TokioIo::new(connection)).await.map_err(|error| TransportError::NotSent(error.into()))?;
        // The pending request receives its errors.
        tokio::spawn(work);
        Ok(Sender { requests, undelivered })
    }

    async fn exchange(self, mut request: Request<ClientBody>) -> Result<Response<ResponseBody>, TransportError> {
        // HTTP/1.1 sends the path alone; the authority goes into `Host`.
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| TransportError::NotSent(error.into()))?;
        request.headers_mut().insert(HOST, self.pool.authority.clone());
        while let Some(mut sender) = self.take_idle().await {
            match sender.send(request).await {
                Ok(response) => return self.receive(sender, response).await,
                // The engine closed the connection while it was idle.
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(error),
            }
        }
        let mut sender = self.connect().await?;
        let response = sender.send(request).await.map_err(|(error, _)| error)?;
        self.receive(sender, response).await
    }

    /// Reads a unary response completely and returns its connection to the pool. A stream keeps its connection.
    async fn receive(
        &self,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Result<Response<ResponseBody>, TransportError> {
        let (head, body) = response.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if kind.starts_with(b"application/connect+") {
            return Ok(Response::from_parts(head, ResponseBody::Stream { body, _sender: sender }));
        }
        let bytes = body.collect().await.map_err(TransportError::ConnectionLost)?.to_bytes();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(sender);
        }
        drop(idle);
        Ok(Response::from_parts(head, ResponseBody::Buffered(Full::new(bytes))))
    }
}

impl ClientTransport for Transport {
    type ResponseBody = ResponseBody;
    type Error = TransportError;

    fn send(&self, request: Request<ClientBody>) -> BoxFuture<'static, Result<Response<ResponseBody>, TransportError>> {
        Box::pin(self.clone().exchange(request))
    }
}

/// Body of a response.
#[derive(Debug)]
pub(super) enum ResponseBody {
    Buffered(Full<Bytes>),
    Stream {
        body: Incoming,
        /// Keeps the connection open.
        _sender: Sender,
    },
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Buffered(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Stream { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Buffered(body) => body.is_end_stream(),
            Self::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Buffered(body) => body.size_hint(),
            Self::Stream { body, .. } => body.size_hint(),
        }
    }
}
