//! Tools that read files, fetch pages, call MCP servers or delegate work.

use std::collections::BTreeMap;
use std::sync::Arc;

use sayso_agent::host::{
    ActionOutcome, ActionResult, CallOrigin, DelegationPermit, FileText, ReadProblem, ToolRequest,
};
use sayso_gate::{AskMode, BufferRead, Editors as _, Submission, ToolReport};
use sayso_proxy::FetchLimits;
use sayso_review::{
    BUILT_IN_AGENT, ChangeId, ChangeStatus, ErrorKind, Grants, Intent, Origin, PathGlobs, PathTarget, Policy,
    PolicyQuery, Principal, Ruling, Subject, WsPath,
};
use sayso_tools::{Context, Delegation, FetchStep, ReadFilter, Step, ToolError, UnsavedBuffers};
use sayso_workspace::OpenError;
use serde_json::{Value, json};

use super::SessionHost;
use super::change::{Decided, IntentOf, decide, finish, on_thread};
use crate::editors::EditorRegistry;
use crate::failure::Failure;
use crate::host::{Host, now};

/// Tools that read files of the workspace. Rules apply to them as to those of any agent.
const READING_TOOLS: [&str; 5] = ["Read", "List", "Glob", "Grep", "Diff"];

pub(super) fn tool_error(failure: &Failure) -> ToolError {
    ToolError { kind: failure.kind, message: failure.message.clone(), hint: failure.hint.clone() }
}

/// Unsaved texts of editors, asked for before a call.
#[derive(Debug)]
struct Buffers(BTreeMap<WsPath, String>);

impl Buffers {
    /// Asks the editors. Blocks until they answer, within a time limit.
    fn read(editors: &EditorRegistry) -> Self {
        let dirty = editors.dirty_files();
        if dirty.is_empty() {
            return Self(BTreeMap::new());
        }
        let texts = editors.read_buffers(&dirty).into_iter().filter_map(|(path, read)| match read {
            BufferRead::Unsaved(buffer) => Some((path, buffer.text)),
            BufferRead::Saved | BufferRead::Unknown { .. } => None,
        });
        Self(texts.collect())
    }
}

impl UnsavedBuffers for Buffers {
    fn text(&self, location: &WsPath) -> Option<String> {
        self.0.get(location).cloned()
    }
}

/// Rules about single files. A search of a directory shows no file that a rule denies.
#[derive(Debug)]
struct DeniedFiles {
    policy: Policy,
    session: String,
}

impl ReadFilter for DeniedFiles {
    fn allows(&self, path: &WsPath) -> bool {
        let who = Principal { agent: Some(BUILT_IN_AGENT), session: Some(&self.session) };
        let targets = [PathTarget::Inside(path.clone())];
        self.policy.evaluate(&PolicyQuery::Read { targets: &targets }, &who).ruling != Ruling::Deny
    }
}

/// Checks a call, and executes it if it only reads.
pub(super) async fn prepare(host: &SessionHost, call: &CallOrigin, arguments: &Value) -> Result<Step, ToolError> {
    let mut arguments = arguments.clone();
    let mut permitted = None;
    if READING_TOOLS.contains(&call.tool.as_str()) {
        match allow_reading(host, call, &arguments).await.map_err(|failure| tool_error(&failure))? {
            Reading::Allowed => {}
            Reading::Permitted { change, approved } => (permitted, arguments) = (Some(change), approved),
            Reading::Refused(message) => {
                return Err(ToolError { kind: ErrorKind::ToolDenied, message, hint: None });
            }
        }
    }
    let (live, tool) = (Arc::clone(&host.live), call.tool.clone());
    let prepared = on_thread(&host.host, move |host| {
        let everything =
            PathGlobs::new(["**"]).map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))?;
        let registry = host.agent_sessions.registry();
        let tools = registry.names().map(str::to_owned).collect();
        let grants = Grants { tools, read: everything.clone(), write: everything };
        let buffers = Buffers::read(&host.editors);
        let context = Context::new(&host.workspace, &grants).with_buffers(&buffers).with_reads(&live.reads);
        if !READING_TOOLS.contains(&tool.as_str()) {
            return Ok(registry.prepare(&tool, &arguments, &context));
        }
        let denied = DeniedFiles { policy: host.gate.session_policy(&live.id)?, session: live.id.clone() };
        Ok(registry.prepare(&tool, &arguments, &context.with_filter(&denied)))
    })
    .await;
    if let Some(change) = permitted
        && let Err(failure) = finish(&host.host, change, None).await
    {
        tracing::warn!(change, reason = failure.message, "cannot record the end of a read");
    }
    prepared.map_err(|failure| tool_error(&failure))?
}

