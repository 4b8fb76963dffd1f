//! The web app and the pages of a login, as a browser receives them.

use crate::raw::{Answer, exchange, token_header};
use crate::scene::{Running, Scene};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

fn get(server: &Running, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    exchange(server.address, request.as_bytes())
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(found, value)| (found == name).then_some(value)).unwrap_or_default()
}

/// The status of a page: without `ui/app/dist` at build time, it says how to build the app.
fn page_status() -> u16 {
    if sayso_web::page().is_some() { 200 } else { 501 }
}

/// Path of a login link and the cookie that it sets.
async fn link(server: &Running) -> String {
    let link = server.verdict_client().create_login(true).await.unwrap().secret;
    format!("/login/{}", link.rsplit('/').next().unwrap())
}

#[test]
fn views_are_served_without_credential_and_with_strict_headers() {
    let scene = Scene::new();
    let server = scene.serve();
    for path in ["/", "/change/12", "/session/3f2a", "/request/7"] {
        let answer = get(&server, path, &[HTML]);
        assert_eq!(answer.status, page_status(), "{path}: {answer:?}");
        assert_eq!(header(&answer, "content-type"), "text/html; charset=utf-8");
        let policy = header(&answer, "content-security-policy");
        for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
        assert_eq!(header(&answer, "referrer-policy"), "no-referrer");
    }
    if sayso_web::page().is_none() {
        assert!(get(&server, "/", &[HTML]).body.contains("Run <code>make</code>"));
    }
}

#[test]
fn other_paths_and_programs_still_need_a_credential() {
    let scene = Scene::new();
    let server = scene.serve();
    let right = token_header();
    for path in ["/wp-login.php", "/../Cargo.toml", "/sayso.v1.ReviewService/Status"] {
        assert_eq!(get(&server, path, &[HTML]).status, 401, "{path}");
    }
    assert_eq!(get(&server, "/", &[]).status, 401);
    let welcome = get(&server, "/", &[(right.0, &right.1)]);
    assert!(welcome.status == 200 && welcome.body.starts_with("sayso engine"), "{welcome:?}");
}

#[test]
fn page_is_opened_by_foreign_link_but_not_embedded_or_read() {
    let scene = Scene::new();
    let server = scene.serve();
    let from_link =
        [HTML, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(get(&server, "/change/3", &from_link).status, page_status());
    let embedded =
        [HTML, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    assert_eq!(get(&server, "/", &embedded).status, 403);
    let read = [HTML, ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")];
    assert_eq!(get(&server, "/", &read).status, 403);
    let rebound = exchange(
        server.address,
        b"GET / HTTP/1.1\r\nhost: evil.example\r\naccept: text/html\r\nconnection: close\r\n\r\n",
    );
    assert_eq!(rebound.status, 403, "{rebound:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn login_leads_to_a_view_and_never_to_another_site() {
    let scene = Scene::new();
    let server = scene.serve();
    let location = |path: &str| header(&get(&server, path, &[HTML]), "location").to_owned();
    assert_eq!(location(&link(&server).await), "/");
    for (next, leads) in [
        ("/change/3", "/change/3"),
        ("//evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/unknown", "/"),
    ] {
        assert_eq!(location(&format!("{}?next={next}", link(&server).await)), leads, "{next}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn used_login_link_says_how_to_get_another() {
    let scene = Scene::new();
    let server = scene.serve();
    let path = link(&server).await;
    let opened = get(&server, &path, &[HTML]);
    assert_eq!(opened.status, 303, "{opened:?}");
    let cookie = header(&opened, "set-cookie").split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with(&format!("sayso-login-{}=", server.address.port())), "{cookie}");
    let again = get(&server, &path, &[HTML]);
    assert_eq!(again.status, 403, "{again:?}");
    assert!(again.body.contains("sayso open") && header(&again, "set-cookie").is_empty(), "{again:?}");
    // The browser that has used it already is logged in.
    let logged_in = get(&server, &path, &[HTML, ("cookie", &cookie)]);
    assert_eq!((logged_in.status, header(&logged_in, "location")), (303, "/"), "{logged_in:?}");
    assert!(header(&logged_in, "set-cookie").is_empty(), "{logged_in:?}");
}
