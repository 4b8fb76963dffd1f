//! An invocation: requests and tool calls until the model is done.

use sayso_tools::Definition;
use sayso_wire::stream::ModelResponse;

use super::limits::Totals;
use super::repeats::Repeats;
use super::{AgentSession, InterruptSignal, Invoked};
use crate::dialect::{BuiltRequest, RequestParts, build_request, select_tools};
use crate::event::{FinishedReason, LiveEventKind, StatusEvent, StepState};
use crate::host::{AgentRequest, Host, RecordError, RequestReason, SurfaceAnswer, SurfaceRequest};
use crate::log::{Entry, History};
use crate::model::{ExchangeEnd, exchange};
use crate::scenario::Scenario;
use crate::settings::Settings;
use crate::system_prompt::{self, Delegated};

/// A running invocation.
pub(super) struct InvocationRun<'s> {
    pub(super) session: &'s AgentSession,
    pub(super) invocation: &'s str,
    pub(super) interrupt: &'s InterruptSignal,
    pub(super) totals: Totals,
    pub(super) repeats: Repeats,
    /// Number of rejections of a request for its size, without an answer between them.
    pub(super) overflows: u32,
    /// `true` after a successful `ProposeChanges` call.
    pub(super) has_proposed: bool,
    /// `true` after the model was told to summarise its proposal.
    has_summary_request: bool,
    /// Tools of the last request.
    pub(super) tools: Vec<Definition>,
    pub(super) unfinished: u32,
    pub(super) last_text: String,
}

/// The end of an invocation.
#[derive(Debug)]
pub(super) enum InvocationEnd {
    Completed,
    Interrupted,
    Limit,
    Cancelled,
    Failed {
        message: String,
        hint: String,
    },
    /// The log cannot be written.
    Unrecorded(RecordError),
}

/// The next step of an invocation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Continue,
    Done,
}

impl From<RecordError> for InvocationEnd {
    fn from(error: RecordError) -> Self {
        Self::Unrecorded(error)
    }
}

impl AgentSession {
    /// Runs an invocation to its end, and reports the end.
    pub(super) async fn run_invocation(&self, invocation: &str, interrupt: &InterruptSignal) -> Invoked {
        let mut run = InvocationRun {
            session: self,
            invocation,
            interrupt,
            totals: Totals::new(self.host().now_ms()),
            repeats: Repeats::default(),
            overflows: 0,
            has_proposed: false,
            has_summary_request: false,
            tools: Vec::new(),
            unfinished: 0,
            last_text: String::new(),
        };
        let end = match run.run().await {
            Ok(()) => InvocationEnd::Completed,
            Err(end) => end,
        };
        run.finish(end)
    }

    pub(super) fn host(&self) -> &dyn Host {
        &*self.inner.host
    }

    pub(super) fn lock_history<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(&self.lock().history)
    }
}

