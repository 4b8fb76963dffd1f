//! A session: its state, its invocations and their controls.

mod answers;
mod calls;
mod commands;
mod context;
mod delegate;
mod editor_read;
mod interrupt;
mod invocation;
mod limits;
mod prompts;
mod repeats;
mod shorten;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;

pub(crate) use interrupt::InterruptSignal;

use crate::catalog::Catalog;
use crate::dialect::CANCELLED_RESULT;
use crate::event::{FinishedReason, InvocationUsage, LiveEvent, LiveEventKind, StatusEvent, StepState};
use crate::host::{RecordError, SharedHost};
use crate::log::{Entry, History, ImageData, LogEntry, RecordedResult};
use crate::settings::{Settings, SettingsError, SettingsPatch};
use crate::todo::{Todo, TodoChange, TodoError, TodoWriter};

/// The identity of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionIdentity {
    /// Id, unique in the workspace.
    pub session: String,
    /// The session that delegated to it.
    pub parent: Option<String>,
    /// The request whose conversation it continues.
    pub fork_of: Option<u64>,
    /// Tools that a delegation allows. `None`: the tools of the scenario.
    pub tools: Option<Vec<String>>,
}

/// A prompt as a surface sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserPrompt {
    pub text: String,
    /// Paths of files whose content is added.
    pub files: Vec<String>,
    pub images: Vec<ImageData>,
}

impl UserPrompt {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// The activity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    Idle,
    Running,
}

/// The end of a call of [`AgentSession::invoke`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invoked {
    Finished {
        reason: FinishedReason,
        /// The last text of the agent.
        text: String,
        usage: InvocationUsage,
    },
    Failed {
        message: String,
        hint: String,
        usage: InvocationUsage,
    },
    /// The prompt joins the running invocation at its next request.
    Queued,
}

/// The treatment of queued prompts by an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearQueue {
    Yes,
    No,
}

/// A change of settings was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetSettingsError {
    #[error(transparent)]
    Invalid(#[from] SettingsError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A write to the todo list was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteTodosError {
    #[error(transparent)]
    Invalid(#[from] TodoError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A session of the built-in agent. Clones share their state.
#[derive(Clone)]
pub struct AgentSession {
    inner: Arc<Inner>,
}

struct Inner {
    identity: SessionIdentity,
    catalog: Arc<Catalog>,
    host: SharedHost,
    state: Mutex<SessionFields>,
}

struct SessionFields {
    history: History,
    settings: Settings,
    queue: VecDeque<UserPrompt>,
    running: Option<RunningInvocation>,
}

struct RunningInvocation {
    invocation: String,
    interrupt: InterruptSignal,
}

impl std::fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSession").field("identity", &self.inner.identity).finish_non_exhaustive()
    }
}

impl AgentSession {
    /// Starts a session.
    pub fn start(
        identity: SessionIdentity,
        settings: Settings,
        catalog: Arc<Catalog>,
        host: SharedHost,
    ) -> Result<Self, RecordError> {
        Self::fork(identity, settings, catalog, host, Vec::new())
    }

    /// Starts a session with the conversation of a recorded request, see [`entries_from_request`](crate::log::entries_from_request).
    pub fn fork(
        identity: SessionIdentity,
        settings: Settings,
        catalog: Arc<Catalog>,
        host: SharedHost,
        conversation: Vec<Entry>,
    ) -> Result<Self, RecordError> {
        let started = Entry::Started {
            settings: settings.clone(),
            fork_of: identity.fork_of,
            parent: identity.parent.clone(),
            tools: identity.tools.clone(),
        };
        let session = Self::with_history(identity, History::default(), settings, catalog, host);
        for entry in std::iter::once(started).chain(conversation) {
            session.append(entry)?;
        }
        Ok(session)
    }

