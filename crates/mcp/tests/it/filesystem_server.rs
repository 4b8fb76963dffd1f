//! `@modelcontextprotocol/server-filesystem` from npm, in the version of `tests/server`.

use std::path::{Path, PathBuf};
use std::process::Command;

use sayso_mcp::{McpServers, ServerConfig};
use sayso_review::{Proposal, ToolPreview};
use sayso_testkit::programs::root;
use sayso_testkit::skip::skip;
use sayso_tools::{ExternalTool, Registry, ToolOutput};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{ignore_progress, settings};

/// Returns the program of the server, or skips the test.
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

struct Scene {
    directory: TempDir,
    servers: McpServers,
    tools: Vec<ExternalTool>,
}

impl Scene {
    async fn start() -> Option<Self> {
        let program = program()?;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "one\ntwo\n").unwrap();
        let config = ServerConfig::process(program.to_str().unwrap(), [directory.path().to_str().unwrap()]);
        let servers = McpServers::new([("files".to_owned(), config)].into(), settings(directory.path()));
        let tools = servers.tools().await.remove(0).1.unwrap();
        Some(Self { directory, servers, tools })
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    async fn call(&self, tool: &str, path: &str) -> ToolOutput {
        self.servers.call("files", tool, &json!({ "path": path }), &ignore_progress).await.unwrap()
    }

    /// Previews a call by the schema that the server gave.
    fn preview(&self, tool: &str, arguments: &Value) -> ToolPreview {
        let tool = self.tools.iter().find(|known| known.tool == tool).unwrap();
        ToolPreview::of(&tool.name, arguments, Some(&tool.schema))
    }

    /// Returns the diff of a call, as the gate shows it.
    fn diff(&self, tool: &str, arguments: &Value) -> String {
        let preview = self.preview(tool, arguments);
        assert_eq!(preview.problems, [], "{tool}");
        let proposal: Proposal = preview.changes.unwrap();
        let workspace = sayso_workspace::Workspace::open(self.directory.path()).unwrap();
        let draft = proposal.draft(|path| workspace.locate(path)).unwrap();
        let observation = workspace.observe(draft.paths(), sayso_tools::FILE_LIMIT);
        draft.preview(&observation).files().iter().map(sayso_review::FilePreview::unified).collect()
    }
}

#[tokio::test]
async fn write_tools_have_real_diffs() {
    let Some(scene) = Scene::start().await else { return };
    let write = json!({ "path": scene.path("a.txt"), "content": "one\n2\n" });
    let diff = scene.diff("write_file", &write);
    assert!(diff.contains("-two\n+2\n"), "{diff}");
    let new = scene.diff("write_file", &json!({ "path": scene.path("new.txt"), "content": "x\n" }));
    assert!(new.starts_with("--- /dev/null\n+++ new.txt (new file)\n"), "{new}");
    let edits = json!({ "path": scene.path("a.txt"), "edits": [{ "oldText": "one", "newText": "1" }, { "oldText": "two", "newText": "2" }] });
    let diff = scene.diff("edit_file", &edits);
    assert!(diff.contains("-one\n-two\n+1\n+2\n"), "{diff}");
    let moved = scene.diff("move_file", &json!({ "source": scene.path("a.txt"), "destination": scene.path("b.txt") }));
    assert!(moved.contains("renamed from a.txt"), "{moved}");
    // The preview is what the server does.
    let edited = scene.servers.call("files", "edit_file", &edits, &ignore_progress).await.unwrap();
    assert!(!edited.is_error, "{}", edited.text);
    assert_eq!(std::fs::read_to_string(scene.path("a.txt")).unwrap(), "1\n2\n");
    scene.servers.call("files", "write_file", &write, &ignore_progress).await.unwrap();
    assert_eq!(std::fs::read_to_string(scene.path("a.txt")).unwrap(), "one\n2\n");
}

#[tokio::test]
async fn reads_and_dry_runs_have_no_diff() {
    let Some(scene) = Scene::start().await else { return };
    for (tool, arguments) in [
        ("read_text_file", json!({ "path": scene.path("a.txt") })),
        ("search_files", json!({ "path": scene.path(""), "pattern": "a" })),
        ("create_directory", json!({ "path": scene.path("d") })),
        (
            "edit_file",
            json!({ "path": scene.path("a.txt"), "edits": [{ "oldText": "a", "newText": "b" }], "dryRun": true }),
        ),
    ] {
        let preview = scene.preview(tool, &arguments);
        assert!(preview.changes.is_none() && preview.problems.is_empty(), "{tool}: {preview:?}");
    }
    let wrong = scene.preview("write_file", &json!({ "path": 1 }));
    assert_eq!(wrong.problems.len(), 2, "{wrong:?}");
}

#[tokio::test]
async fn registry_offers_tools_of_server() {
    let Some(scene) = Scene::start().await else { return };
    let mut registry = Registry::builtin().only(["Read", "mcp__files__*"]).unwrap();
    registry.add_external(scene.tools.clone());
    let names: Vec<String> = registry.definitions().into_iter().map(|definition| definition.name).collect();
    assert!(names.contains(&"mcp__files__write_file".to_owned()), "{names:?}");
    assert_eq!(scene.call("read_text_file", &scene.path("a.txt")).await.text, "one\ntwo\n");
    let outside = scene.call("read_text_file", "/etc/passwd").await;
    assert!(outside.is_error && outside.text.contains("denied"), "{}", outside.text);
    std::fs::write(scene.path("p.png"), b"\x89PNG").unwrap();
    assert_eq!(scene.call("read_media_file", &scene.path("p.png")).await.images[0].data, b"\x89PNG");
    scene.servers.close().await;
}
