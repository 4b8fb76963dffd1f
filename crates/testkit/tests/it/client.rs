//! A plain HTTP client to ask the scripted model by hand.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_testkit::model::ModelServer;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    One,
    Two,
}

/// An answer that may still be on its way, over a connection of its own.
pub(crate) struct Coming {
    pub(crate) response: Response<Incoming>,
    connection: JoinHandle<()>,
}

impl Coming {
    /// The next bytes; none at the end, and an error where the answer was cut.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        Some(self.response.frame().await?.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// All the rest.
    pub(crate) async fn rest(mut self) -> Result<Vec<u8>, hyper::Error> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next().await {
            all.extend(chunk?);
        }
        Ok(all)
    }

    /// Goes away in the middle.
    pub(crate) fn hang_up(self) {
        self.connection.abort();
    }
}

/// Sends a request over a new connection.
pub(crate) async fn send(
    server: &ModelServer,
    version: Http,
    request: Request<Full<Bytes>>,
) -> Result<Coming, hyper::Error> {
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
    Ok(Coming { response, connection })
}

/// A request with a JSON body.
pub(crate) fn request(server: &ModelServer, method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let builder = Request::builder().method(method).uri(format!("{}{path}", server.url()));
    builder.header("host", server.address().to_string()).body(Full::new(body)).unwrap()
}

/// Posts JSON and returns the status with the whole body.
pub(crate) async fn post(server: &ModelServer, path: &str, body: &Value) -> (u16, Vec<u8>) {
    let coming = send(server, Http::One, request(server, "POST", path, body)).await.unwrap();
    (coming.response.status().as_u16(), coming.rest().await.unwrap())
}
