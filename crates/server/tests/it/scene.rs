//! Temporary workspaces, and engines in this process.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_api::client::{
    AbstractSocket, ChangeDetails, Client, Dial, Loopback, PreviewDetail, ProposeMode, Proposed, Socket, Token,
};
use sayso_gate::{NoNotify, Rules, SnapshotLimits};
use sayso_review::{Answer, ChangeRecord, Decider, Defaults, Layer, LayerTrust, Origin, Rule, Verdict};
use sayso_server::{
    CredentialHeader, Current, EngineOptions, EngineSocket, Failure, HttpOptions, PortChoice, RuleText, Server,
    Settings, Stop, Timing, WorkMonitor,
};
use sayso_workspace::git::Environment;
use tempfile::TempDir;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Time limit that is generous even on a busy machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_mins(2);

/// Constant configuration with these rules.
#[derive(Debug)]
struct Fixed {
    layers: Vec<Layer>,
    deadline: Option<Duration>,
    /// URL of the upstream `anthropic`.
    model: Option<String>,
    told: AtomicBool,
}

impl Fixed {
    fn requests(&self) -> sayso_proxy::Settings {
        let mut requests = sayso_proxy::Settings::usual();
        if let Some(url) = &self.model {
            let upstream = sayso_proxy::Upstream::new(url.parse().unwrap());
            requests.upstreams.insert("anthropic".to_owned(), upstream);
        }
        requests
    }
}

impl Settings for Fixed {
    fn changed(&self, _: &dyn Fn() -> bool) -> Result<Option<Current>, Failure> {
        if self.told.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        Ok(Some(Current {
            rules: Rules::new(self.layers.clone(), Vec::new())?,
            snapshots: SnapshotLimits::DEFAULT,
            deadline: self.deadline,
            branch_prefix: "sayso/".to_owned(),
            requests: self.requests(),
            agent: sayso_server::AgentDefaults::default(),
        }))
    }

    fn strictest(&self) -> Result<Current, Failure> {
        self.told.store(false, Ordering::SeqCst);
        self.changed(&|| false).map(|current| current.expect("it was not told"))
    }

    fn append_rule(&self, _: &Rule) -> Result<String, Failure> {
        Ok("nothing".to_owned())
    }

    fn rule_text(&self, rule: &Rule) -> Result<RuleText, Failure> {
        Ok(RuleText { file: "nothing".to_owned(), toml: rule.summary() })
    }

    fn credential(&self, _: &str) -> Result<Option<CredentialHeader>, Failure> {
        Ok(None)
    }
}

/// A workspace, its state directory, and files outside that must stay unreachable.
pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        for folder in [scene.root(), scene.home(), scene.outside()] {
            std::fs::create_dir(folder).unwrap();
        }
        scene
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("workspace")
    }

    /// The state directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.home().join("workspaces/one")
    }

    /// A directory outside the workspace.
    pub(crate) fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    pub(crate) fn options(&self) -> EngineOptions {
        self.options_with(Vec::new())
    }

    fn options_with(&self, rules: Vec<Rule>) -> EngineOptions {
        let (standing, defaults) = (LayerTrust::Trusted, Defaults::default());
        let layer = Layer { file: "config.toml".to_owned(), trust: standing, defaults, rules };
        EngineOptions {
            root: self.root(),
            journal: self.journal(),
            home: self.home(),
            settings: Box::new(Fixed {
                layers: vec![layer],
                deadline: None,
                model: None,
                told: AtomicBool::new(false),
            }),
            notify: Box::new(NoNotify),
            environment: Environment { path: "/usr/bin:/bin".into(), home: None, config_home: None, mark: None },
            version: "test",
            program: PathBuf::from("/proc/self/exe"),
        }
    }

    /// Starts a server at a free port.
    pub(crate) fn serve(&self) -> Running {
        self.serve_as(|_| {})
    }

    /// Starts a server with rules.
    pub(crate) fn serve_under(&self, rules: Vec<Rule>) -> Running {
        self.start(Server::start(self.options_with(rules), Self::http()).unwrap())
    }

    /// Starts a server that denies changes after a time.
    pub(crate) fn serve_with_deadline(&self, deadline: Duration) -> Running {
        let settings =
            Fixed { layers: Vec::new(), deadline: Some(deadline), model: None, told: AtomicBool::new(false) };
        let options = EngineOptions { settings: Box::new(settings), ..self.options() };
        self.start(Server::start(options, Self::http()).unwrap())
    }

    /// Starts a server whose upstream `anthropic` is a scripted model.
    pub(crate) fn serve_with_model(&self, url: String) -> Running {
        let settings = Fixed { layers: Vec::new(), deadline: None, model: Some(url), told: AtomicBool::new(false) };
        let options = EngineOptions { settings: Box::new(settings), ..self.options() };
        self.start(Server::start(options, Self::http()).unwrap())
    }

    pub(crate) fn serve_as(&self, change: impl FnOnce(&mut HttpOptions)) -> Running {
        let mut http = Self::http();
        change(&mut http);
        self.start(Server::start(self.options(), http).unwrap())
    }

    /// A free port and the token.
    pub(crate) fn http() -> HttpOptions {
        HttpOptions {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            port: PortChoice::Exactly,
            token: Some(sayso_server::Token::new(TOKEN).unwrap()),
            hosts: Vec::new(),
            origins: Vec::new(),
            timing: Timing::DEFAULT,
        }
    }

    fn start(&self, server: Server) -> Running {
        let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
        let (stop, work) = (server.stopper(), server.work_monitor());
        let login = server.logins().create().unwrap().reveal().to_owned();
        let socket = EngineSocket::new(&self.journal());
        let thread = std::thread::spawn(move || server.run().unwrap());
        let (socket, verdicts) = (socket.path(), socket.verdict_socket().unwrap());
        Running { address, socket, verdicts, login, stop, work, thread: Some(thread) }
    }
}