    /// Continues a session from its log. Tool calls without a result are answered "cancelled". An invocation that has not ended is
    /// ended as interrupted; [`AgentSession::continue_conversation`] takes its work up again. `settings` apply if the log has none.
    pub fn resume(
        session: impl Into<String>,
        log: &[LogEntry],
        settings: Settings,
        catalog: Arc<Catalog>,
        host: SharedHost,
    ) -> Result<Self, RecordError> {
        let history = History::fold(log);
        let identity = SessionIdentity {
            session: session.into(),
            parent: history.parent().map(str::to_owned),
            fork_of: history.fork_of(),
            tools: history.allowed_tools().map(<[String]>::to_vec),
        };
        let settings = history.settings().cloned().unwrap_or(settings);
        let running = history.running().map(str::to_owned);
        let session = Self::with_history(identity, history, settings, catalog, host);
        session.cancel_dangling_calls()?;
        if let Some(invocation) = running {
            let reason = Some(FinishedReason::Interrupted);
            session.append(Entry::InvocationEnded { invocation, reason, error: String::new() })?;
        }
        Ok(session)
    }

    fn with_history(
        identity: SessionIdentity,
        history: History,
        settings: Settings,
        catalog: Arc<Catalog>,
        host: SharedHost,
    ) -> Self {
        let state = Mutex::new(SessionFields { history, settings, queue: VecDeque::new(), running: None });
        Self { inner: Arc::new(Inner { identity, catalog, host, state }) }
    }

