//! A bare HTTP echo server over a Unix socket: hyper with one thread.

use std::convert::Infallible;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixListener;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Ok(Response::new(Full::new(body)))
}

fn main() -> std::io::Result<()> {
    let socket = std::env::args().nth(1).ok_or(std::io::ErrorKind::InvalidInput)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = UnixListener::bind(socket)?;
        println!("listening");
        loop {
            let (stream, _) = listener.accept().await?;
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    })
}
