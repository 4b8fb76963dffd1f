//! A gateway, its client, and a scripted model as the upstream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use sayso_gate::{Engine, Gate, Notification, Notify, Rules};
use sayso_journal::{Journal, Options};
use sayso_proxy::interceptor::{ApplyScope, Edit, EditTarget, ExpectedRevision};
use sayso_proxy::{AgentEndpoint, AgentEndpoints, Interceptor, Proxy, Retry, Settings, Upstream};
use sayso_review::{Defaults, Layer, LayerTrust, Rule};
use sayso_review::{Event, EventBody, RequestEnd, RequestId, RequestStatus, RequestStep};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use sayso_workspace::Workspace;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any test: a timer of this length never fires.
pub(crate) const NEVER: Duration = Duration::from_hours(1);
/// Time limit of a condition.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Scene {
    pub(crate) root: TempDir,
    state: TempDir,
    pub(crate) gate: Gate,
    pub(crate) interceptor: Arc<Interceptor>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) model: ModelServer,
    pub(crate) endpoint: AgentEndpoint,
    address: String,
    pub(crate) client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) notifications: Notifications,
}

/// The notifications that were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifications {
    sent: Arc<Mutex<Vec<String>>>,
    /// Held by a test that stops the terminal.
    pub(crate) terminal: Arc<Mutex<()>>,
}

impl Notifications {
    pub(crate) fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

impl Notify for Notifications {
    fn notify(&self, announcement: &Notification) {
        let _terminal = self.terminal.lock().unwrap();
        self.sent.lock().unwrap().push(announcement.to_string());
    }
}

/// End of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineEnd {
    Stopped,
    Killed,
}

/// Settings whose timers never fire during a test.
pub(crate) fn settings() -> Settings {
    Settings {
        grace: NEVER,
        keep_alive: NEVER,
        retry: Retry { times: 3, first: Duration::ZERO, longest: Duration::ZERO },
        ..Settings::usual()
    }
}

impl Scene {
    pub(crate) async fn new(settings: Settings, model: ModelServer) -> Self {
        Self::ruled(settings, model, Vec::new()).await
    }

    /// A scene with policy rules of the user.
    pub(crate) async fn ruled(settings: Settings, model: ModelServer, rules: Vec<Rule>) -> Self {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self::within(root, state, settings, model, rules).await
    }

    async fn within(
        root: TempDir,
        state: TempDir,
        mut settings: Settings,
        model: ModelServer,
        rules: Vec<Rule>,
    ) -> Self {
        let workspace = Workspace::open(root.path()).unwrap();
        let journal = Journal::open(state.path(), Options { wait: Duration::ZERO }).unwrap();
        let (engine, _) = Engine::open(workspace, journal, 1).unwrap();
        let notifications = Notifications::default();
        let gate = Gate::new(engine, rules_of(rules), Box::new(notifications.clone()), 1).unwrap();
        for name in ["anthropic", "openai", "gemini"] {
            settings.upstreams.insert(name.to_owned(), Upstream::new(model.url().parse().unwrap()));
        }
        let interceptor = Interceptor::open(gate.clone(), settings, state.path(), state.path()).unwrap();
        let proxy = Arc::new(Proxy::new(Arc::clone(&interceptor), AgentEndpoints::load(state.path())));
        let endpoint = proxy.endpoints.open(None, BTreeMap::new()).unwrap();
        tokio::spawn(Arc::clone(&proxy).follow());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = Arc::clone(&proxy);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let proxy = Arc::clone(&serving);
                let service = service_fn(move |request| {
                    let proxy = Arc::clone(&proxy);
                    async move { Ok::<_, std::convert::Infallible>(proxy.serve(request).await) }
                });
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    // A disconnected client ends its connection with an error.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { root, state, gate, interceptor, proxy, model, endpoint, address, client, notifications }
    }

    /// Restarts the engine.
    pub(crate) async fn again(self, settings: Settings) -> Self {
        self.again_after(EngineEnd::Stopped, settings).await
    }

    /// Restarts the engine after it stopped or was killed.
    pub(crate) async fn again_after(self, ends: EngineEnd, settings: Settings) -> Self {
        let Self { root, state, gate, interceptor, proxy, model, .. } = self;
        match ends {
            EngineEnd::Stopped => interceptor.stop(),
            // Queued entries are written, but the requests get no end.
            EngineEnd::Killed => interceptor.flush(),
        }
        drop((interceptor, proxy));
        // Serving tasks keep the gate until their connections end, and a journal has one writer: the next engine gets a copy.
        drop(gate);
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(state.path()).unwrap().flatten() {
            if file.file_type().unwrap().is_file() && file.file_name() != "lock" {
                std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
            } else if file.file_type().unwrap().is_dir() {
                std::fs::create_dir(copy.path().join(file.file_name())).unwrap();
                for inner in std::fs::read_dir(file.path()).unwrap().flatten() {
                    std::fs::copy(inner.path(), copy.path().join(file.file_name()).join(inner.file_name())).unwrap();
                }
            }
        }
        Self::within(root, copy, settings, model, Vec::new()).await
    }

    pub(crate) fn state(&self) -> &std::path::Path {
        self.state.path()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/p/{}/{path}", self.address, self.endpoint.capability)
    }

    /// A request that names its session in a header.
    pub(crate) fn request(&self, api: Api, body: &Value) -> Request<Full<Bytes>> {
        self.request_of("s1", api, body)
    }

    pub(crate) fn request_of(&self, session: &str, api: Api, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::post(self.url(path(api)));
        let request = request.header("content-type", "application/json").header("x-api-key", "sk-secret-1");
        let request = request.header("x-claude-code-session-id", session);
        request.body(Full::from(body.to_string())).unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.client.request(request).await.unwrap()
    }