    /// Runs an invocation with this prompt, and then invocations with prompts that were queued meanwhile. If one runs already, queues
    /// the prompt and returns at once.
    pub fn invoke(&self, prompt: UserPrompt) -> BoxFuture<'static, Invoked> {
        let session = self.clone();
        Box::pin(async move { session.run_or_queue(Some(prompt)).await })
    }

    /// Runs an invocation without a new prompt, for example after a resume.
    pub fn continue_conversation(&self) -> BoxFuture<'static, Invoked> {
        let session = self.clone();
        Box::pin(async move { session.run_or_queue(None).await })
    }

    async fn run_or_queue(&self, prompt: Option<UserPrompt>) -> Invoked {
        let Some(mut running) = self.begin(prompt) else { return Invoked::Queued };
        // A task that is dropped in the middle must not leave the session running.
        let guard = IdleGuard(self);
        loop {
            let end = self.run_invocation(&running.0, &running.1).await;
            let Some(next) = self.begin_next() else {
                // The session is idle, and another invocation may have started already.
                std::mem::forget(guard);
                return end;
            };
            running = next;
        }
    }

    /// Starts an invocation, or queues the prompt if one runs.
    fn begin(&self, prompt: Option<UserPrompt>) -> Option<(String, InterruptSignal)> {
        let mut state = self.lock();
        state.queue.extend(prompt);
        if let Some(running) = &state.running {
            let invocation = running.invocation.clone();
            drop(state);
            let text = "the prompt joins the next request".to_owned();
            let status = StatusEvent { state: StepState::Queued, text, request: None, retry_ms: None };
            self.emit_in(&invocation, LiveEventKind::Status(status));
            return None;
        }
        Some(start_running(&mut state))
    }

    /// Ends the running invocation. Starts the next one if prompts are queued.
    fn begin_next(&self) -> Option<(String, InterruptSignal)> {
        let mut state = self.lock();
        state.running = None;
        (!state.queue.is_empty()).then(|| start_running(&mut state))
    }

    /// Interrupts the running invocation. Returns `false` if none runs.
    pub fn interrupt(&self, clear: ClearQueue) -> bool {
        let mut state = self.lock();
        if clear == ClearQueue::Yes {
            state.queue.clear();
        }
        state.running.as_ref().inspect(|running| running.interrupt.trigger()).is_some()
    }

    /// Changes the settings. They apply from the next request on.
    pub fn set_settings(&self, patch: &SettingsPatch) -> Result<Settings, SetSettingsError> {
        let settings = patch.apply(&self.settings(), &self.inner.catalog)?;
        self.append(Entry::Settings { settings: settings.clone() })?;
        self.lock().settings.clone_from(&settings);
        self.emit_in(&self.running_invocation(), LiveEventKind::Settings { settings: settings.clone() });
        Ok(settings)
    }

    /// Writes to the todo list as the user. The last write of an item wins.
    pub fn write_todos(&self, change: TodoChange) -> Result<Vec<Todo>, WriteTodosError> {
        self.write_todos_as(change, TodoWriter::User)
    }

    pub(crate) fn write_todos_as(&self, change: TodoChange, writer: TodoWriter) -> Result<Vec<Todo>, WriteTodosError> {
        let todos = {
            let mut state = self.lock();
            let change = state.history.todos().check(change, writer)?;
            self.append_locked(&mut state, Entry::Todos { writer, change })?;
            state.history.todos().items().to_vec()
        };
        self.emit_in(&self.running_invocation(), LiveEventKind::Todos { todos: todos.clone() });
        Ok(todos)
    }

    pub fn id(&self) -> &str {
        &self.inner.identity.session
    }

    pub fn identity(&self) -> &SessionIdentity {
        &self.inner.identity
    }

    pub fn settings(&self) -> Settings {
        self.lock().settings.clone()
    }

    pub fn todos(&self) -> Vec<Todo> {
        self.lock().history.todos().items().to_vec()
    }

    pub fn state(&self) -> SessionState {
        if self.lock().running.is_some() { SessionState::Running } else { SessionState::Idle }
    }

    /// Returns the first prompt on one line.
    pub fn title(&self) -> String {
        self.lock().history.title().to_owned()
    }

    /// Returns the number of completed turns.
    pub fn completed_turns(&self) -> u64 {
        self.lock().history.completed_turns()
    }

    /// Returns the number of queued prompts.
    pub fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// Returns a copy of the state that the log folds to.
    pub fn history(&self) -> History {
        self.lock().history.clone()
    }

    fn running_invocation(&self) -> String {
        self.lock().running.as_ref().map(|running| running.invocation.clone()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, SessionFields> {
        // The state is only changed after a successful record, so a panic leaves it usable.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an entry, then applies it.
    fn append(&self, entry: Entry) -> Result<(), RecordError> {
        let mut state = self.lock();
        self.append_locked(&mut state, entry)
    }

    fn append_locked(&self, state: &mut SessionFields, entry: Entry) -> Result<(), RecordError> {
        let entry = LogEntry::new(self.inner.host.now_ms(), entry);
        self.inner.host.record(&self.inner.identity.session, &entry)?;
        state.history.apply(&entry);
        Ok(())
    }

    fn emit_in(&self, invocation: &str, kind: LiveEventKind) {
        let event = LiveEvent { time_ms: self.inner.host.now_ms(), invocation: invocation.to_owned(), kind };
        self.inner.host.emit(&self.inner.identity.session, event);
    }

    /// Answers all calls without a result.
    fn cancel_dangling_calls(&self) -> Result<(), RecordError> {
        let dangling = self.lock().history.dangling_calls();
        for call in dangling {
            self.append(Entry::Result(RecordedResult {
                call: call.id,
                text: CANCELLED_RESULT.to_owned(),
                is_error: true,
                images: Vec::new(),
                change: None,
            }))?;
        }
        Ok(())
    }
}

/// Ends the running state when dropped.
struct IdleGuard<'s>(&'s AgentSession);

impl Drop for IdleGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().running = None;
    }
}

fn start_running(state: &mut SessionFields) -> (String, InterruptSignal) {
    let invocation = format!("i{}", state.history.invocations() + 1);
    let interrupt = InterruptSignal::default();
    state.running = Some(RunningInvocation { invocation: invocation.clone(), interrupt: interrupt.clone() });
    (invocation, interrupt)
}