/// The decision about a read.
enum Reading {
    Allowed,
    Permitted { change: ChangeId, approved: Value },
    Refused(String),
}

/// Asks policy about a read. Reads that a rule allows leave no record, as those of other agents.
async fn allow_reading(host: &SessionHost, call: &CallOrigin, arguments: &Value) -> Result<Reading, Failure> {
    let intent = Intent::CallTool { name: call.tool.clone(), arguments: arguments.clone() };
    let asked = intent.clone();
    let origin = Origin {
        agent: Some(BUILT_IN_AGENT.to_owned()),
        session: Some(call.session.clone()),
        turn: Some(call.invocation.clone()),
        call: Some(call.call.clone()),
    };
    let ruled = on_thread(&host.host, move |host| {
        host.refresh()?;
        Ok(host.gate.assess(Submission::new(asked, origin))?.ruled.ruling)
    })
    .await?;
    if ruled < Ruling::Ask {
        return Ok(Reading::Allowed);
    }
    match decide(host, IntentOf { call, intent, schema: None, ask_mode: AskMode::ByPolicy }).await? {
        Decided::Recorded(record) if record.status == ChangeStatus::Permitted => {
            let approved = match record.approved() {
                Subject::Tool { arguments, .. } => arguments,
                _ => arguments.clone(),
            };
            Ok(Reading::Permitted { change: record.change, approved })
        }
        decided => Ok(Reading::Refused(decided.into_result().message)),
    }
}

/// Submits a call of a tool outside the engine, and performs it with the approved arguments.
pub(super) async fn call(host: &SessionHost, call: &CallOrigin, request: ToolRequest) -> ActionResult {
    let (arguments, schema) = match &request {
        ToolRequest::Fetch(step) => (json!({ "url": step.url }), None),
        ToolRequest::Mcp { arguments, .. } => {
            let schema = host.host.agent_sessions.registry().external(&call.tool).map(|tool| tool.schema.clone());
            (arguments.clone(), schema)
        }
    };
    let intent = Intent::CallTool { name: call.tool.clone(), arguments: arguments.clone() };
    let record = match decide(host, IntentOf { call, intent, schema, ask_mode: AskMode::ByPolicy }).await {
        Ok(Decided::Recorded(record)) if record.status == ChangeStatus::Permitted => record,
        Ok(decided) => return decided.into_result(),
        Err(failure) => return super::failed(&failure),
    };
    let change = record.change;
    let approved = match record.approved() {
        Subject::Tool { arguments, .. } => arguments,
        _ => arguments,
    };
    let mut running = EndOnDrop { host: host.clone(), change: Some(change) };
    let done = match request {
        ToolRequest::Fetch(step) => fetch(host, step, &approved).await,
        ToolRequest::Mcp { server, tool, .. } => {
            host.host.agent_sessions.call_mcp(&host.host, &server, &tool, &approved).await
        }
    };
    running.change = None;
    let ended = match &done {
        Ok(_) => finish(&host.host, change, None).await,
        Err(message) => finish_failed(&host.host, call, message).await,
    };
    if let Err(failure) = ended {
        tracing::warn!(change, reason = failure.message, "cannot record the end of a tool call");
    }
    let (outcome, message) = match done {
        Ok(text) => (ActionOutcome::Applied, text),
        Err(message) => (ActionOutcome::Failed, message),
    };
    ActionResult { change: Some(change), outcome, message }
}

/// Records the end of a permitted call whose tool failed. It may have changed files all the same.
async fn finish_failed(host: &Arc<Host>, call: &CallOrigin, message: &str) -> Result<(), Failure> {
    let (session, call, message) = (call.session.clone(), call.call.clone(), message.to_owned());
    on_thread(host, move |host| {
        let report = ToolReport::Failed(&message);
        Ok(host.gate.finish_matching(Some(&session), Some(&call), report, now()).map(drop)?)
    })
    .await
}

