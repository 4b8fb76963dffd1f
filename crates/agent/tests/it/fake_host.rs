//! A host without an engine: scripted verdicts, answers and commands over a real folder and real HTTP.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use futures::future::{BoxFuture, pending};
use futures::{FutureExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, BodyStream, Full};
use hyper_util::rt::TokioIo;
use sayso_agent::host::{
    ActionOutcome, ActionResult, AgentMessage, AgentRequest, AgentResponse, CallOrigin, CommandEnd, CommandResult,
    DelegationPermit, FileText, Host, OutputSink, ReadProblem, SendError, SurfaceAnswer, SurfaceRequest, ToolRequest,
};
use sayso_agent::{LiveEvent, LiveEventKind, LogEntry, RecordError};
use sayso_review::{FileState, Grants, PathGlobs};
use sayso_tools::{
    CommandStep, Context, Definition, Delegation, FILE_LIMIT, FileStep, ReadLog, Registry, SessionStep, Step, ToolError,
};
use sayso_workspace::Workspace;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Notify;

/// Scripted decision about an action.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    Approve,
    Deny(&'static str),
    /// The user approves another text.
    Partial(&'static str),
    Stale(&'static str),
    /// Nobody decides.
    Wait,
}

/// Takes the next value of a script.
pub(crate) type Script<T> = Mutex<VecDeque<T>>;

pub(crate) struct FakeHost {
    pub(crate) folder: TempDir,
    workspace: Workspace,
    registry: Registry,
    grants: Grants,
    reads: ReadLog,
    address: std::net::SocketAddr,
    clock_ms: AtomicI64,
    changes: AtomicU64,
    pub(crate) logs: Mutex<BTreeMap<String, Vec<LogEntry>>>,
    pub(crate) events: Mutex<Vec<(String, LiveEvent)>>,
    pub(crate) sent: Mutex<Vec<AgentRequest>>,
    pub(crate) delays: Mutex<Vec<i64>>,
    pub(crate) decisions: Script<Decision>,
    pub(crate) answers: Script<SurfaceAnswer>,
    pub(crate) asked: Mutex<Vec<SurfaceRequest>>,
    pub(crate) messages: Script<AgentMessage>,
    pub(crate) commands: Mutex<Vec<String>>,
    pub(crate) outputs: Script<String>,
    pub(crate) ends: Mutex<Vec<CommandEnd>>,
    /// Entries of one log that can still be recorded; then recording fails.
    pub(crate) room: AtomicI64,
    /// Notified when an action waits for a decision, and for each event.
    pub(crate) progress: Notify,
}

impl FakeHost {
    pub(crate) fn new(address: std::net::SocketAddr, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let all = || PathGlobs::new(["**"]).unwrap();
        let registry = Registry::builtin();
        let tools = registry.names().map(str::to_owned).collect();
        Self {
            workspace: Workspace::open(folder.path()).unwrap(),
            folder,
            registry,
            grants: Grants { tools, read: all(), write: all() },
            reads: ReadLog::default(),
            address,
            clock_ms: AtomicI64::new(1_000_000),
            changes: AtomicU64::new(0),
            logs: Mutex::default(),
            events: Mutex::default(),
            sent: Mutex::default(),
            delays: Mutex::default(),
            decisions: Mutex::default(),
            answers: Mutex::default(),
            asked: Mutex::default(),
            messages: Mutex::default(),
            commands: Mutex::default(),
            outputs: Mutex::default(),
            ends: Mutex::default(),
            room: AtomicI64::new(i64::MAX),
            progress: Notify::new(),
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    /// Returns the events of a session.
    pub(crate) fn events_of(&self, session: &str) -> Vec<LiveEventKind> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|(own, _)| own == session).map(|(_, event)| event.kind.clone()).collect()
    }

    pub(crate) fn log(&self, session: &str) -> Vec<LogEntry> {
        self.logs.lock().unwrap().get(session).cloned().unwrap_or_default()
    }

    pub(crate) fn advance_ms(&self, duration_ms: i64) {
        self.clock_ms.fetch_add(duration_ms, Ordering::SeqCst);
    }

    /// Waits until a condition holds. Each event and each wait for a decision is checked.
    pub(crate) async fn wait_until(&self, mut holds: impl FnMut(&Self) -> bool) {
        loop {
            let progress = self.progress.notified();
            if holds(self) {
                return;
            }
            progress.await;
        }
    }

    async fn decide(&self, done: &str) -> ActionResult {
        let change = Some(self.changes.fetch_add(1, Ordering::SeqCst) + 1);
        let decision = self.decisions.lock().unwrap().pop_front().unwrap_or(Decision::Approve);
        let (outcome, message) = match decision {
            Decision::Approve => (ActionOutcome::Applied, done.to_owned()),
            Decision::Deny(reason) => (ActionOutcome::Denied, format!("user denied this tool call: {reason}")),
            Decision::Partial(message) => (ActionOutcome::Partial, message.to_owned()),
            Decision::Stale(message) => (ActionOutcome::Stale, message.to_owned()),
            Decision::Wait => {
                self.progress.notify_waiters();
                pending().await
            }
        };
        ActionResult { change, outcome, message }
    }

    fn apply(&self, step: &FileStep) -> Result<(), String> {
        let draft = step.proposal.draft(|path| self.workspace.locate(path)).map_err(|error| error.to_string())?;
        let observation = self.workspace.observe(draft.paths(), FILE_LIMIT);
        let preview = draft.preview(&observation);
        if let Some(message) = preview.problems_message() {
            return Err(message);
        }
        for file in preview.files() {
            let path = self.folder.path().join(file.path.as_str());
            match &file.after {
                FileState::File { content, .. } => {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, content.bytes()).unwrap();
                    self.reads.record(&file.path, content.bytes());
                }
                _ => std::fs::remove_file(path).unwrap(),
            }
        }
        Ok(())
    }
}

/// Closes the connection when the body is dropped.
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange(address: std::net::SocketAddr, request: AgentRequest) -> Result<AgentResponse, SendError> {
    let failed = |error: &dyn std::fmt::Display| SendError::Connection { message: error.to_string() };
    let stream = tokio::net::TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
    let mut builder = hyper::Request::post(format!("http://{address}{}", request.path));
    builder = builder.header("host", address.to_string());
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let response =
        sender.send_request(builder.body(Full::new(request.body)).unwrap()).await.map_err(|error| failed(&error))?;
    let (head, body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let frames = BodyStream::new(body.map_err(|error| SendError::Connection { message: error.to_string() }));
    let chunks = frames.map(move |frame| {
        let _open = &connection;
        frame.map(|frame| frame.into_data().unwrap_or_else(|_| Bytes::new()))
    });
    Ok(AgentResponse {
        request: Some(1),
        status: head.status.as_u16(),
        headers: headers.collect(),
        body: chunks.boxed(),
    })
}

impl Host for FakeHost {
    fn now_ms(&self) -> i64 {
        self.clock_ms.load(Ordering::SeqCst)
    }

    fn sleep_until(&self, time_ms: i64) -> BoxFuture<'_, ()> {
        self.delays.lock().unwrap().push(time_ms - self.now_ms());
        self.clock_ms.fetch_max(time_ms, Ordering::SeqCst);
        tokio::task::yield_now().boxed()
    }

    fn random(&self) -> u64 {
        0
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse, SendError>> {
        self.sent.lock().unwrap().push(request.clone());
        exchange(self.address, request).boxed()
    }

    fn tools(&self) -> Vec<Definition> {
        self.registry.definitions()
    }

    fn prepare<'a>(&'a self, call: &'a CallOrigin, arguments: &'a Value) -> BoxFuture<'a, Result<Step, ToolError>> {
        async move {
            let context = Context::new(&self.workspace, &self.grants).with_reads(&self.reads);
            self.registry.prepare(&call.tool, arguments, &context)
        }
        .boxed()
    }

    fn change_files<'a>(&'a self, _: &'a CallOrigin, step: FileStep) -> BoxFuture<'a, ActionResult> {
        async move {
            let mut result = self.decide("applied as proposed").await;
            if step.proposes_only() {
                result.outcome = ActionOutcome::Proposed;
            } else if result.outcome == ActionOutcome::Applied
                && let Err(message) = self.apply(&step)
            {
                (result.outcome, result.message) = (ActionOutcome::Failed, message);
            }
            result
        }
        .boxed()
    }

    fn run_command<'a>(
        &'a self,
        _: &'a CallOrigin,
        step: CommandStep,
        output: OutputSink,
    ) -> BoxFuture<'a, CommandResult> {
        async move {
            self.commands.lock().unwrap().push(step.command.clone());
            let action = self.decide("the command was approved").await;
            if action.outcome.is_error() {
                return CommandResult { action, end: None, output: String::new(), omitted_bytes: 0 };
            }
            let text = self.outputs.lock().unwrap().pop_front().unwrap_or_else(|| "done\n".to_owned());
            output.write(&text);
            CommandResult { action, end: Some(CommandEnd::Exited { code: 0 }), output: text, omitted_bytes: 0 }
        }
        .boxed()
    }

    fn continue_command<'a>(
        &'a self,
        _: &'a CallOrigin,
        _: SessionStep,
        _: OutputSink,
    ) -> BoxFuture<'a, CommandResult> {
        async move {
            let action = self.decide("").await;
            let end = Some(CommandEnd::Exited { code: 0 });
            CommandResult { action, end, output: "more\n".to_owned(), omitted_bytes: 0 }
        }
        .boxed()
    }

    fn permit_command<'a>(&'a self, _: &'a CallOrigin, step: CommandStep) -> BoxFuture<'a, ActionResult> {
        async move {
            let result = self.decide(&step.command).await;
            match result.outcome {
                ActionOutcome::Applied => ActionResult { outcome: ActionOutcome::Permitted, ..result },
                _ => result,
            }
        }
        .boxed()
    }

    fn report_end(&self, _: &CallOrigin, _: Option<u64>, end: &CommandEnd) {
        self.ends.lock().unwrap().push(end.clone());
    }

    fn call_tool<'a>(&'a self, _: &'a CallOrigin, request: ToolRequest) -> BoxFuture<'a, ActionResult> {
        async move { self.decide(&format!("{request:?}")).await }.boxed()
    }

    fn permit_delegation<'a>(&'a self, _: &'a CallOrigin, delegation: Delegation) -> BoxFuture<'a, DelegationPermit> {
        async move {
            let result = self.decide("").await;
            match result.outcome {
                ActionOutcome::Applied => DelegationPermit::Permitted { change: result.change, delegation },
                _ => DelegationPermit::Refused(result),
            }
        }
        .boxed()
    }

    fn ask_surface<'a>(&'a self, _: &'a str, request: SurfaceRequest) -> BoxFuture<'a, SurfaceAnswer> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(SurfaceAnswer::NoSurface);
        async move { answer }.boxed()
    }

    fn read_file<'a>(&'a self, _: &'a str, path: &'a str) -> BoxFuture<'a, Result<FileText, ReadProblem>> {
        let read = std::fs::read_to_string(self.folder.path().join(path));
        async move {
            let text = read.map_err(|_| ReadProblem::Missing { path: path.to_owned() })?;
            Ok(FileText { path: path.to_owned(), text })
        }
        .boxed()
    }

    fn record(&self, session: &str, entry: &LogEntry) -> Result<u64, RecordError> {
        if self.room.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(RecordError { message: "the disk is full".to_owned(), hint: "free some space".to_owned() });
        }
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(session.to_owned()).or_default();
        // Each entry survives its JSON.
        let json = entry.to_json();
        assert_eq!(LogEntry::from_json(&json).unwrap(), *entry, "{json}");
        log.push(entry.clone());
        Ok(log.len() as u64)
    }

    fn emit(&self, session: &str, event: LiveEvent) {
        self.events.lock().unwrap().push((session.to_owned(), event));
        self.progress.notify_waiters();
    }

    fn take_messages(&self, _: &str) -> Vec<AgentMessage> {
        self.messages.lock().unwrap().drain(..).collect()
    }
}
