//! Admission over TCP: token, host and origin.

use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_api::client::{Client, Loopback, StatusDetail, Token};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::raw::{Answer, exchange, status_with, token_header};
use crate::scene::{Scene, TOKEN};

const HOST: (&str, &str) = ("host", "localhost");

#[test]
fn request_without_right_token_is_rejected() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = token_header();
    let answer = status_with(server.address, &[HOST, (right.0, &right.1)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    let longer = format!("Bearer {TOKEN}0");
    let shorter = format!("Bearer {}", &TOKEN[1..]);
    let basic = format!("Basic {TOKEN}");
    let wrong = ["", "Bearer", "Bearer ", "Bearer x", &longer, &shorter, &basic, TOKEN, "Bearer \u{e9}"];
    for shown in wrong {
        let answer = status_with(server.address, &[HOST, ("authorization", shown)]);
        assert_eq!(answer.status, 401, "{shown}: {answer:?}");
        assert!(!answer.body.contains("workspace\""), "{shown}: {answer:?}");
    }
    assert_eq!(status_with(server.address, &[HOST]).status, 401);
    // A token in the query does not count.
    let query =
        format!("POST /sayso.v1.ReviewService/Status?token={TOKEN}&authorization=Bearer%20{TOKEN} HTTP/1.1\r\n");
    let rest = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    assert_eq!(exchange(server.address, format!("{query}{rest}").as_bytes()).status, 401);
}

#[test]
fn right_token_works_after_many_wrong_ones() {
    let scene = Scene::new();
    let server = scene.serve();
    let codes: Vec<u16> =
        (0..30).map(|_| status_with(server.address, &[HOST, ("authorization", "Bearer wrong")]).status).collect();
    assert_eq!(codes[0], 401);
    assert_eq!(codes[29], 429, "{codes:?}");
    let right = token_header();
    assert_eq!(status_with(server.address, &[HOST, (right.0, &right.1)]).status, 200);
}

#[tokio::test]
async fn token_of_earlier_start_is_rejected() {
    let scene = Scene::new();
    let first = sayso_server::Token::random().unwrap();
    let second = sayso_server::Token::random().unwrap();
    let server = scene.serve_as(|http| http.token = Some(first.clone()));
    let client = |address: SocketAddr, token: &sayso_server::Token| {
        Client::new(Arc::new(Loopback { address }), Some(Token::new(token.reveal()).unwrap()))
    };
    client(server.address, &first).status(StatusDetail::Counts).await.unwrap();
    server.end();
    let server = scene.serve_as(|http| http.token = Some(second.clone()));
    let late = client(server.address, &first).status(StatusDetail::Counts).await.unwrap_err();
    assert!(late.to_string().contains("wrong token"), "{late}");
    client(server.address, &second).status(StatusDetail::Counts).await.unwrap();
}

#[test]
fn foreign_hosts_are_rejected_over_http_1() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| http.hosts = vec!["gate.example".to_owned()]);
    let right = token_header();
    let port = server.address.port();
    let status = |host: &str| status_with(server.address, &[("host", host), (right.0, &right.1)]).status;
    for host in ["localhost", "127.0.0.1", "[::1]", "gate.example"] {
        assert_eq!(status(host), 200, "{host}");
        assert_eq!(status(&format!("{host}:{port}")), 200, "{host}");
    }
    let rebinding = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "0.0.0.0",
        "169.254.169.254",
        "localtest.me",
        "localhost@evil.example",
        "evil.example#localhost",
        "evil.example/localhost",
        "",
    ];
    for host in rebinding {
        assert!([400, 403].contains(&status(host)), "{host}");
    }
    let none = status_with(server.address, &[(right.0, &right.1)]);
    assert!([400, 403].contains(&none.status), "{none:?}");
    // An absolute request target counts as well.
    let line = format!(
        "POST http://evil.example/sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        right.0, right.1
    );
    assert_eq!(exchange(server.address, line.as_bytes()).status, 403);
}

/// Makes a call over HTTP/2 with this authority and returns the status.
async fn over_http2(address: SocketAddr, authority: &str) -> u16 {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, work) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(work);
    let right = token_header();
    let request = Request::post(format!("http://{authority}/sayso.v1.ReviewService/Status"))
        .version(Version::HTTP_2)
        .header(right.0, right.1)
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from_static(b"{}")))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    status
}

