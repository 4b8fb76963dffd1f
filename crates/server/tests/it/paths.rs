//! Nothing outside the workspace is read or written through any call that takes a path, and no answer tells of what is there.

use std::os::unix::fs::symlink;

use sayso_api::client::{
    Client, ClientError, Consent, Proposed, Proposing, Shown, Submission, ToolCall, ToolGrants, View,
};
use sayso_api::proto;
use sayso_api::proto::oneof::explain_policy_request::Act;
use sayso_review::{Answer, ChangeStatus, ErrorKind, Intent, Origin, Performer, Tier};
use serde_json::{Value, json};

use crate::scene::{Running, Scene, tree, verdict};

const SECRET: &str = "SECRET-CONTENT-OF-ANOTHER";

/// A workspace from which links lead out, and paths that try to.
struct Traps {
    scene: Scene,
    /// Those that are not even names of something inside.
    escapes: Vec<String>,
    /// Those that are names inside of links that lead out.
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

    /// Fails if a text tells of what is outside, other than what was asked with.
    fn check(&self, text: &str, asked: &str) {
        let bytes: Vec<String> = SECRET.bytes().take(8).map(|byte| byte.to_string()).collect();
        assert!(!text.contains(SECRET) && !text.contains(&bytes.join(", ")), "{asked:?} reads what is outside: {text}");
        // Where a link leads is written in the link, which is inside.
        if self.links.iter().any(|link| link == asked) {
            return;
        }
        let outside = self.scene.outside().display().to_string();
        let rest = text.replace(asked, "").replace(&asked.escape_debug().to_string(), "");
        assert!(!rest.contains(&outside), "{asked:?} is told of a path outside: {text}");
        if !asked.contains("hidden-name") {
            assert!(!text.contains("hidden-name"), "{asked:?} is told of a name outside: {text}");
        }
    }

    /// Fails unless a call was refused as it should be.
    fn refused<T: std::fmt::Debug>(&self, answer: Result<T, ClientError>, asked: &str) {
        let error = answer.expect_err(asked);
        let told = format!("{error} {:?}", error.hint());
        self.check(&told, asked);
        // Why it is refused needs no word of where it would have led.
        let outside = self.scene.outside().display().to_string();
        assert!(!told.replace(asked, "").contains(&outside), "{asked:?} is told of a path outside: {told}");
        let kinds = [ErrorKind::FsDenied, ErrorKind::InvalidArgs];
        assert!(kinds.contains(&error.kind()), "{asked:?}: {:?} {error}", error.kind());
    }
}

/// Every way to change a file, with a path in each place where one can be.
fn ways(path: &str) -> Vec<Value> {
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

/// Proposes, looks at everything that is answered, and approves whatever can be.
async fn try_all(traps: &Traps, client: &Client, proposed: Proposed, path: &str) -> Option<ChangeStatus> {
    let preview = client.propose(proposed.clone(), Origin::default(), Proposing::Preview, View::Content).await;
    let recorded = client.propose(proposed, Origin::default(), Proposing::Ask, View::Content).await;
    traps.check(&format!("{preview:?}"), path);
    let progress = match recorded {
        Ok(progress) => progress,
        Err(error) => {
            traps.refused::<()>(Err(error), path);
            return None;
        }
    };
    traps.check(&format!("{progress:?}"), path);
    let change = progress.record.change;
    if progress.record.status == ChangeStatus::Pending {
        let decided = client.decide(change, verdict(&progress.record, Answer::Approve), None, View::Content).await;
        traps.check(&format!("{decided:?}"), path);
    }
    let after = client.get_change(change, View::Content, Shown::Applied).await;
    traps.check(&format!("{after:?}"), path);
    Some(client.get_change(change, View::Nothing, Shown::Proposed).await.unwrap().record.status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proposal_reaches_what_is_outside() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.near(), tree(&traps.scene.outside()));
    for path in traps.all() {
        for way in ways(path) {
            let text = Proposed::Text(json!({ "changes": [way] }).to_string().into_bytes());
            let status = try_all(&traps, &client, text, path).await;
            if traps.escapes.contains(path) {
                assert!(
                    !matches!(status, Some(ChangeStatus::Applied | ChangeStatus::Pending)),
                    "{path:?} by {way}: {status:?}"
                );
            }
            assert_eq!(tree(&traps.scene.outside()), before, "{path:?} by {way}");
            // A link itself may be removed or renamed, and is put back for the next.
            restore(&traps);
        }
    }
}

/// Makes the workspace as it was.
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
async fn no_read_or_listing_reaches_what_is_outside() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.far();
    assert_eq!(client.read_file("inside.txt", 0, 0).await.unwrap().content, b"inside\n");
    for path in traps.all() {
        traps.refused(client.read_file(path, 0, 0).await, path);
        if !path.is_empty() {
            traps.refused(client.list_directory(path, 0, None).await, path);
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
async fn no_tool_reaches_what_is_outside() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.near(), tree(&traps.scene.outside()));
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
                // Some are denied by policy before they are looked at.
                let kinds = [ErrorKind::FsDenied, ErrorKind::InvalidArgs, ErrorKind::ToolDenied];
                assert!(kinds.contains(&error.kind()), "{name} {path:?}: {:?} {error}", error.kind());
            }
            // Asked for as an agent asks: shown, approved, and still nothing of it.
            let intent = Intent::CallTool { name: name.to_owned(), arguments: arguments.clone() };
            let submitted = client.submit(asking(intent), View::Content).await;
            traps.check(&format!("{submitted:?}"), path);
            let call = ToolCall { tier: Tier::Hook, session: None, call: None, tool: name.to_owned(), arguments };
            traps.check(&format!("{:?}", client.capture(call).await), path);
        }
        // Patterns are no way out either.
        let glob = client.run_tool("Glob", &json!({ "pattern": path }), None).await;
        traps.check(&format!("{glob:?}"), path);
    }
    for pattern in ["../**", "/**", "door/**", "**/*hidden*", "back-door/*"] {
        let found = client.run_tool("Glob", &json!({ "pattern": pattern }), None).await;
        traps.check(&format!("{found:?}"), pattern);
    }
    assert_eq!(tree(&traps.scene.outside()), before);
}

