//! Models behind TLS, over HTTP/1.1 and HTTP/2, with certificates that the machine trusts and with others.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_testkit::model::ModelServer;
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::request_agent::{Stage, request};

/// A TLS server that forwards the decrypted stream.
struct Front {
    runtime: Runtime,
    certified: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Front {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self { runtime, certified }
    }

    fn write_certificate(&self, path: &Path) {
        std::fs::write(path, self.certified.cert.pem()).unwrap();
    }

    /// Stands in front of a model, and says where.
    fn stand(&self, model: &ModelServer, protocols: &[&str]) -> String {
        let key = PrivateKeyDer::try_from(self.certified.signing_key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(ring::default_provider().into());
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![self.certified.cert.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let to: SocketAddr = model.url().strip_prefix("http://").unwrap().parse().unwrap();
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        self.runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client without trust closes the connection.
                    let Ok(mut inside) = acceptor.accept(stream).await else { return };
                    let mut model = TcpStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut inside, &mut model).await;
                });
            }
        });
        format!("https://localhost:{port}")
    }
}

fn streaming(asks: &str) -> Value {
    let mut body = request(asks, "text");
    body["stream"] = true.into();
    body
}

#[test]
fn tls_upstream_uses_newest_offered_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("certificates.pem");
    let front = Front::new();
    front.write_certificate(&file);
    let trusted = [("SSL_CERT_FILE", file.to_str().unwrap())];
    for (protocols, version) in [(&["h2", "http/1.1"][..], "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")]
    {
        let stage = Stage::behind("", |model| front.stand(model, protocols), &trusted);
        let body = streaming("Fix it.");
        let got = stage.send(&body).join().unwrap();
        assert_eq!(got.status, 200, "{}", got.text);
        assert!(got.text.contains("Done.") && got.text.contains("message_stop"), "{}", got.text);
        stage.said(&["request", "mode", "pause-every"]);
        let agent = stage.send(&streaming("Fix it again."));
        stage.waiting(1);
        stage.said(&["request", "edit", "2", "max_tokens=77"]);
        stage.said(&["request", "resume", "2"]);
        assert_eq!(agent.join().unwrap().status, 200);
        let received = stage.model.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].raw, body.to_string(), "as it came");
        assert_eq!(received[1].body["max_tokens"], 77);
        for received in &received {
            assert_eq!(format!("{:?}", received.version), version, "{protocols:?}");
            // What HTTP/1.1 says of a connection has no place in HTTP/2.
            assert_eq!(received.header("connection"), None);
            assert_eq!(received.header("x-api-key"), Some("secret-key"));
        }
        stage.end();
    }
}

#[test]
fn untrusted_certificate_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("certificates.pem");
    // The machine trusts other certificates only.
    Front::new().write_certificate(&file);
    let front = Front::new();
    let environment = [("SSL_CERT_FILE", file.to_str().unwrap())];
    let stage = Stage::behind("", |model| front.stand(model, &["h2", "http/1.1"]), &environment);
    let got = stage.send(&streaming("Fix it.")).join().unwrap();
    assert_eq!(got.status, 502, "{}", got.text);
    assert!(got.text.contains("could not reach localhost:") && got.text.contains("certificate"), "{}", got.text);
    assert_eq!(stage.model.received().len(), 0);
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("certificate"), "{shown}");
    stage.end();
}

#[test]
fn http2_agent_is_served_and_held() {
    let stage = Stage::new("");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, path) = stage.entrance();
    let mut sender = runtime.block_on(async {
        let stream = TcpStream::connect(&address).await.unwrap();
        let connected = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = connected.unwrap();
        tokio::spawn(connection);
        sender
    });
    let mut send = |body: &Value| {
        let uri = format!("http://{address}/{path}/anthropic/v1/messages");
        let request = hyper::Request::post(uri).header("x-api-key", "secret-key");
        let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body.to_string())));
        let answer = sender.send_request(request.unwrap());
        runtime.spawn(async move {
            let answer = answer.await.unwrap();
            let status = answer.status().as_u16();
            (status, answer.into_body().collect().await.unwrap().to_bytes())
        })
    };
    stage.said(&["request", "mode", "pause-every"]);
    let (first, second) = (streaming("Fix it."), streaming("Something else."));
    // Two at once on one connection; the second goes first.
    let one = send(&first);
    stage.waiting(1);
    let other = send(&second);
    stage.waiting(2);
    stage.said(&["request", "edit", "2", "max_tokens=77"]);
    stage.said(&["request", "resume", "2"]);
    let (status, text) = runtime.block_on(other).unwrap();
    assert_eq!(status, 200);
    assert!(text.windows(12).any(|window| window == b"message_stop"));
    stage.said(&["request", "resume", "1"]);
    assert_eq!(runtime.block_on(one).unwrap().0, 200);
    let received = stage.model.received();
    assert_eq!(received[0].body["max_tokens"], 77);
    assert_eq!(received[1].raw, first.to_string());
    stage.end();
}
