//! Output and options of `sayso serve`.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::Scene;
use crate::served::Served;
use sayso_testkit::skip::skip;

/// Returns the response and headers that `curl` gets with a token.
fn curl(url: &str, method: &str, body: &str, token: Option<&str>) -> Output {
    let mut command = Command::new("curl");
    command.args(["-sSi", "-m", "60", "-H", "content-type: application/json", "-d", body]);
    if let Some(token) = token {
        command.args(["-H", &format!("authorization: Bearer {token}")]);
    }
    command.arg(format!("{url}/sayso.v1.{method}")).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server for a person, and what it has said until it says how to end it.
struct Spoken {
    child: Child,
    text: String,
}

impl Spoken {
    fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .arg("serve")
            .args(arguments)
            .current_dir(scene.directory.path())
            .env_clear()
            .envs(scene.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            text.push_str(&line.unwrap());
            text.push('\n');
            if text.contains("Ctrl-C ends it.") {
                break;
            }
        }
        Self { child, text }
    }

    /// Ends it, and gives what it said besides.
    fn end(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        String::from_utf8_lossy(&self.child.wait_with_output_of_errors()).into_owned()
    }
}

trait Errors {
    fn wait_with_output_of_errors(&mut self) -> Vec<u8>;
}

impl Errors for Child {
    fn wait_with_output_of_errors(&mut self) -> Vec<u8> {
        let mut errors = Vec::new();
        std::io::Read::read_to_end(self.stderr.as_mut().unwrap(), &mut errors).unwrap();
        self.wait().unwrap();
        errors
    }
}

#[test]
fn printed_url_is_callable_on_all_addresses() {
    for address in ["127.0.0.1", "0.0.0.0", "::"] {
        if address == "::" && TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
            skip("this machine has no IPv6");
            continue;
        }
        let scene = Scene::new(&[]);
        let served = Served::start(&scene, &["--listen", address]);
        let (url, token) = (served.text("url"), served.text("token"));
        let answer = said(&curl(url, "ReviewService/Status", "{}", Some(token)));
        assert!(answer.starts_with("HTTP/1.1 200"), "{url}: {answer}");
        assert_eq!(scene.json(&["doctor", "--json"]).0["engines"][0]["url"], url);
    }
    let scene = Scene::new(&[]);
    let spoken = Spoken::start(&scene, &["--listen", "0.0.0.0", "--port", "0"]);
    assert!(spoken.text.contains("at http://127.0.0.1:") && spoken.text.contains("--allow-host"), "{}", spoken.text);
    spoken.end();
}

/// Invariant 12: a public address requires a token.
#[test]
fn public_address_without_token_is_refused() {
    let scene = Scene::new(&[]);
    for address in ["0.0.0.0", "::", "192.0.2.1"] {
        let output = scene.run(&["serve", "--no-auth", "--listen", address, "--port", "0"], b"");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{address}: {told}");
        assert!(told.contains("token") && told.contains("Hint:"), "{address}: {told}");
    }
}

#[test]
fn no_auth_warns_and_own_token_is_used() {
    let scene = Scene::new(&[]);
    let spoken = Spoken::start(&scene, &["--no-auth", "--port", "0"]);
    assert!(!spoken.text.contains("Token") && !spoken.text.contains("Authorization"), "{}", spoken.text);
    let told = spoken.end();
    assert!(told.contains("warning: --no-auth: any program on this machine can read and propose"), "{told}");
    let own = "0123456789abcdef-mine";
    let served = Served::start(&scene, &["--auth-token", own]);
    assert_eq!(served.text("token"), own);
    served.ask_to_end();
    served.ended();
    let served = Served::start_with(&scene, &[("SAYSO_AUTH_TOKEN", own)]);
    for (token, status) in [(Some(own), "200"), (Some("0123456789abcdef"), "401"), (None, "401")] {
        let answer = said(&curl(served.text("url"), "ReviewService/Status", "{}", token));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token:?}: {answer}");
    }
}

