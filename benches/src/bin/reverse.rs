//! A bare reverse proxy: hyper on both sides, streamed bodies.

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

type Upstream = Client<HttpConnector, Incoming>;

async fn pass(
    client: Upstream,
    authority: String,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Error> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // The authority was one when the program started, and the path came from a request.
    *request.uri_mut() = format!("http://{authority}{path}").parse::<Uri>().unwrap_or_default();
    request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
    client.request(request).await
}

fn main() -> std::io::Result<()> {
    let authority = std::env::args().nth(1).ok_or(std::io::ErrorKind::InvalidInput)?;
    // As many as tokio takes by itself on a machine with two cores.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Upstream = Client::builder(TokioExecutor::new()).build(connector);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (client, authority) = (client.clone(), authority.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request| pass(client.clone(), authority.clone(), request));
                // A connection that breaks is its client's affair.
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}