fn asking(intent: Intent) -> Submission {
    Submission {
        intent,
        origin: Origin::default(),
        performer: Performer::Gate,
        deadline: None,
        schema: None,
        consent: Consent::Person,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_starts_outside() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.near();
    // Without a name, it is the workspace itself.
    for path in traps.all().filter(|path| !path.is_empty()) {
        let directory = Some(path.clone());
        let intent = Intent::RunCommand { command: "true".to_owned(), directory, description: None };
        match client.submit(asking(intent), View::Content).await {
            Err(error) => traps.refused::<()>(Err(error), path),
            Ok(progress) => {
                traps.check(&format!("{progress:?}"), path);
                assert!(matches!(progress.record.status, ChangeStatus::Failed { .. }), "{path:?}: {progress:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_undo_touches_what_was_not_recorded() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let client = server.near();
    let proposed = crate::scene::write("inside.txt", "changed\n");
    let record = crate::scene::ask(&client, proposed).await.record;
    client.decide(record.change, verdict(&record, Answer::Approve), None, View::Nothing).await.unwrap();
    let before = tree(&traps.scene.outside());
    for path in traps.all() {
        // As JSON, since no client of ours can say it.
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

/// A call in JSON, over TCP.
fn post(server: &Running, call: &str, body: &Value) -> crate::raw::Answer {
    let (right, body) = (crate::raw::right(), body.to_string());
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
async fn an_explanation_tells_nothing_of_what_is_outside() {
    let traps = Traps::new();
    // What is outside has links of its own, of which nobody inside is to know.
    symlink("/elsewhere", traps.scene.outside().join("hop")).unwrap();
    symlink("/proc/self/elsewhere", traps.scene.outside().join("hop-hop")).unwrap();
    let server = traps.scene.serve();
    let client = server.near();
    let more = ["../outside/hop".to_owned(), format!("{}/hop-hop", traps.scene.outside().display())];
    for path in traps.all().chain(&more) {
        let paths = || proto::explain_policy_request::Paths { paths: vec![path.clone()], ..Default::default() };
        let tool = |name: &str, arguments: &Value| proto::CallTool {
            name: name.to_owned(),
            arguments_json: arguments.to_string(),
            ..Default::default()
        };
        let mut acts = vec![Act::Read(Box::new(paths())), Act::Write(Box::new(paths()))];
        acts.push(Act::Run(format!("cat '{path}' > '{path}.new'")));
        acts.extend(tools(path).iter().map(|(name, arguments)| Act::Tool(Box::new(tool(name, arguments)))));
        // A way up that is taken is still the caller's own: only what they could not know counts.
        let named = |text: String| text.replace(&traps.scene.outside().display().to_string(), "../outside");
        for act in acts {
            let asked = format!("{act:?}");
            let request = proto::ExplainPolicyRequest { act: Some(act), ..Default::default() };
            let answer = client.explain_policy(request).await;
            let told = format!("{answer:?}");
            traps.check(&named(told.clone()), path);
            assert!(!told.contains("elsewhere"), "{asked} is told where a link outside leads: {told}");
            if let (Ok(answer), false) = (answer, path.is_empty()) {
                assert_ne!(answer.ruling, proto::Ruling::RULING_ALLOW, "{asked}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_branch_is_made_outside() {
    let traps = Traps::new();
    let server = traps.scene.serve();
    let (client, before) = (server.near(), tree(&traps.scene.outside()));
    for path in traps.all() {
        for prefix in [None, Some(path.clone())] {
            let task = || proto::BranchTask { task: path.clone(), prefix: prefix.clone(), ..Default::default() };
            traps.check(&format!("{:?}", client.plan_branch(task()).await), path);
            traps.check(&format!("{:?}", client.take_up_branch(task()).await), path);
            traps.check(&format!("{:?}", client.get_branch(prefix.as_deref()).await), path);
        }
    }
    assert_eq!(tree(&traps.scene.outside()), before);
    assert!(!traps.scene.root().join(".git").exists());
}
