//! Calls with paths neither access files outside the workspace nor reveal their names.

use std::os::unix::fs::symlink;

use sayso_api::client::{
    AskMode, Client, ClientError, PreviewDetail, PreviewOf, ProposeMode, Proposed, Submission, ToolCall, ToolGrants,
};
use sayso_api::proto;
use sayso_api::proto::oneof::explain_policy_request::Action;
use sayso_review::{Answer, ChangeStatus, ErrorKind, Intent, Origin, Performer, Tier};
use serde_json::{Value, json};

use crate::scene::{Running, Scene, tree, verdict};

const SECRET: &str = "SECRET-CONTENT-OF-ANOTHER";

/// A workspace with symbolic links to the outside, and escaping paths.
struct Traps {
    scene: Scene,
    /// Paths that are lexically outside.
    escapes: Vec<String>,
    /// Paths through links to the outside.
    links: Vec<String>,
}

impl Traps {
    fn new() -> Self {
        let scene = Scene::new();
        let outside = scene.outside();
        std::fs::write(scene.root().join("inside.txt"), "inside\n").unwrap();
        std::fs::write(outside.join("hidden-name.txt"), format!("{SECRET}\n")).unwrap();
        symlink(outside.join("hidden-name.txt"), scene.root().join("leak")).unwrap();
        symlink(&outside, scene.root().join("door")).unwrap();
        symlink("../outside", scene.root().join("back-door")).unwrap();
        symlink("door/hidden-name.txt", scene.root().join("two-steps")).unwrap();
        let escapes = [
            "../outside/hidden-name.txt".to_owned(),
            "a/../../outside/hidden-name.txt".to_owned(),
            "..".to_owned(),
            format!("{}/hidden-name.txt", outside.display()),
            format!("{}/../outside/hidden-name.txt", scene.root().display()),
            "/etc/passwd".to_owned(),
            "/".to_owned(),
            "in\0side.txt".to_owned(),
            String::new(),
        ];
        let links = ["leak", "two-steps", "door/hidden-name.txt", "back-door/hidden-name.txt", "door/new.txt", "door"];
        Self { scene, escapes: escapes.to_vec(), links: links.map(str::to_owned).to_vec() }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.escapes.iter().chain(&self.links)
    }

    /// Fails if a response reveals a name or content outside that the request did not contain.
    fn check(&self, text: &str, asked: &str) {
        let bytes: Vec<String> = SECRET.bytes().take(8).map(|byte| byte.to_string()).collect();
        assert!(!text.contains(SECRET) && !text.contains(&bytes.join(", ")), "{asked:?} read a file outside: {text}");
        // The target of a link inside the workspace is no secret.
        if self.links.iter().any(|link| link == asked) {
            return;
        }
        let outside = self.scene.outside().display().to_string();
        let rest = text.replace(asked, "").replace(&asked.escape_debug().to_string(), "");
        assert!(!rest.contains(&outside), "{asked:?} revealed a path outside: {text}");
        if !asked.contains("hidden-name") {
            assert!(!text.contains("hidden-name"), "{asked:?} revealed a name outside: {text}");
        }
    }

    /// Fails unless a call was rejected with a suitable kind.
    fn assert_rejected<T: std::fmt::Debug>(&self, answer: Result<T, ClientError>, asked: &str) {
        let error = answer.expect_err(asked);
        let told = format!("{error} {:?}", error.hint());
        self.check(&told, asked);
        let outside = self.scene.outside().display().to_string();
        assert!(!told.replace(asked, "").contains(&outside), "{asked:?} revealed a path outside: {told}");
        let kinds = [ErrorKind::FsDenied, ErrorKind::InvalidArgs];
        assert!(kinds.contains(&error.kind()), "{asked:?}: {:?} {error}", error.kind());
    }
}

/// Every kind of file change, with the path in each field that takes one.
fn changes(path: &str) -> Vec<Value> {
    let begin = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
    let update = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{SECRET}\n+x\n*** End Patch\n");
    let moved =
        format!("*** Begin Patch\n*** Update File: inside.txt\n*** Move to: {path}\n@@\n-inside\n+x\n*** End Patch\n");
    let gone = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
    let unified = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+x\n");
    let made = format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n");
    let mut ways = vec![
        json!({ "operation": "create", "path": path, "new_content": "x\n" }),
        json!({ "operation": "update", "path": path, "new_content": "x\n" }),
        json!({ "operation": "write", "path": path, "new_content": "x\n" }),
        json!({ "operation": "write", "path": path, "new_content": "x\n", "base_content": "y\n" }),
        json!({ "operation": "edit", "path": path, "old_string": SECRET, "new_string": "x" }),
        json!({ "operation": "edit", "path": path, "old_string": "", "new_string": "x" }),
        json!({ "operation": "delete", "path": path }),
        json!({ "operation": "rename", "path": path, "to": "taken.txt" }),
        json!({ "operation": "rename", "path": "inside.txt", "to": path }),
    ];
    ways.extend(
        [begin, update, moved, gone, unified, made].map(|patch| json!({ "operation": "patch", "patch": patch })),
    );
    ways
}

