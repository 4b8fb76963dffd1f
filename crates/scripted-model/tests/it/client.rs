//! A plain HTTP client for the scripted model.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_scripted_model::ModelServer;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    One,
    Two,
}

/// A response with its own connection. The body may be incomplete.
pub(crate) struct OpenResponse {
    pub(crate) response: Response<Incoming>,
    connection: JoinHandle<()>,
}

impl OpenResponse {
    /// Returns the next chunk, `None` at the end, or an error if the connection broke.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        Some(self.response.frame().await?.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// Returns the remaining bytes.
    pub(crate) async fn rest(mut self) -> Result<Vec<u8>, hyper::Error> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next().await {
            all.extend(chunk?);
        }
        Ok(all)
    }

    /// Closes the connection without reading the rest.
    pub(crate) fn hang_up(self) {
        self.connection.abort();
    }
}

/// Sends a request over a new connection.
pub(crate) async fn send(
    server: &ModelServer,
    version: Http,
    request: Request<Full<Bytes>>,
) -> Result<OpenResponse, hyper::Error> {
    let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
    let (response, connection) = match version {
        Http::One => {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
            let connection = tokio::spawn(async move { drop(connection.await) });
            (sender.send_request(request).await?, connection)
        }
        Http::Two => {
            let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
            let connection = tokio::spawn(async move { drop(connection.await) });
            (sender.send_request(request).await?, connection)
        }
    };
    Ok(OpenResponse { response, connection })
}

/// Builds a request with a JSON body, or with an empty body for null.
pub(crate) fn request(server: &ModelServer, method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let builder = Request::builder().method(method).uri(format!("{}{path}", server.url()));
    builder.header("host", server.address().to_string()).body(Full::new(body)).unwrap()
}

/// Posts JSON and returns the status with the whole body.
pub(crate) async fn post(server: &ModelServer, path: &str, body: &Value) -> (u16, Vec<u8>) {
    let response = send(server, Http::One, request(server, "POST", path, body)).await.unwrap();
    (response.response.status().as_u16(), response.rest().await.unwrap())
}