    /// Sends a request in a task, and returns its number once it is held.
    pub(crate) async fn paused(&self, request: Request<Full<Bytes>>) -> (RequestId, Sent) {
        let (client, before) = (self.client.clone(), self.interceptor.held());
        let sent = tokio::spawn(async move { client.request(request).await.unwrap() });
        let mut id = None;
        self.until("a request is held", || {
            id = self.interceptor.held().into_iter().find(|id| !before.contains(id));
            id.is_some()
        })
        .await;
        (id.unwrap(), Sent(sent))
    }

    /// Waits for a condition.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let started = std::time::Instant::now();
        while !holds() {
            assert!(started.elapsed() < TIMEOUT, "timed out: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn resume(&self, id: RequestId) {
        self.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap();
    }

    pub(crate) fn set(&self, id: RequestId, at: &str, value: &str) {
        let edit = Edit::Set { at: EditTarget::Path(at.to_owned()), value: value.to_owned() };
        self.interceptor.edit(id, &edit, ApplyScope::ThisRequest, now()).unwrap();
    }

    /// The recorded status of a request.
    pub(crate) fn status(&self, id: RequestId) -> RequestStatus {
        self.interceptor.record(id).unwrap().status
    }

    /// The recorded end of a request.
    pub(crate) fn end(&self, id: RequestId) -> Option<RequestEnd> {
        self.interceptor.record(id).unwrap().ended
    }

    /// The recorded steps of all requests, abbreviated.
    pub(crate) fn story(&self) -> Vec<String> {
        // Flushes the recorder.
        let _ = self.interceptor.records(None, None, 1);
        let events = self.gate.read(|history| history.events(None, 0, 10_000)).unwrap();
        let told = events.into_iter().filter_map(|recorded| match recorded.body {
            EventBody::Known(Event::Request(event)) => Some(format!("{} {}", event.request, name(&event.step))),
            EventBody::Known(Event::RequestMode(_)) => Some("mode".to_owned()),
            EventBody::Known(Event::Overrides(_)) => Some("overrides".to_owned()),
            EventBody::Known(Event::RequestViewed(look)) => Some(format!("{look:?}")),
            _ => None,
        });
        told.collect()
    }
}

fn rules_of(rules: Vec<Rule>) -> Rules {
    let defaults = Defaults::default();
    let layer = Layer { file: "config.toml".to_owned(), trust: LayerTrust::Trusted, defaults, rules };
    Rules::new(vec![layer], Vec::new()).unwrap()
}

/// A pending response.
pub(crate) struct Sent(pub(crate) tokio::task::JoinHandle<Response<Incoming>>);

impl Sent {
    pub(crate) async fn answer(self) -> Response<Incoming> {
        tokio::time::timeout(TIMEOUT, self.0).await.expect("a response").unwrap()
    }

    /// Disconnects the client.
    pub(crate) fn disconnect(self) {
        self.0.abort();
    }
}

pub(crate) async fn body(response: Response<Incoming>) -> String {
    let bytes = tokio::time::timeout(TIMEOUT, response.into_body().collect())
        .await
        .expect("the end of the body")
        .unwrap()
        .to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn name(step: &RequestStep) -> &'static str {
    match step {
        RequestStep::Received(_) => "received",
        RequestStep::Paused { .. } => "paused",
        RequestStep::Edited { .. } => "edited",
        RequestStep::Resumed { .. } => "resumed",
        RequestStep::Sent { .. } => "sent",
        RequestStep::UpstreamRetry(_) => "upstream retry",
        RequestStep::Answered(_) => "answered",
        RequestStep::Ended { .. } => "ended",
    }
}

pub(crate) fn now() -> i64 {
    i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

pub(crate) fn path(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "anthropic/v1/messages",
        Api::OpenAiChat => "openai/v1/chat/completions",
        Api::OpenAiResponses => "openai/v1/responses",
        Api::Gemini => "gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    }
}

/// A streaming turn of an agent.
pub(crate) fn turn(api: Api, said: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    match api {
        Api::AnthropicMessages => json!({"model": "claude-opus-4-6", "max_tokens": 99, "stream": true,
            "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}],
            "tools": [{"name": "Read", "input_schema": schema}]}),
        Api::OpenAiChat => json!({"model": "gpt-5", "stream": true, "messages": [{"role": "user", "content": said}],
            "tools": [{"type": "function", "function": {"name": "Read", "parameters": schema}}]}),
        Api::OpenAiResponses => json!({"model": "gpt-5", "stream": true,
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}],
            "tools": [{"type": "function", "name": "Read", "parameters": schema}]}),
        Api::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": said}]}],
            "tools": [{"functionDeclarations": [{"name": "Read", "parameters": schema}]}]}),
    }
}

/// Path of the user's text.
pub(crate) fn text_path(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "messages[0].content[0].text",
        Api::OpenAiChat => "messages[0].content",
        Api::OpenAiResponses => "input[0].content[0].text",
        Api::Gemini => "contents[0].parts[0].text",
    }
}

/// The next turn of a conversation.
pub(crate) fn next_turn(api: Api, before: &Value, said: &str) -> Value {
    let mut body = before.clone();
    let (name, answer, next) = match api {
        Api::AnthropicMessages => (
            "messages",
            json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": said}]}),
        ),
        Api::OpenAiChat => {
            ("messages", json!({"role": "assistant", "content": "ok"}), json!({"role": "user", "content": said}))
        }
        Api::OpenAiResponses => (
            "input",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}),
        ),
        Api::Gemini => (
            "contents",
            json!({"role": "model", "parts": [{"text": "ok"}]}),
            json!({"role": "user", "parts": [{"text": said}]}),
        ),
    };
    body[name].as_array_mut().unwrap().extend([answer, next]);
    body
}