/// Proposes and approves a change, and checks every response.
async fn propose_and_approve(traps: &Traps, client: &Client, proposed: Proposed, path: &str) -> Option<ChangeStatus> {
    let preview =
        client.propose(proposed.clone(), Origin::default(), ProposeMode::Preview, PreviewDetail::Contents).await;
    let recorded = client.propose(proposed, Origin::default(), ProposeMode::Ask, PreviewDetail::Contents).await;
    traps.check(&format!("{preview:?}"), path);
    let details = match recorded {
        Ok(details) => details,
        Err(error) => {
            traps.assert_rejected::<()>(Err(error), path);
            return None;
        }
    };
    traps.check(&format!("{details:?}"), path);
    let change = details.record.change;
    if details.record.status == ChangeStatus::Pending {
        let decided =
            client.decide(change, verdict(&details.record, Answer::Approve), None, PreviewDetail::Contents).await;
        traps.check(&format!("{decided:?}"), path);
    }
    let after = client.get_change(change, PreviewDetail::Contents, PreviewOf::Applied).await;
    traps.check(&format!("{after:?}"), path);
    Some(client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record.status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_stay_inside_workspace() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.verdict_client(), tree(&traps.scene.outside()));
    for path in traps.all() {
        for way in changes(path) {
            let text = Proposed::Text(json!({ "changes": [way] }).to_string().into_bytes());
            let status = propose_and_approve(&traps, &client, text, path).await;
            if traps.escapes.contains(path) {
                assert!(
                    !matches!(status, Some(ChangeStatus::Applied | ChangeStatus::Pending)),
                    "{path:?} by {way}: {status:?}"
                );
            }
            assert_eq!(tree(&traps.scene.outside()), before, "{path:?} by {way}");
            // A link itself may be deleted or renamed. Restores it for the next case.
            restore(&traps);
        }
    }
}

/// Restores the initial workspace.
fn restore(traps: &Traps) {
    let root = traps.scene.root();
    for name in ["leak", "door", "back-door", "two-steps", "taken.txt"] {
        let _ = std::fs::remove_file(root.join(name));
    }
    std::fs::write(root.join("inside.txt"), "inside\n").unwrap();
    let outside = traps.scene.outside();
    symlink(outside.join("hidden-name.txt"), root.join("leak")).unwrap();
    symlink(&outside, root.join("door")).unwrap();
    symlink("../outside", root.join("back-door")).unwrap();
    symlink("door/hidden-name.txt", root.join("two-steps")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_listings_stay_inside_workspace() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.tcp_client();
    assert_eq!(client.read_file("inside.txt", 0, 0).await.unwrap().content, b"inside\n");
    for path in traps.all() {
        traps.assert_rejected(client.read_file(path, 0, 0).await, path);
        if !path.is_empty() {
            traps.assert_rejected(client.list_directory(path, 0, None).await, path);
        }
    }
}

fn tools(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({ "path": path })),
        ("List", json!({ "path": path })),
        ("Glob", json!({ "pattern": "**", "path": path })),
        ("Write", json!({ "path": path, "content": "x\n" })),
        ("ProposeChanges", json!({ "changes": [{ "path": path, "operation": "update", "new_content": "x\n" }] })),
        ("Diff", json!({ "path_a": path, "path_b": "inside.txt" })),
        ("Diff", json!({ "path_a": "inside.txt", "path_b": path })),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_stay_inside_workspace() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.verdict_client(), tree(&traps.scene.outside()));
    let everything = ToolGrants {
        tools: ["Read", "List", "Glob", "Write", "ProposeChanges", "Diff"].map(str::to_owned).to_vec(),
        read: vec!["**".to_owned(), "/**".to_owned()],
        write: vec!["**".to_owned(), "/**".to_owned()],
    };
    for path in traps.all() {
        for (name, arguments) in tools(path) {
            for grants in [None, Some(everything.clone())] {
                let error = client.run_tool(name, &arguments, grants).await.expect_err(name);
                traps.check(&format!("{error} {:?}", error.hint()), path);
                // Policy denies some before the path is checked.
                let kinds = [ErrorKind::FsDenied, ErrorKind::InvalidArgs, ErrorKind::ToolDenied];
                assert!(kinds.contains(&error.kind()), "{name} {path:?}: {:?} {error}", error.kind());
            }
            // As an agent: previewed and approved, still without effect outside.
            let intent = Intent::CallTool { name: name.to_owned(), arguments: arguments.clone() };
            let submitted = client.submit(submission(intent), PreviewDetail::Contents).await;
            traps.check(&format!("{submitted:?}"), path);
            let call = ToolCall { tier: Tier::Hook, session: None, call: None, tool: name.to_owned(), arguments };
            traps.check(&format!("{:?}", client.capture(call).await), path);
        }
        let glob = client.run_tool("Glob", &json!({ "pattern": path }), None).await;
        traps.check(&format!("{glob:?}"), path);
    }
    for pattern in ["../**", "/**", "door/**", "**/*hidden*", "back-door/*"] {
        let found = client.run_tool("Glob", &json!({ "pattern": pattern }), None).await;
        traps.check(&format!("{found:?}"), pattern);
    }
    assert_eq!(tree(&traps.scene.outside()), before);
}