/// A server in this process. Stops on drop.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// Path of the service socket.
    pub(crate) socket: PathBuf,
    /// Name of the verdict socket.
    pub(crate) verdicts: String,
    /// Login for verdicts over TCP.
    pub(crate) login: String,
    stop: Stop,
    pub(crate) work: WorkMonitor,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// A client on the verdict socket.
    pub(crate) fn verdict_client(&self) -> Client {
        Client::new(Arc::new(AbstractSocket(self.verdicts.clone())), None)
    }

    /// A client on the service socket.
    pub(crate) fn proposal_client(&self) -> Client {
        Client::new(Arc::new(Socket(self.socket.clone())), None)
    }

    /// A client over TCP, with a login.
    pub(crate) fn tcp_client(&self) -> Client {
        Client::new(Arc::new(Loopback { address: self.address }), Some(Token::new(&self.login).unwrap()))
    }

    /// A client with the token over a custom connection.
    pub(crate) fn client_via(dial: Arc<dyn Dial>) -> Client {
        Client::new(dial, Some(Token::new(TOKEN).unwrap()))
    }

    /// Stops it and waits for its end.
    pub(crate) fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A proposal that writes a file.
pub(crate) fn write(path: &str, content: &str) -> Proposed {
    let change = serde_json::json!({ "operation": "write", "path": path, "new_content": content });
    Proposed::Text(change.to_string().into_bytes())
}

/// Proposes a change that is left pending.
pub(crate) async fn ask(client: &Client, proposed: Proposed) -> ChangeDetails {
    client.propose(proposed, Origin::default(), ProposeMode::Ask, PreviewDetail::Omitted).await.unwrap()
}

pub(crate) fn verdict(record: &ChangeRecord, answer: Answer) -> Verdict {
    Verdict { preview: record.preview, answer, comments: Vec::new(), message: None, by: Decider::PERSON }
}

pub(crate) fn no(reason: &str) -> Answer {
    Answer::Deny { reason: Some(reason.to_owned()) }
}

/// Awaits a future with a time limit.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(TIME_LIMIT, future).await;
    waited.unwrap_or_else(|_| panic!("{what} did not happen within {TIME_LIMIT:?}"))
}

/// Every file of a tree with its content, and every link with its target.
pub(crate) fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path.clone());
                found.push((path, Vec::new()));
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.push((path, target.into_os_string().into_encoded_bytes()));
            } else {
                let content = std::fs::read(&path).unwrap();
                found.push((path, content));
            }
        }
    }
    found.sort();
    found
}

/// Deterministic random numbers.
pub(crate) struct Dice(u64);

impl Dice {
    /// Uses the seed in `SAYSO_SEED` if set, in order to reproduce a failure. Prints the seed.
    pub(crate) fn seeded() -> (Self, u64) {
        let seed = std::env::var("SAYSO_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 0x5a5a5);
        println!("SAYSO_SEED={seed}");
        (Self(seed), seed)
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