#[tokio::test]
async fn foreign_hosts_are_rejected_over_http_2() {
    let scene = Scene::new();
    let server = scene.serve();
    assert_eq!(over_http2(server.address, &server.address.to_string()).await, 200);
    assert_eq!(over_http2(server.address, "localhost").await, 200);
    for authority in ["evil.example", "localhost.evil.example:7777", "0.0.0.0", "10.0.0.1"] {
        assert_eq!(over_http2(server.address, authority).await, 403, "{authority}");
    }
}

/// Makes a call without a token, as a page would. The server requires none, so that only the origin decides.
fn page(address: SocketAddr, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [HOST].into_iter().chain(headers.iter().copied()).collect();
    status_with(address, &headers)
}

#[test]
fn foreign_origins_are_rejected_without_token() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| {
        http.token = None;
        http.origins = vec!["http://localhost:5173".to_owned()];
    });
    let own = format!("http://localhost:{}", server.address.port());
    for origin in [own.as_str(), "http://localhost:5173"] {
        let answer = page(server.address, &[("origin", origin)]);
        assert_eq!(answer.status, 200, "{origin}: {answer:?}");
        assert!(answer.head.contains(&format!("access-control-allow-origin: {origin}")), "{answer:?}");
    }
    let foreign =
        ["http://evil.example", "null", "http://localhost:5174", "https://localhost:5173", "file://", "", "*"];
    for origin in foreign {
        let answer = page(server.address, &[("origin", origin)]);
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        assert!(!answer.head.contains("access-control-allow-origin"), "{origin}: {answer:?}");
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(page(server.address, &[("sec-fetch-site", site)]).status, 403, "{site}");
    }
}

#[test]
fn cross_site_simple_requests_are_rejected() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| http.token = None);
    let get = |site: &str| {
        let request = format!(
            "GET /sayso.v1.ReviewService/Status?connect=v1&encoding=json&message=%7B%7D HTTP/1.1\r\n\
             host: localhost\r\nsec-fetch-site: {site}\r\nconnection: close\r\n\r\n"
        );
        exchange(server.address, request.as_bytes())
    };
    assert_eq!(get("cross-site").status, 403);
    assert_eq!(get("same-site").status, 403);
    // Without the headers of a foreign page, the call succeeds.
    let own = get("none");
    assert_eq!(own.status, 200, "{own:?}");
    // A mutating call fails even with a login.
    let decide = format!(
        "GET /sayso.v1.ReviewService/Decide?connect=v1&encoding=json&message=%7B%7D HTTP/1.1\r\n\
         host: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        server.login
    );
    assert_eq!(exchange(server.address, decide.as_bytes()).status, 405);
    // Form content types, which need no preflight, fail as well.
    let form = "POST /sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
                content-length: 2\r\nconnection: close\r\n\r\n{}";
    let form = exchange(server.address, form.as_bytes());
    assert_eq!(form.status, 415, "{form:?}");
}

#[test]
fn preflight_allows_configured_origins_only() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| http.origins = vec!["http://localhost:5173".to_owned()]);
    let preflight = |origin: &str| {
        let request = format!(
            "OPTIONS /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\n\
             access-control-request-method: POST\r\naccess-control-request-headers: authorization\r\n\
             connection: close\r\n\r\n"
        );
        exchange(server.address, request.as_bytes())
    };
    let allowed = preflight("http://localhost:5173");
    assert_eq!(allowed.status, 204);
    assert!(allowed.head.contains("access-control-allow-origin: http://localhost:5173"), "{allowed:?}");
    assert!(allowed.head.contains("access-control-allow-headers: authorization"), "{allowed:?}");
    assert!(!allowed.head.contains("access-control-allow-credentials"), "{allowed:?}");
    for origin in ["http://evil.example", "null", "http://localhost:5173.evil.example"] {
        let refused = preflight(origin);
        assert_eq!(refused.status, 403, "{origin}");
        assert!(!refused.head.contains("access-control-allow"), "{origin}: {refused:?}");
    }
    // OPTIONS without an origin is no preflight and needs the token.
    let bare = "OPTIONS /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\n\
                access-control-request-method: POST\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(server.address, bare.as_bytes()).status, 401);
}