/// Records the end of an interrupted call.
struct EndOnDrop {
    host: SessionHost,
    change: Option<ChangeId>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let (Some(change), Ok(runtime)) = (self.change.take(), tokio::runtime::Handle::try_current()) else { return };
        let host = Arc::clone(&self.host.host);
        runtime.spawn(async move {
            if let Err(failure) = finish(&host, change, None).await {
                tracing::warn!(change, reason = failure.message, "cannot record the end of an interrupted call");
            }
        });
    }
}

async fn fetch(host: &SessionHost, step: FetchStep, approved: &Value) -> Result<String, String> {
    let url = approved["url"].as_str().unwrap_or(&step.url);
    let FetchStep { max_bytes, max_redirects, timeout, .. } = step;
    let limits = FetchLimits { max_bytes, max_redirects, timeout };
    let page = host.host.proxy.fetch(url, limits).await.map_err(|error| format!("cannot fetch {url}: {error}"))?;
    let kind = page.content_type.unwrap_or_else(|| "unknown type".to_owned());
    let text = match std::str::from_utf8(&page.body) {
        Ok(text) => text.to_owned(),
        // The last character may be cut by the size limit.
        Err(error) if page.is_truncated && error.valid_up_to() + 4 > page.body.len() => {
            String::from_utf8_lossy(&page.body[..error.valid_up_to()]).into_owned()
        }
        Err(_) => return Err(format!("{url} is no text: {} bytes of {kind}", page.body.len())),
    };
    let note = if page.is_truncated { format!("\n[truncated after {max_bytes} bytes]") } else { String::new() };
    let text = format!("status {} · {kind} · {}\n\n{text}{note}", page.status, page.url);
    if page.status < 400 { Ok(text) } else { Err(text) }
}

/// Submits a delegation. The approving person may have edited it.
pub(super) async fn permit_delegation(
    host: &SessionHost,
    call: &CallOrigin,
    delegation: Delegation,
) -> DelegationPermit {
    let arguments = serde_json::to_value(&delegation).unwrap_or_default();
    let intent = Intent::CallTool { name: call.tool.clone(), arguments };
    match decide(host, IntentOf { call, intent, schema: None, ask_mode: AskMode::ByPolicy }).await {
        Ok(Decided::Recorded(record)) if record.status == ChangeStatus::Permitted => {
            let approved = match record.approved() {
                Subject::Tool { arguments, .. } => serde_json::from_value(arguments).ok(),
                _ => None,
            };
            DelegationPermit::Permitted { change: Some(record.change), delegation: approved.unwrap_or(delegation) }
        }
        Ok(decided) => DelegationPermit::Refused(decided.into_result()),
        Err(failure) => DelegationPermit::Refused(super::failed(&failure)),
    }
}

/// Reads a text file for a prompt, with unsaved changes.
pub(super) async fn read_file(host: &SessionHost, path: &str) -> Result<FileText, ReadProblem> {
    let named = path.to_owned();
    let read = on_thread(&host.host, move |host| {
        let unreadable = |message: String| ReadProblem::Unreadable { message };
        let located = match host.workspace.locate(&named) {
            Ok(located) => located,
            Err(error) => return Ok(Err(unreadable(error.to_string()))),
        };
        let opened = match host.workspace.open_path(&located) {
            Ok(opened) => opened,
            Err(OpenError::NotFound(_)) => return Ok(Err(ReadProblem::Missing { path: located.to_string() })),
            Err(error) => return Ok(Err(unreadable(error.to_string()))),
        };
        if let Some(text) = Buffers::read(&host.editors).text(&opened.resolved) {
            return Ok(Ok(FileText { path: located.to_string(), text }));
        }
        let bytes = match opened.read(sayso_tools::FILE_LIMIT) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(unreadable(error.to_string()))),
        };
        Ok(match sayso_diff::plain_text(&bytes) {
            Some(text) => Ok(FileText { path: located.to_string(), text: text.into() }),
            None => Err(unreadable(format!("`{located}` is not a text file"))),
        })
    });
    read.await.unwrap_or_else(|failure| Err(ReadProblem::Unreadable { message: failure.message }))
}