impl InvocationRun<'_> {
    async fn run(&mut self) -> Result<(), InvocationEnd> {
        self.session.append(Entry::InvocationStarted { invocation: self.invocation.to_owned() })?;
        self.session.cancel_dangling_calls()?;
        self.take_prompts().await?;
        if !self.has_open_request()? {
            return Ok(());
        }
        loop {
            self.take_prompts().await?;
            if self.interrupt.is_triggered() {
                return Err(InvocationEnd::Interrupted);
            }
            self.check_limits().await?;
            let built = self.prepare_request().await?;
            let built = self.fit_context(built).await?;
            if self.step(built).await? == NextStep::Done && !self.has_queued_prompts() {
                return Ok(());
            }
        }
    }

    /// Runs a request and the tool calls of its answer.
    async fn step(&mut self, built: BuiltRequest) -> Result<NextStep, InvocationEnd> {
        let settings = self.settings();
        let body_bytes = built.body.len() as u64;
        let request = self.request(built, RequestReason::Turn, &settings);
        let end = exchange(self.session.host(), self.interrupt, request, &|kind| self.emit(kind)).await;
        match end {
            ExchangeEnd::Answered(answer) => {
                self.overflows = 0;
                self.totals.last_body_bytes = body_bytes;
                self.count_usage(&settings, answer.response());
                let message = self.record_answer(&settings, &answer)?;
                if message.calls().next().is_some() {
                    self.unfinished = 0;
                    self.execute_calls(&message).await?;
                    return Ok(NextStep::Continue);
                }
                if self.has_proposed && !self.has_summary_request && message.last_text().is_empty() {
                    self.has_summary_request = true;
                    return self.ask_to_continue("Conclude with a concise summary of the proposed changes.");
                }
                if answer.reached_output_limit() {
                    return self.ask_to_continue("Your last answer reached the output limit. Go on in smaller steps.");
                }
                Ok(NextStep::Done)
            }
            ExchangeEnd::BrokenOff { answer, message } => {
                self.count_usage(&settings, answer.response());
                self.record_answer(&settings, &answer)?;
                self.session.cancel_dangling_calls()?;
                let text = format!("Your last answer broke off ({message}). Go on where it ended.");
                self.ask_to_continue(&text)
            }
            ExchangeEnd::Interrupted(answer) => {
                if answer.has_content() {
                    self.count_usage(&settings, answer.response());
                    self.record_answer(&settings, &answer)?;
                }
                Err(InvocationEnd::Interrupted)
            }
            ExchangeEnd::Overflow { message } => self.recover_from_overflow(message).await,
            // A change of the model discards a paused request; the new model gets it instead.
            ExchangeEnd::Cancelled if self.has_other_model(&settings) => Ok(NextStep::Continue),
            ExchangeEnd::Cancelled => Err(InvocationEnd::Cancelled),
            ExchangeEnd::Failed { message, hint } => Err(InvocationEnd::Failed { message, hint }),
        }
    }

    /// Asks if a limit is reached. Ends the invocation unless the user raises it.
    async fn check_limits(&mut self) -> Result<(), InvocationEnd> {
        let now_ms = self.session.host().now_ms();
        let Some(reached) = self.totals.reached(&self.settings().limits, now_ms) else { return Ok(()) };
        let question = format!(
            "The agent reached its limit of {} for one invocation. Continue with as much again?",
            reached.description
        );
        let options = vec!["Continue".to_owned(), "Stop".to_owned()];
        match self.ask(SurfaceRequest::Question { question, options }).await? {
            SurfaceAnswer::Text(answer) if means_continue(&answer) => {
                self.totals.raise(&reached);
                self.session.append(Entry::LimitRaised { invocation: self.invocation.to_owned() })?;
                Ok(())
            }
            _ => Err(InvocationEnd::Limit),
        }
    }

    /// Asks a surface, unless a person interrupts.
    pub(super) async fn ask(&self, request: SurfaceRequest) -> Result<SurfaceAnswer, InvocationEnd> {
        let answer = self.session.host().ask_surface(self.session.id(), request);
        self.interrupt.or_interrupted(answer).await.ok_or(InvocationEnd::Interrupted)
    }

    /// Builds the next request, with a new system prompt if there is none or its prefix is gone anyway.
    pub(super) async fn prepare_request(&mut self) -> Result<BuiltRequest, InvocationEnd> {
        let scenario = self.scenario()?;
        let is_current =
            self.session.lock_history(|history| history.instructions_scenario() == Some(scenario.name.as_str()));
        if !is_current {
            let delegated = if self.session.identity().parent.is_some() { Delegated::Yes } else { Delegated::No };
            let build = system_prompt::build(self.session.host(), self.session.id(), &scenario, delegated);
            let text = self.interrupt.or_interrupted(build).await.ok_or(InvocationEnd::Interrupted)?;
            self.session.append(Entry::Instructions { scenario: scenario.name.clone(), text })?;
        }
        self.build()
    }

    /// Builds the next request from the current history.
    pub(super) fn build(&mut self) -> Result<BuiltRequest, InvocationEnd> {
        let settings = self.settings();
        let scenario = self.scenario()?;
        let offered = self.session.host().tools();
        let allowed = self.session.identity().tools.as_deref();
        self.tools = select_tools(&offered, &scenario, allowed, &settings);
        let parts = RequestParts {
            settings: &settings,
            instructions: "",
            tools: &self.tools,
            max_output_tokens: self.session.inner.catalog.max_output_tokens(&settings.model),
            cache_key: self.session.id(),
        };
        Ok(self.session.lock_history(|history| {
            let instructions = history.instructions().unwrap_or_default();
            build_request(history, &RequestParts { instructions, ..parts })
        }))
    }

    pub(super) fn request(&self, built: BuiltRequest, reason: RequestReason, settings: &Settings) -> AgentRequest {
        let identity = self.session.identity();
        let mut headers = built.headers;
        headers.push(("user-agent".to_owned(), concat!("sayso/", env!("CARGO_PKG_VERSION")).to_owned()));
        headers.push(("x-session-id".to_owned(), identity.session.clone()));
        if let Some(parent) = &identity.parent {
            headers.push(("x-parent-session-id".to_owned(), parent.clone()));
        }
        AgentRequest {
            session: identity.session.clone(),
            parent: identity.parent.clone(),
            invocation: self.invocation.to_owned(),
            reason,
            api: settings.dialect,
            upstream: settings.upstream.clone(),
            model: settings.model.clone(),
            path: built.path,
            headers,
            body: built.body,
        }
    }

    /// Returns the settings, with the limits of the scenario where the settings have none.
    pub(super) fn settings(&self) -> Settings {
        let mut settings = self.session.settings();
        if settings.limits == crate::settings::Limits::default()
            && let Ok(Scenario { limits: Some(limits), .. }) = self.scenario()
        {
            settings.limits = limits;
        }
        settings
    }

    /// `true` if the settings name another model than these.
    fn has_other_model(&self, sent: &Settings) -> bool {
        let now = self.session.settings();
        (&now.model, now.dialect, &now.upstream) != (&sent.model, sent.dialect, &sent.upstream)
    }

    pub(super) fn scenario(&self) -> Result<Scenario, InvocationEnd> {
        let name = self.session.settings().scenario;
        let catalog = &self.session.inner.catalog;
        catalog.scenarios.find(&name).cloned().ok_or_else(|| InvocationEnd::Failed {
            message: format!("there is no scenario `{name}`"),
            hint: format!("choose one of {}", catalog.scenarios.names().collect::<Vec<_>>().join(", ")),
        })
    }

    pub(super) fn context_window(&self) -> Option<u64> {
        self.session.inner.catalog.context_tokens(&self.session.settings().model)
    }

    pub(super) fn count_usage(&mut self, settings: &Settings, response: &ModelResponse) {
        let prices = &self.session.inner.catalog.prices;
        self.totals.add(settings.dialect, &settings.model, &response.usage, prices);
        self.emit(LiveEventKind::Usage(self.totals.usage(self.context_window())));
    }

    fn has_queued_prompts(&self) -> bool {
        !self.session.lock().queue.is_empty()
    }

    pub(super) fn emit(&self, kind: LiveEventKind) {
        self.session.emit_in(self.invocation, kind);
    }

    pub(super) fn status(&self, state: StepState, text: String, request: Option<u64>) {
        self.emit(LiveEventKind::Status(StatusEvent { state, text, request, retry_ms: None }));
    }

    /// Records and reports the end.
    fn finish(self, end: InvocationEnd) -> Invoked {
        let usage = self.totals.usage(self.context_window());
        let recorded = self.session.cancel_dangling_calls().and_then(|()| {
            let reason = match &end {
                InvocationEnd::Completed => Some(FinishedReason::Completed),
                InvocationEnd::Interrupted => Some(FinishedReason::Interrupted),
                InvocationEnd::Limit => Some(FinishedReason::Limit),
                InvocationEnd::Cancelled => Some(FinishedReason::Cancelled),
                InvocationEnd::Failed { .. } | InvocationEnd::Unrecorded(_) => None,
            };
            let error = if let InvocationEnd::Failed { message, .. } = &end { message.clone() } else { String::new() };
            self.session.append(Entry::InvocationEnded { invocation: self.invocation.to_owned(), reason, error })?;
            Ok(reason)
        });
        let (message, hint) = match (recorded, end) {
            (Err(error), _) | (_, InvocationEnd::Unrecorded(error)) => (error.to_string(), error.hint),
            (_, InvocationEnd::Failed { message, hint }) => (message, hint),
            (Ok(reason), _) => {
                let reason = reason.unwrap_or(FinishedReason::Completed);
                let text = self.last_text.clone();
                self.emit(LiveEventKind::Finished { reason, text: text.clone(), usage });
                return Invoked::Finished { reason, text, usage };
            }
        };
        self.emit(LiveEventKind::Failed { message: message.clone(), hint: hint.clone() });
        Invoked::Failed { message, hint, usage }
    }
}

/// `true` if an answer lets the agent go on.
pub(super) fn means_continue(answer: &str) -> bool {
    let answer = answer.trim().trim_end_matches(['.', '!']).to_lowercase();
    ["continue", "yes", "y", "ok", "go on", "raise"].contains(&answer.as_str())
}

/// `true` if an answer ends the invocation.
pub(super) fn means_stop(answer: &str) -> bool {
    let answer = answer.trim().trim_end_matches(['.', '!']).to_lowercase();
    ["", "stop", "no", "n"].contains(&answer.as_str())
}
