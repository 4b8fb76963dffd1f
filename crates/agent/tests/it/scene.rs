//! A session with a scripted model.

use std::sync::Arc;

use sayso_agent::settings::name_of_dialect;
use sayso_agent::{
    AgentSession, Catalog, Entry, FinishedReason, Invoked, Limits, LogEntry, ModelChoice, Scenarios, SessionIdentity,
    Settings, SharedHost, UpstreamChoice, UserPrompt,
};
use sayso_scripted_model::{Answer, ModelServer, Received};
use sayso_tools::Registry;
use sayso_wire::price::{ModelPrice, PriceTable};
use sayso_wire::stream::Api;
use serde_json::Value;

use super::fake_host::FakeHost;

pub(crate) const SESSION: &str = "s1";

pub(crate) struct Scene {
    pub(crate) model: ModelServer,
    pub(crate) host: Arc<FakeHost>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) session: AgentSession,
}

/// Returns a model for each dialect. Its name decides the edit tools.
pub(crate) fn model_of(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "claude-test",
        Api::OpenAiChat => "qwen-test",
        Api::OpenAiResponses => "gpt-4.1-test",
        Api::Gemini => "gemini-2.5-test",
    }
}

pub(crate) fn settings(api: Api, scenario: &str) -> Settings {
    Settings {
        model: model_of(api).to_owned(),
        dialect: api,
        upstream: "scripted".to_owned(),
        scenario: scenario.to_owned(),
        limits: Limits::default(),
        show_thinking: false,
        thinking_tokens: 0,
    }
}

pub(crate) fn tool_names() -> Vec<String> {
    Registry::builtin().names().map(str::to_owned).collect()
}

pub(crate) fn catalog(context_tokens: Option<u64>) -> Catalog {
    let choice = |api: Api| ModelChoice {
        model: model_of(api).to_owned(),
        dialect: api,
        upstream: "scripted".to_owned(),
        context_tokens,
        max_output_tokens: Some(1_000),
    };
    let price = ModelPrice { model: "*".to_owned(), input: 1.0, output: 1.0, cache_read: None, cache_write: None };
    Catalog {
        models: Api::ALL.map(choice).to_vec(),
        upstreams: vec![UpstreamChoice {
            name: "scripted".to_owned(),
            dialects: Api::ALL.to_vec(),
            is_ready: true,
            hint: String::new(),
        }],
        scenarios: Scenarios::built_in(&tool_names()),
        prices: PriceTable::with_rows(vec![price]),
    }
}

impl Scene {
    /// Starts a session whose model answers in order.
    pub(crate) fn new<T: Into<Answer>>(
        settings: Settings,
        files: &[(&str, &str)],
        turns: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::with_window(settings, files, turns, Some(1_000_000))
    }

    pub(crate) fn with_window<T: Into<Answer>>(
        settings: Settings,
        files: &[(&str, &str)],
        turns: impl IntoIterator<Item = T>,
        context_tokens: Option<u64>,
    ) -> Self {
        let model = ModelServer::bind(([127, 0, 0, 1], 0).into(), turns).unwrap();
        let host = Arc::new(FakeHost::new(model.address(), files));
        let catalog = Arc::new(catalog(context_tokens));
        let identity = SessionIdentity { session: SESSION.to_owned(), ..SessionIdentity::default() };
        let shared: SharedHost = host.clone();
        let session = AgentSession::start(identity, settings, catalog.clone(), shared).unwrap();
        Self { model, host, catalog, session }
    }

    pub(crate) async fn say(&self, text: &str) -> Invoked {
        self.session.invoke(UserPrompt::text(text)).await
    }

    /// Invokes and returns the last text. Fails unless the invocation completes.
    pub(crate) async fn complete(&self, text: &str) -> String {
        match self.say(text).await {
            Invoked::Finished { reason: FinishedReason::Completed, text, .. } => text,
            other => panic!("it did not complete: {other:?}\n{:#?}", self.log().last()),
        }
    }

    /// Resumes the session from a log, on the same host.
    pub(crate) fn resume(&self, log: &[LogEntry]) -> AgentSession {
        let shared: SharedHost = self.host.clone();
        let settings = self.session.settings();
        AgentSession::resume(SESSION, log, settings, self.catalog.clone(), shared).unwrap()
    }

    pub(crate) fn log(&self) -> Vec<LogEntry> {
        self.host.log(SESSION)
    }

    pub(crate) fn has_entry(&self, is: impl Fn(&Entry) -> bool) -> bool {
        self.log().iter().filter_map(LogEntry::known).any(is)
    }

    /// Returns the requests with tools, in order.
    pub(crate) fn turns(&self) -> Vec<Received> {
        self.model.received().into_iter().filter(Received::asks_for_a_turn).collect()
    }

    /// Returns the results in the last request, in order.
    pub(crate) fn last_results(&self) -> Vec<String> {
        self.turns().last().unwrap().tool_results().into_iter().map(|result| result.text).collect()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.host.events_of(SESSION).iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    /// Returns the states of the status events, without repetitions in a row.
    pub(crate) fn states(&self) -> Vec<String> {
        let events = self.events();
        let states = events.iter().filter_map(|event| event["state"].as_str().map(str::to_owned));
        let mut states: Vec<String> = states.collect();
        states.dedup();
        states
    }
}

pub(crate) fn name(api: Api) -> &'static str {
    name_of_dialect(api)
}
