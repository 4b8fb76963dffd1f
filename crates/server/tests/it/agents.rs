//! Agents cannot approve their own changes: their descendants cannot decide on any channel.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Output, Stdio};

use sayso_api::client::{Client, PreviewDetail, PreviewOf, StatusDetail};
use sayso_review::{Answer, ChangeRecord, ChangeStatus};
use sayso_server::agent_registry::{AgentRegistry, MARK};
use serde_json::json;

use crate::scene::{Running, Scene, ask, no, verdict, write};

/// Channel of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Socket,
    Tcp,
}

pub(crate) const WAYS: [Way; 2] = [Way::Socket, Way::Tcp];

/// Approval of a change, as JSON.
fn body(record: &ChangeRecord) -> String {
    let verdict = json!({ "previewHash": record.preview.to_string(), "answer": { "approve": {} } });
    json!({ "change": record.change.to_string(), "verdict": verdict }).to_string()
}

/// Approves a change in a child process.
fn curl(server: &Running, way: Way, record: &ChangeRecord, before: &[&str]) -> Output {
    call(server, way, "ReviewService/Decide", &body(record), before)
}

/// Makes a call in a child process.
pub(crate) fn call(server: &Running, way: Way, method: &str, body: &str, before: &[&str]) -> Output {
    call_with(server, way, method, body, before, &[])
}

/// Opens a stream with an empty message in a child process, and reads it to its end.
pub(crate) fn watch(server: &Running, way: Way, method: &str) -> Output {
    let mut message = tempfile::NamedTempFile::new().unwrap();
    // A flag byte, the size and the message.
    message.write_all(b"\0\0\0\0\x02{}").unwrap();
    let body = format!("@{}", message.path().display());
    curl_with(server, way, method, "application/connect+json", &body, &[], &[])
}

/// Makes a call in a child process, with options for `curl`.
fn call_with(server: &Running, way: Way, method: &str, body: &str, before: &[&str], options: &[&str]) -> Output {
    curl_with(server, way, method, "application/json", body, before, options)
}

/// Runs `curl`. A body that starts with `@` names a file.
fn curl_with(
    server: &Running,
    way: Way,
    method: &str,
    content_type: &str,
    body: &str,
    before: &[&str],
    options: &[&str],
) -> Output {
    let mut words: Vec<String> = before.iter().map(ToString::to_string).collect();
    words.extend(["curl", "-sS", "-m", "60", "-H"].map(str::to_owned));
    words.push(format!("content-type: {content_type}"));
    words.extend(options.iter().map(ToString::to_string));
    words.extend([
        "-H".to_owned(),
        format!("authorization: Bearer {}", server.login),
        "--data-binary".to_owned(),
        body.to_owned(),
    ]);
    match way {
        Way::Socket => words.extend([
            "--abstract-unix-socket".to_owned(),
            server.verdicts.clone(),
            format!("http://localhost/sayso.v1.{method}"),
        ]),
        Way::Tcp => words.push(format!("http://{}/sayso.v1.{method}", server.address)),
    }
    Command::new(&words[0]).args(&words[1..]).env_remove(MARK).stdin(Stdio::null()).output().unwrap()
}

/// Fails unless a change is pending.
async fn assert_pending(client: &Client, change: u64) {
    let record = client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record;
    assert_eq!(record.status, ChangeStatus::Pending);
}

pub(crate) fn assert_refused(output: &Output, who: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("agent cannot decide"), "{who}: {output:?}");
    assert!(said.contains("permission_denied"), "{who}: {output:?}");
}

fn assert_approved(output: &Output, who: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("applied") || said.contains("APPLIED"), "{who}: {output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_descendant_cannot_decide() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    for (number, way) in WAYS.into_iter().enumerate() {
        let first = ask(&client, write(&format!("first{number}"), "x\n")).await.record;
        assert_approved(&curl(&server, way, &first, &[]), "a child of nobody");
        // From here on, child processes act for an agent; this process does not.
        let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
        let second = ask(&client, write(&format!("second{number}"), "x\n")).await.record;
        for before in [&[][..], &["setsid", "-w"], &["sh", "-c", "\"$@\"; exit $?", "sh"], &["env", "-i"]] {
            assert_refused(&curl(&server, way, &second, before), &format!("{way:?} {before:?}"));
        }
        assert_pending(&client, second.change).await;
        let own = match way {
            Way::Socket => server.verdict_client(),
            Way::Tcp => server.tcp_client(),
        };
        own.decide(second.change, verdict(&second, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
        registration.unregister();
        let third = ask(&client, write(&format!("third{number}"), "x\n")).await.record;
        assert_approved(&curl(&server, way, &third, &[]), "a child of nobody again");
    }
}

/// Public address of this machine, if any. Sends no packets.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    Some(socket.local_addr().unwrap().ip()).filter(|address| !address.is_loopback())
}