#[test]
fn taken_port_moves_to_next_with_note() {
    // Another process has the port.
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 7777));
    let scene = Scene::new(&[]);
    let spoken = Spoken::start(&scene, &[]);
    let at = spoken.text.split("http://127.0.0.1:").nth(1).unwrap_or_default();
    let port: u16 = at.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!((7778..7900).contains(&port), "{}", spoken.text);
    let told = spoken.end();
    assert!(told.contains("port 7777 is taken"), "{told}");
    // A requested port is used or fails.
    let output = scene.run(&["serve", "--port", "7777"], b"");
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn log_lines_have_response_request_id() {
    let scene = Scene::new(&[]);
    let served = Served::start(&scene, &["--log", "debug", "--log-format", "json"]);
    let (url, token) = (served.text("url").to_owned(), served.text("token").to_owned());
    let id = |answer: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        line.unwrap_or_else(|| panic!("{answer}")).trim().parse::<u64>().unwrap()
    };
    let failed = id(&said(&curl(&url, "ReviewService/GetChange", r#"{"change":"77"}"#, Some(&token))));
    let refused = id(&said(&curl(&url, "ReviewService/Status", "{}", Some("wrong-wrong-wrong"))));
    served.ask_to_end();
    let log = served.ended();
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |id: u64| -> Vec<&Value> {
        let within =
            |line: &&Value| line["spans"].as_array().is_some_and(|spans| spans.iter().any(|span| span["id"] == id));
        lines.iter().filter(|line| within(line) || line["fields"]["id"] == id).collect()
    };
    let says = |id: u64, level: &str, message: &str| {
        of(id).iter().any(|line| line["level"] == level && line["fields"]["message"] == message)
    };
    assert!(says(failed, "INFO", "a call failed") && says(failed, "DEBUG", "responded"), "{log}");
    let why = of(failed).iter().any(|line| line.to_string().contains("77"));
    assert!(why, "the error is there: {log}");
    assert!(
        says(refused, "WARN", "request with a wrong or missing token") && says(refused, "WARN", "rejected"),
        "{log}"
    );
    assert_ne!(failed, refused);
    // Calls below the level are not logged.
    let served = Served::start(&scene, &["--log", "error", "--log-format", "json"]);
    curl(served.text("url"), "ReviewService/Status", "{}", None);
    served.ask_to_end();
    assert_eq!(served.ended(), "");
}

/// A login link in a text.
fn link_in(text: &str) -> &str {
    text.split_whitespace().find(|word| word.contains("/login/")).unwrap_or_else(|| panic!("no link: {text}"))
}

/// Status line and headers of the answer to a browser.
fn browse(link: &str) -> String {
    let output = Command::new("curl").args(["-sSi", "-m", "60", "-H", "accept: text/html", link]).output().unwrap();
    said(&output).to_ascii_lowercase()
}

#[test]
fn serve_prints_link_that_logs_a_browser_in_once() {
    let scene = Scene::new(&[]);
    let spoken = Spoken::start(&scene, &["--port", "0"]);
    let link = link_in(&spoken.text);
    let opened = browse(link);
    assert!(opened.starts_with("http/1.1 303") && opened.contains("set-cookie: sayso-login-"), "{opened}");
    let again = browse(link);
    assert!(again.starts_with("http/1.1 403") && again.contains("sayso open"), "{again}");
    spoken.end();
}

#[test]
fn open_starts_browser_with_link_to_view() {
    let scene = Scene::new(&[("browser", b"#!/bin/sh\nprintf '%s' \"$1\" > opened\n")]);
    let browser = scene.path("browser");
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(Command::new("mkfifo").arg(scene.path("opened")).status().unwrap().success());
    let without = scene.run(&["open"], b"");
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("start `sayso serve`"), "{without:?}");
    let served = Served::start(&scene, &[]);
    let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["open", "change/12"])
        .current_dir(scene.directory.path())
        .env_clear()
        .envs(scene.environment())
        .env("BROWSER", &browser)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // Blocks until the browser, which outlives the command, has written to the pipe.
    let opened = std::fs::read_to_string(scene.path("opened")).unwrap();
    assert_eq!(opened, said(&output).trim());
    assert!(opened.starts_with(served.text("url")) && opened.ends_with("?next=/change/12"), "{opened}");
    assert!(browse(&opened).contains("\r\nlocation: /change/12\r\n"), "{opened}");
    let printed = scene.run(&["open", "--print"], b"");
    assert!(printed.stderr.is_empty() && browse(said(&printed).trim()).starts_with("http/1.1 303"), "{printed:?}");
    let elsewhere = scene.run(&["open", "//evil.example"], b"");
    assert_eq!(elsewhere.status.code(), Some(2), "{elsewhere:?}");
}
