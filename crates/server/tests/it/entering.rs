//! Who gets in over TCP: with the token, under a name of this machine, from no page that was not configured.

use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sayso_api::client::{Client, Extent, Loopback, Token};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::raw::{Answer, exchange, right, status_with};
use crate::scene::{Scene, TOKEN};

const HOST: (&str, &str) = ("host", "localhost");

#[test]
fn without_the_right_token_nobody_gets_in() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = right();
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
    // Not by another way than the header.
    let query =
        format!("POST /sayso.v1.ReviewService/Status?token={TOKEN}&authorization=Bearer%20{TOKEN} HTTP/1.1\r\n");
    let rest = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    assert_eq!(exchange(server.address, format!("{query}{rest}").as_bytes()).status, 401);
}

#[test]
fn after_many_wrong_tokens_only_the_right_one_is_looked_at() {
    let scene = Scene::new();
    let server = scene.serve();
    let codes: Vec<u16> =
        (0..30).map(|_| status_with(server.address, &[HOST, ("authorization", "Bearer wrong")]).status).collect();
    assert_eq!(codes[0], 401);
    assert_eq!(codes[29], 429, "{codes:?}");
    let right = right();
    assert_eq!(status_with(server.address, &[HOST, (right.0, &right.1)]).status, 200);
}

#[tokio::test]
async fn a_token_of_an_earlier_start_is_no_longer_one() {
    let scene = Scene::new();
    let first = sayso_server::Token::random().unwrap();
    let second = sayso_server::Token::random().unwrap();
    let server = scene.serve_as(|http| http.token = Some(first.clone()));
    let client = |address: SocketAddr, token: &sayso_server::Token| {
        Client::new(Arc::new(Loopback { address }), Some(Token::new(token.reveal()).unwrap()))
    };
    client(server.address, &first).status(Extent::Counts).await.unwrap();
    server.end();
    let server = scene.serve_as(|http| http.token = Some(second.clone()));
    let late = client(server.address, &first).status(Extent::Counts).await.unwrap_err();
    assert!(late.to_string().contains("not the token"), "{late}");
    client(server.address, &second).status(Extent::Counts).await.unwrap();
}

#[test]
fn hosts_that_are_not_this_machine_are_refused() {
    let scene = Scene::new();
    let server = scene.serve_as(|http| http.hosts = vec!["gate.example".to_owned()]);
    let right = right();
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
    // The name in the request's own line counts as well.
    let line = format!(
        "POST http://evil.example/sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        right.0, right.1
    );
    assert_eq!(exchange(server.address, line.as_bytes()).status, 403);
}

/// Makes a call over HTTP/2 that names the server like this.
async fn over_http2(address: SocketAddr, authority: &str) -> u16 {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, work) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(work);
    let right = right();
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
async fn the_same_hosts_are_refused_over_http_2() {
    let scene = Scene::new();
    let server = scene.serve();
    assert_eq!(over_http2(server.address, &server.address.to_string()).await, 200);
    assert_eq!(over_http2(server.address, "localhost").await, 200);
    for authority in ["evil.example", "localhost.evil.example:7777", "0.0.0.0", "10.0.0.1"] {
        assert_eq!(over_http2(server.address, authority).await, 403, "{authority}");
    }
}

/// What a page of an origin gets from a server that asks for no token, which leaves the origin alone to keep it out.
fn page(address: SocketAddr, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [HOST].into_iter().chain(headers.iter().copied()).collect();
    status_with(address, &headers)
}

#[test]
fn pages_of_other_origins_are_refused_even_where_no_token_is_asked_for() {
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
fn a_page_elsewhere_cannot_have_a_call_made_by_an_image() {
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
    // The call itself may be made like this.
    let own = get("none");
    assert_eq!(own.status, 200, "{own:?}");
    // What changes something may not, with a login either.
    let decide = format!(
        "GET /sayso.v1.ReviewService/Decide?connect=v1&encoding=json&message=%7B%7D HTTP/1.1\r\n\
         host: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        server.login
    );
    assert_eq!(exchange(server.address, decide.as_bytes()).status, 405);
    // Nor as what a form sends without being asked.
    let form = "POST /sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
                content-length: 2\r\nconnection: close\r\n\r\n{}";
    let form = exchange(server.address, form.as_bytes());
    assert_eq!(form.status, 415, "{form:?}");
}

#[test]
fn browsers_are_told_of_configured_origins_only() {
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
    // Being asked is no call: without the origin that a browser names, it needs the token like any other.
    let bare = "OPTIONS /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\n\
                access-control-request-method: POST\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(server.address, bare.as_bytes()).status, 401);
}
