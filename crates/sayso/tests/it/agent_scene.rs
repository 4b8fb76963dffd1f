//! A workspace in which a real agent runs under `sayso run` against a scripted model, and a person who decides elsewhere.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_api::client::{Client, PreviewDetail, PreviewOf, RetryBudget, Role, Watched};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, Comment, Decider, Event, EventBody, Ruling, Subject, Verdict};
use sayso_testkit::agents::{Home, Missing};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::run_with;
use sayso_testkit::skip::skip;

use crate::served::Deciding;

/// The answer of a person to a change, with comments on lines.
pub(crate) type Decide = fn(&Path, &ChangeRecord) -> (Answer, Vec<Comment>);

/// The socket of the only engine that has its records in a home.
pub(crate) fn socket(home: &Path) -> Option<PathBuf> {
    let workspaces = home.join(".local/state/sayso/workspaces");
    let mut found = std::fs::read_dir(workspaces).ok()?;
    let socket = found.next()?.ok()?.path().join("engine/socket");
    socket.exists().then_some(socket)
}

/// The command, tool or file that a change is about.
pub(crate) fn subject(record: &ChangeRecord) -> String {
    match &record.subject {
        Subject::Command { command, .. } => command.clone(),
        Subject::Tool { name, .. } => name.clone(),
        Subject::Files => record.files.first().map(|file| file.path.to_string()).unwrap_or_default(),
    }
}

/// A person at another terminal, who decides what waits.
pub(crate) struct Person {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Person {
    pub(crate) fn sits_down(home: &Path, workspace: &Path, decide: Decide) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (home, workspace, gone) = (home.to_owned(), workspace.to_owned(), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let socket = loop {
                if let Some(socket) = socket(&home) {
                    break socket;
                }
                if gone.load(Ordering::Relaxed) {
                    return Vec::new();
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            runtime.block_on(decide_all(&Client::new(Arc::new(Deciding(socket)), None), &workspace, decide))
        });
        Self { over, thread }
    }

    /// The subjects of the decisions, in order.
    pub(crate) fn goes(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn decide_all(client: &Client, workspace: &Path, decide: Decide) -> Vec<String> {
    let mut decided = Vec::new();
    let mut watch = client.watch(0, Role::Surface, RetryBudget::Limited(Duration::ZERO));
    // Until the engine stops with the agent.
    while let Ok(watched) = watch.next().await {
        let Watched::Event(event) = watched else { continue };
        let EventBody::Known(Event::Proposed { change, .. }) = event.body else { continue };
        loop {
            let progress = client.get_change(change, PreviewDetail::Contents, PreviewOf::Proposed).await.unwrap();
            let asks = progress.record.ruling.as_ref().is_some_and(|ruled| ruled.ruling == Ruling::Ask);
            if progress.record.status != ChangeStatus::Pending || !asks {
                break;
            }
            let (answer, comments) = decide(workspace, &progress.record);
            let preview = progress.record.preview;
            let verdict = Verdict { preview, answer, comments, message: None, by: Decider::PERSON };
            // A verdict on a preview that is no longer the latest is given again.
            if client.decide(change, verdict, None, PreviewDetail::Omitted).await.is_ok() {
                decided.push(subject(&progress.record));
            }
        }
    }
    decided
}

/// An agent, its home, its workspace and its model.
pub(crate) struct AgentScene {
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) model: ModelServer,
    pub(crate) agent: PathBuf,
}

impl AgentScene {
    /// Creates a scene with these files. `None` if the agent is not installed.
    pub(crate) fn new(
        agent: Result<PathBuf, Missing>,
        home: impl FnOnce(&ModelServer, &Path) -> Home,
        files: &[(&str, &str)],
    ) -> Option<Self> {
        let agent = match agent {
            Ok(agent) => agent,
            Err(missing) => {
                skip(missing);
                return None;
            }
        };
        let workspace = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(workspace.path().join(name), content).unwrap();
        }
        let model = ModelServer::start([]);
        let home = home(&model, workspace.path());
        Some(Self { workspace, home, model, agent })
    }

    /// Runs the agent under the gate with these turns of the model and this person. Gives what was decided and what it printed.
    pub(crate) fn run(&self, arguments: &[&str], script: Vec<Turn>, decide: Decide) -> (Vec<String>, Output) {
        for turn in script {
            self.model.then(turn);
        }
        let person = Person::sits_down(self.home.path(), self.workspace.path(), decide);
        let output = self.sayso(&[&["run", "--", self.agent.to_str().unwrap()], arguments].concat());
        let decided = person.goes();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(self.model.turns_left(), 0, "{output:?}");
        (decided, output)
    }

    /// Runs `sayso` in the workspace.
    pub(crate) fn sayso(&self, arguments: &[&str]) -> Output {
        run_with(self.workspace.path(), env!("CARGO_BIN_EXE_sayso"), arguments, &self.home.environment(), b"")
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace.path().join(path)).ok()
    }

    /// The changes of the log, newest first.
    pub(crate) fn log(&self) -> Vec<serde_json::Value> {
        let log = self.sayso(&["log", "--json"]);
        serde_json::from_slice(&log.stdout).unwrap_or_else(|error| panic!("{error}: {log:?}"))
    }

    /// The messages of the model's last request.
    pub(crate) fn last_request(&self) -> serde_json::Value {
        let request = self.model.requests().pop().unwrap();
        if request["messages"].is_array() { request["messages"].clone() } else { request["input"].clone() }
    }
}
