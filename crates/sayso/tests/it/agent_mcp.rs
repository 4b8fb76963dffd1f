//! An MCP server from npm as a tool of the built-in agent: its writes are shown as diffs and wait for a verdict.

use std::path::{Path, PathBuf};
use std::process::Command;

use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::root;
use sayso_testkit::skip::skip;
use serde_json::json;

use crate::Scene;
use crate::agent_headless::Task;

const VARIABLE: &str = "SAYSO_ANTHROPIC_UPSTREAM";

/// Returns the program of `@modelcontextprotocol/server-filesystem`, or skips the test.
fn program() -> Option<PathBuf> {
    let output = Command::new(root().join("scripts/setup")).arg("--mcp").output().unwrap();
    let directory = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let program = Path::new(&directory).join("node_modules/.bin/mcp-server-filesystem");
    if output.status.success() && !directory.is_empty() && program.exists() {
        return Some(program);
    }
    skip(String::from_utf8_lossy(&output.stderr));
    None
}

/// Writes the user's configuration with one server.
fn configure(scene: &Scene, command: &str) {
    let workspace = scene.directory.path().to_str().unwrap();
    let path = std::env::var("PATH").unwrap();
    scene.configure(&format!(
        "[mcp_servers.files]\ncommand = {command:?}\nargs = [{workspace:?}]\nenv = {{ PATH = {path:?} }}\n\n\
         [[rule]]\nthen = \"allow\"\ntool = [\"mcp__files__read_text_file\"]\n"
    ));
}

#[test]
fn mcp_write_is_diff_and_waits() {
    let Some(program) = program() else { return };
    let scene = Scene::new(&[("a.txt", b"one\ntwo\n")]);
    configure(&scene, program.to_str().unwrap());
    let path = scene.path("a.txt");
    let write = |content: &str| json!({ "path": path, "content": content });
    let model = ModelServer::start([
        Turn::calls("mcp__files__write_file", write("one\n2\n")),
        Turn::calls("mcp__files__write_file", write("denied\n")),
        Turn::calls("mcp__files__read_text_file", json!({ "path": scene.path("missing.txt") })),
        Turn::says("All done."),
    ]);
    let mut task = Task::start(&scene, &model, VARIABLE, &["Change the file"]);
    let change = task.waiting_change();
    assert_eq!(scene.read("a.txt"), "one\ntwo\n", "nothing is written before the verdict");
    let shown = scene.run(&["review", &change], b"");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("- two") && shown.contains("+ 2"), "{shown}");
    assert_eq!(scene.run(&["review", &change, "--approve", "all"], b"").status.code(), Some(0));
    let denied = task.waiting_change();
    assert_eq!(scene.read("a.txt"), "one\n2\n", "the approved bytes");
    scene.run(&["review", &denied, "--deny", "keep the numbers"], b"");
    let session = task.session.clone();
    let (events, code) = task.finish();
    assert_eq!(code, 0, "{events:#?}");
    let requests = model.requests();
    let tools = requests[0]["tools"].to_string();
    assert!(tools.contains("mcp__files__write_file"), "{tools}");
    assert!(requests[2].to_string().contains("user denied this tool call: keep the numbers"), "{}", requests[2]);
    assert!(requests[3].to_string().contains("ENOENT"), "the error of the server: {}", requests[3]);
    assert_eq!(scene.read("a.txt"), "one\n2\n");
    scene.json(&["undo", "--session", &session, "--json"]);
    assert_eq!(scene.read("a.txt"), "one\ntwo\n", "undo restores what the server wrote");
}

#[test]
fn broken_mcp_server_is_told_to_model() {
    let scene = Scene::new(&[]);
    configure(&scene, "/no/such/server");
    let model = ModelServer::start([Turn::says("Then without it.")]);
    let (events, code) = Task::start(&scene, &model, VARIABLE, &["Hello"]).finish();
    assert_eq!(code, 0, "{events:#?}");
    let request = model.requests().remove(0).to_string();
    assert!(request.contains("the MCP server `files` does not start"), "{request}");
}