fn submission(intent: Intent) -> Submission {
    Submission {
        intent,
        origin: Origin::default(),
        performer: Performer::Gate,
        deadline: None,
        schema: None,
        ask_mode: AskMode::Always,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_start_inside_workspace() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.verdict_client();
    // An empty path is the root of the workspace.
    for path in traps.all().filter(|path| !path.is_empty()) {
        let directory = Some(path.clone());
        let intent = Intent::RunCommand { command: "true".to_owned(), directory, description: None };
        match client.submit(submission(intent), PreviewDetail::Contents).await {
            Err(error) => traps.assert_rejected::<()>(Err(error), path),
            Ok(details) => {
                traps.check(&format!("{details:?}"), path);
                assert!(matches!(details.record.status, ChangeStatus::Failed { .. }), "{path:?}: {details:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undo_rejects_unrecorded_paths() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.verdict_client();
    let proposed = crate::scene::write("inside.txt", "changed\n");
    let record = crate::scene::ask(&client, proposed).await.record;
    client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    let before = tree(&traps.scene.outside());
    for path in traps.all() {
        // As JSON, because the typed client cannot express such paths.
        let target = json!({ "files": { "change": record.change.to_string(), "paths": [path] } });
        for call in ["PlanUndo", "Undo", "PlanRedo", "Redo"] {
            let answer = post(&server, &format!("ReviewService/{call}"), &json!({ "target": target }));
            assert!(answer.status >= 400, "{call} {path:?}: {answer:?}");
            traps.check(&answer.body, path);
        }
    }
    assert_eq!(tree(&traps.scene.outside()), before);
    assert_eq!(std::fs::read_to_string(traps.scene.root().join("inside.txt")).unwrap(), "changed\n");
}

/// Makes a call in JSON over TCP.
fn post(server: &Running, call: &str, body: &Value) -> crate::raw::Answer {
    let (right, body) = (crate::raw::token_header(), body.to_string());
    let request = format!(
        "POST /sayso.v1.{call} HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        right.0,
        right.1,
        body.len()
    );
    crate::raw::exchange(server.address, request.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_explanation_reveals_no_outside_paths() {
    let traps = Traps::new();
    // Links outside, whose targets must stay secret.
    symlink("/elsewhere", traps.scene.outside().join("hop")).unwrap();
    symlink("/proc/self/elsewhere", traps.scene.outside().join("hop-hop")).unwrap();
    let server = traps.scene.serve();
    let client = server.verdict_client();
    let more = ["../outside/hop".to_owned(), format!("{}/hop-hop", traps.scene.outside().display())];
    for path in traps.all().chain(&more) {
        let paths = || proto::explain_policy_request::Paths { paths: vec![path.clone()], ..Default::default() };
        let tool = |name: &str, arguments: &Value| proto::CallTool {
            name: name.to_owned(),
            arguments_json: arguments.to_string(),
            ..Default::default()
        };
        let mut actions = vec![Action::Read(Box::new(paths())), Action::Write(Box::new(paths()))];
        actions.push(Action::Run(format!("cat '{path}' > '{path}.new'")));
        actions.extend(tools(path).iter().map(|(name, arguments)| Action::Tool(Box::new(tool(name, arguments)))));
        // Replaces the directory that the request itself names.
        let named = |text: String| text.replace(&traps.scene.outside().display().to_string(), "../outside");
        for action in actions {
            let asked = format!("{action:?}");
            let request = proto::ExplainPolicyRequest { action: Some(action), ..Default::default() };
            let answer = client.explain_policy(request).await;
            let told = format!("{answer:?}");
            traps.check(&named(told.clone()), path);
            assert!(!told.contains("elsewhere"), "{asked} revealed the target of a link outside: {told}");
            if let (Ok(answer), false) = (answer, path.is_empty()) {
                assert_ne!(answer.ruling, proto::Ruling::RULING_ALLOW, "{asked}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_stay_inside_workspace() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.verdict_client(), tree(&traps.scene.outside()));
    for path in traps.all() {
        for prefix in [None, Some(path.clone())] {
            let task = || proto::BranchTask { task: path.clone(), prefix: prefix.clone(), ..Default::default() };
            traps.check(&format!("{:?}", client.plan_branch(task()).await), path);
            traps.check(&format!("{:?}", client.check_out_branch(task()).await), path);
            traps.check(&format!("{:?}", client.get_branch(prefix.as_deref()).await), path);
        }
    }
    assert_eq!(tree(&traps.scene.outside()), before);
    assert!(!traps.scene.root().join(".git").exists());
}
