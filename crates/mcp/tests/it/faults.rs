//! Servers that die, hang, or send too much.

use std::sync::Mutex;
use std::time::Duration;

use sayso_mcp::{CallProgress, McpError, McpServers, ServerStatus};
use sayso_tools::ToolOutput;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{fake, ignore_progress, servers};

struct Scene {
    directory: TempDir,
    servers: McpServers,
}

impl Scene {
    fn new(mode: &str) -> Self {
        Self::limited(mode, 30_000, 30_000)
    }

    fn limited(mode: &str, startup_timeout_ms: u64, call_timeout_ms: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = fake::config(directory.path(), mode);
        (config.startup_timeout_ms, config.call_timeout_ms) = (startup_timeout_ms, call_timeout_ms);
        config.env.insert("OWN".to_owned(), "1".to_owned());
        let servers = servers(directory.path(), config);
        Self { directory, servers }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, McpError> {
        self.servers.call("fake", tool, &arguments, &ignore_progress).await
    }

    /// Waits until the server logged a line.
    async fn logged(&self, line: &str) {
        while !fake::log(self.directory.path()).iter().any(|found| found.starts_with(line)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn tools_are_listed_page_by_page() {
    let scene = Scene::new("");
    assert_eq!(scene.servers.status("fake").unwrap(), ServerStatus::Stopped);
    let [(server, tools)] = &scene.servers.tools().await[..] else { panic!("one server") };
    let tools = tools.as_ref().unwrap();
    assert_eq!((server.as_str(), tools.len()), ("fake", 9));
    assert_eq!((tools[8].name.as_str(), tools[8].tool.as_str()), ("mcp__fake__tool_2_2", "tool_2_2"));
    assert_eq!(tools[8].schema, json!({ "type": "object" }));
    assert_eq!(scene.servers.status("fake").unwrap(), ServerStatus::Running);
    // A cursor that repeats ends the list.
    let endless = Scene::new("endless").servers.tools().await;
    assert_eq!(endless[0].1.as_ref().unwrap().len(), 6);
}

#[tokio::test]
async fn results_become_text_and_images() {
    let scene = Scene::new("noise");
    assert_eq!(scene.call("echo", json!({ "a": [1] })).await.unwrap().text, r#"{"a": [1]}"#);
    let failed = scene.call("fail", json!({})).await.unwrap();
    assert!(failed.is_error && failed.text == "it did not work");
    let image = scene.call("image", json!({})).await.unwrap();
    assert_eq!(image.images[0].data, b"\x89PNG");
    assert_eq!(image.text, "[an image of type image/tiff was omitted]\n[audio of type audio/wav was omitted]");
    assert_eq!(scene.call("structured", json!({})).await.unwrap().text, r#"{"a":1}"#);
    let long = scene.call("long", json!({ "bytes": 1_000_000 })).await.unwrap().text;
    assert!(long.len() < 110_000 && long.ends_with("az") && long.contains("bytes were omitted"));
    assert_eq!(scene.call("garbage", json!({})).await.unwrap().text, "still here");
    let refused = scene.call("refuse", json!({})).await.unwrap_err();
    assert!(matches!(&refused, McpError::Refused { reason, .. } if reason == "no such thing"), "{refused}");
    let bad = scene.call("echo", json!([])).await.unwrap_err();
    assert!(matches!(bad, McpError::Refused { .. }));
    assert_eq!(fake::log(scene.directory.path()).iter().filter(|line| line.starts_with("start")).count(), 1);
}

#[tokio::test]
async fn environment_is_only_what_is_given() {
    let text = Scene::new("").call("env", json!({})).await.unwrap().text;
    let environment: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(environment["OWN"], "1");
    assert!(environment.get("CARGO").is_none() && environment.get("CARGO_MANIFEST_DIR").is_none(), "{text}");
}

#[tokio::test]
async fn prefix_starts_server() {
    let directory = tempfile::tempdir().unwrap();
    let config = fake::config(directory.path(), "");
    let mut settings = crate::settings(directory.path());
    settings.prefix = vec!["env".into(), "MARKED=yes".into()];
    let servers = McpServers::new([("fake".to_owned(), config)].into(), settings);
    let text = servers.call("fake", "env", &json!({}), &ignore_progress).await.unwrap().text;
    assert!(text.contains(r#""MARKED": "yes""#), "{text}");
}

#[tokio::test]
async fn death_is_told_and_server_restarts() {
    let scene = Scene::new("");
    let error = scene.call("die", json!({})).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("`fake`") && message.contains("exit status: 7"), "{message}");
    assert!(message.contains("segmentation fault") && message.len() < 20_000, "{}", message.len());
    assert!(matches!(scene.servers.status("fake").unwrap(), ServerStatus::Failed { .. }));
    assert_eq!(scene.call("echo", json!({})).await.unwrap().text, "{}");
    assert_eq!(fake::log(scene.directory.path()), ["start ", "call die", "start ", "call echo"]);
}

#[tokio::test]
async fn server_that_keeps_dying_is_given_up() {
    let scene = Scene::new("die");
    for _ in 0..5 {
        let error = scene.call("echo", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("no such database"), "{error}");
    }
    let error = scene.call("echo", json!({})).await.unwrap_err();
    assert!(matches!(&error, McpError::GivenUp { times: 5, .. }) && error.to_string().contains("no such database"));
    assert_eq!(fake::log(scene.directory.path()).len(), 5);
    let absent = servers(scene.directory.path(), sayso_mcp::ServerConfig::process("/absent/program", ["x"]));
    let error = absent.call("fake", "echo", &json!({}), &ignore_progress).await.unwrap_err();
    assert!(matches!(&error, McpError::Start { .. }) && error.to_string().contains("/absent/program"), "{error}");
    let unknown = absent.call("other", "echo", &json!({}), &ignore_progress).await.unwrap_err();
    assert!(matches!(unknown, McpError::UnknownServer { .. }));
}

#[tokio::test]
async fn silent_server_fails_at_time_limit() {
    let error = Scene::limited("silent", 1_500, 1_000).call("echo", json!({})).await.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, McpError::Start { .. }) && message.contains("did not answer within 1.5 s"), "{message}");
    assert!(message.contains("license server"), "{message}");
}

#[tokio::test]
async fn hanging_call_is_cancelled_at_time_limit() {
    let scene = Scene::limited("", 30_000, 1_000);
    let error = scene.call("hang", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { seconds: 1, .. }), "{error}");
    scene.logged("cancelled").await;
    assert_eq!(scene.call("echo", json!({})).await.unwrap().text, "{}", "the server goes on");
}

#[tokio::test]
async fn dropped_call_is_cancelled() {
    let scene = Scene::new("");
    let hanging = scene.call("hang", json!({}));
    tokio::select! {
        result = hanging => panic!("{result:?}"),
        () = scene.logged("call hang") => {}
    }
    scene.logged("cancelled").await;
    assert_eq!(scene.call("echo", json!({})).await.unwrap().text, "{}");
}

#[tokio::test]
async fn too_long_message_ends_server() {
    let scene = Scene::new("");
    let error = scene.call("long", json!({ "bytes": 17 << 20 })).await.unwrap_err();
    assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
    assert_eq!(scene.call("echo", json!({})).await.unwrap().text, "{}");
}

#[tokio::test]
async fn progress_arrives_before_result() {
    let scene = Scene::new("");
    let seen: Mutex<Vec<CallProgress>> = Mutex::default();
    let sink = |progress| seen.lock().unwrap().push(progress);
    let called = scene.servers.call("fake", "progress", &json!({}), &sink).await.unwrap();
    assert_eq!(called.text, "done");
    let seen = seen.into_inner().unwrap();
    let messages: Vec<&str> = seen.iter().filter_map(|progress| progress.message.as_deref()).collect();
    assert_eq!(messages, ["step 1", "step 2", "step 3"]);
    assert_eq!((seen[2].done, seen[2].total), (3.0, Some(3.0)));
}

#[tokio::test]
async fn changed_tools_are_reported_once() {
    let scene = Scene::new("");
    scene.call("changed", json!({})).await.unwrap();
    assert_eq!(scene.servers.take_changed(), ["fake"]);
    assert!(scene.servers.take_changed().is_empty());
}

#[tokio::test]
async fn close_ends_process() {
    let scene = Scene::new("");
    scene.call("echo", json!({})).await.unwrap();
    scene.servers.close().await;
    scene.logged("end").await;
    assert_eq!(scene.servers.status("fake").unwrap(), ServerStatus::Stopped);
    assert_eq!(scene.call("echo", json!({})).await.unwrap().text, "{}");
}
