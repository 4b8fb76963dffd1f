//! Authority of each channel.

use std::process::{Command, Output, Stdio};

use sayso_api::client::{Client, Loopback, PreviewDetail, PreviewOf, Token};
use sayso_review::{Answer, ChangeStatus, ErrorKind};

use crate::scene::{Running, Scene, TOKEN, ask, verdict, write};

/// Every method with authority `Decide` or `Admit`.
const DECIDES: [&str; 21] = [
    "RequestService/CancelRequest",
    "RequestService/CaptureNext",
    "RequestService/CloseEndpoint",
    "RequestService/EditRequest",
    "RequestService/GetPersistentEndpoint",
    "RequestService/OpenEndpoint",
    "RequestService/PauseNext",
    "RequestService/RemoveOverrides",
    "RequestService/ReplayRequest",
    "RequestService/ResumeRequest",
    "RequestService/SaveOverrides",
    "RequestService/SetMode",
    "ReviewService/Collect",
    "ReviewService/CreateLogin",
    "ReviewService/Decide",
    "ReviewService/Redo",
    "ReviewService/DryRun",
    "ReviewService/Restore",
    "ReviewService/Undo",
    "WorkspaceService/CheckOutBranch",
    "ReviewService/NoSuchMethod",
];

const OTHERS: [&str; 4] =
    ["ReviewService/Status", "ReviewService/ListPending", "ReviewService/ListChanges", "ToolService/ListTools"];

fn curl(options: &[&str], base: &str, method: &str) -> String {
    let Output { stdout, .. } = Command::new("curl")
        .args(["-sS", "-m", "60", "-H", "content-type: application/json", "-d", "{}"])
        .args(options)
        .arg(format!("{base}/sayso.v1.{method}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&stdout).into_owned()
}

fn by_path(server: &Running, method: &str) -> String {
    curl(&["--unix-socket", server.socket.to_str().unwrap()], "http://localhost", method)
}

fn by_tcp(server: &Running, secret: &str, method: &str) -> String {
    let header = format!("authorization: Bearer {secret}");
    curl(&["-H", &header], &format!("http://{}", server.address), method)
}

#[test]
fn path_socket_and_token_accept_no_verdicts() {
    let scene = Scene::new();
    let server = scene.serve();
    for method in DECIDES {
        for said in [by_path(&server, method), by_tcp(&server, TOKEN, method)] {
            assert!(said.contains("no verdicts") && said.contains("permission_denied"), "{method}: {said}");
        }
    }
    for method in OTHERS {
        for said in [by_path(&server, method), by_tcp(&server, TOKEN, method)] {
            assert!(!said.contains("permission_denied"), "{method}: {said}");
        }
    }
}

#[test]
fn verdict_socket_and_login_reach_all_methods() {
    let scene = Scene::new();
    let server = scene.serve();
    for method in DECIDES.into_iter().chain(OTHERS) {
        let said = curl(&["--abstract-unix-socket", &server.verdicts], "http://localhost", method);
        assert!(!said.contains("permission_denied"), "{method}: {said}");
        let said = by_tcp(&server, &server.login, method);
        let admits = matches!(method, "ReviewService/CreateLogin" | "ReviewService/NoSuchMethod");
        assert_eq!(said.contains("permission_denied"), admits, "{method}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_proposes_and_login_decides() {
    let scene = Scene::new();
    let server = scene.serve();
    let far = Client::new(std::sync::Arc::new(Loopback { address: server.address }), Some(Token::new(TOKEN).unwrap()));
    for proposing in [server.proposal_client(), far] {
        let record = ask(&proposing, write("file", "x\n")).await.record;
        let approval = verdict(&record, Answer::Approve);
        let error = proposing.decide(record.change, approval.clone(), None, PreviewDetail::Omitted).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ToolDenied, "{error}");
        let waits = proposing
            .get_change(record.change, PreviewDetail::Omitted, PreviewOf::Proposed)
            .await
            .unwrap()
            .record
            .status;
        assert_eq!(waits, ChangeStatus::Pending);
        let login = server.verdict_client().create_login(false).await.unwrap();
        let token = Some(Token::new(&login.secret).unwrap());
        let deciding = Client::new(std::sync::Arc::new(Loopback { address: server.address }), token);
        let decided = deciding.decide(record.change, approval, None, PreviewDetail::Omitted).await.unwrap();
        assert_eq!(decided.record.status, ChangeStatus::Applied);
        std::fs::remove_file(scene.root().join("file")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn login_link_sets_cookie_once() {
    let scene = Scene::new();
    let server = scene.serve();
    let link = server.verdict_client().create_login(true).await.unwrap().secret;
    let open = || {
        let output = Command::new("curl").args(["-sS", "-m", "60", "-i", &link]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let opened = open();
    assert!(opened.starts_with("HTTP/1.1 303"), "{opened}");
    let cookie = opened.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let base = format!("http://{}", server.address);
    let said = curl(&["-H", &cookie], &base, "RequestService/PauseNext");
    assert!(said.contains("state"), "{said}");
    // An old browser sends the cookie from a foreign page, too.
    let said = curl(&["-H", &cookie, "-H", "origin: http://evil.example"], &base, "RequestService/PauseNext");
    assert!(said.contains("permission_denied"), "{said}");
    let again = open();
    assert!(again.starts_with("HTTP/1.1 403") && again.contains("used or expired"), "{again}");
}