/// A local client may use any address of this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_is_identified_at_any_local_address() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let record = ask(&client, write("mine", "x\n")).await.record;
    let addresses = [Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))), own_address()];
    for address in addresses.into_iter().flatten() {
        let from = ["--interface", &address.to_string()];
        let output = call_with(&server, Way::Tcp, "ReviewService/Decide", &body(&record), &[], &from);
        assert_refused(&output, &format!("from {address}"));
    }
    assert_pending(&client, record.change).await;
    registration.unregister();
}

/// An agent that registers as a surface must not suppress notifications.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_agent_is_no_surface() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let watch = || {
        let body = r#"{"role":"ROLE_SURFACE"}"#;
        let message = format!("printf '\\0\\0\\0\\0\\{:03o}%s' '{body}'", body.len());
        let curl = "curl -sSN -m 60 -H 'content-type: application/connect+json' --data-binary @-";
        let (socket, url) = (&server.verdicts, "http://localhost/sayso.v1.ReviewService/Watch");
        let script = format!("{message} | {curl} --abstract-unix-socket {socket} {url}");
        let mut shell =
            Command::new("sh").args(["-c", &script]).env_remove(MARK).stdout(Stdio::piped()).spawn().unwrap();
        // The first heartbeat: the call is served.
        shell.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
        shell
    };
    let surfaces = async || client.status(StatusDetail::Counts).await.unwrap().surfaces;
    let mut person = watch();
    assert_eq!(surfaces().await, 1);
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let mut agent = watch();
    assert_eq!(surfaces().await, 1);
    registration.unregister();
    server.end();
    assert!(person.wait().is_ok() && agent.wait().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphaned_agent_is_identified_by_mark() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let mark = format!("{MARK}=1");
    for way in WAYS {
        let record = ask(&client, write("mine", "x\n")).await.record;
        // The parent exits before the call, so the caller is an orphan.
        let script = "my $parent = $$; exit 0 if fork; setsid(); \
                      select(undef, undef, undef, 0.005) while getppid() == $parent; exec @ARGV or die $!";
        let away = ["env", &mark, "perl", "-MPOSIX=setsid", "-e", script];
        assert_refused(&curl(&server, way, &record, &away), &format!("{way:?}"));
        assert_pending(&client, record.change).await;
        client.decide(record.change, verdict(&record, no("no")), None, PreviewDetail::Omitted).await.unwrap();
    }
    assert!(!scene.root().join("mine").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_caller_cannot_decide() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let mark = format!("{MARK}=1");
    let socket = server.verdicts.clone();
    let port = server.address.port().to_string();
    // Sends the call and exits.
    let script = "use Socket; \
                  if ($ARGV[0] eq 'socket') { socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"\\0$ARGV[1]\")) or die $! } \
                  else { socket(S, PF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in($ARGV[1], INADDR_LOOPBACK)) or die $! } \
                  syswrite(S, $ARGV[2]);";
    for round in 0..40 {
        let (way, place) = if round % 2 == 0 { ("socket", &socket) } else { ("tcp", &port) };
        let record = ask(&client, write("mine", "x\n")).await.record;
        let body = body(&record);
        let request = format!(
            "POST /sayso.v1.ReviewService/Decide HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            server.login,
            body.len()
        );
        let status = Command::new("env").args([&mark, "perl", "-e", script, way, place, &request]).status().unwrap();
        assert!(status.success(), "{way}");
        // If the verdict had counted, this one would be a conflict.
        client.decide(record.change, verdict(&record, no("no")), None, PreviewDetail::Omitted).await.unwrap();
    }
    assert!(!scene.root().join("mine").exists());
}
