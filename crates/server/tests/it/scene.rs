//! Throw-away workspaces and engines in this process.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_api::client::{AbstractSocket, Client, Dial, Loopback, Progress, Proposed, Proposing, Socket, Token, View};
use sayso_gate::{Rules, Silence, SnapshotLimits};
use sayso_review::{Answer, ChangeRecord, Decider, Defaults, Layer, Origin, Rule, Standing, Verdict};
use sayso_server::{
    Current, EngineOptions, EnginePlace, Failure, HttpOptions, PortChoice, Server, Settings, Stop, Timing,
};
use sayso_workspace::git::Environment;
use tempfile::TempDir;

/// The token of every server of these tests.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Longer than anything here takes, on a busy machine, too.
pub(crate) const LONG: Duration = Duration::from_mins(2);

/// What a user has configured who has configured these rules, for good.
#[derive(Debug)]
struct Fixed {
    layers: Vec<Layer>,
    told: AtomicBool,
}

impl Settings for Fixed {
    fn changed(&self, _: &dyn Fn() -> bool) -> Result<Option<Current>, Failure> {
        if self.told.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        Ok(Some(Current {
            rules: Rules::new(self.layers.clone(), Vec::new())?,
            snapshots: SnapshotLimits::USUAL,
            deadline: None,
            branch_prefix: "sayso/".to_owned(),
            requests: sayso_proxy::Settings::usual(),
        }))
    }

    fn strictest(&self) -> Result<Current, Failure> {
        self.told.store(false, Ordering::SeqCst);
        self.changed(&|| false).map(|current| current.expect("it was not told"))
    }

    fn keep(&self, _: &Rule) -> Result<String, Failure> {
        Ok("nothing".to_owned())
    }
}

/// A workspace, the records of it, and something beside it that nobody is to reach.
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

    /// The workspace.
    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("workspace")
    }

    /// All records.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The records of the workspace.
    pub(crate) fn journal(&self) -> PathBuf {
        self.home().join("workspaces/one")
    }

    /// What is beside the workspace.
    pub(crate) fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    pub(crate) fn options(&self) -> EngineOptions {
        self.options_with(Vec::new())
    }

    /// The options where the user has rules.
    fn options_with(&self, rules: Vec<Rule>) -> EngineOptions {
        let (standing, defaults) = (Standing::Full, Defaults::default());
        let layer = Layer { file: "config.toml".to_owned(), standing, defaults, rules };
        EngineOptions {
            root: self.root(),
            journal: self.journal(),
            home: self.home(),
            settings: Box::new(Fixed { layers: vec![layer], told: AtomicBool::new(false) }),
            announce: Box::new(Silence),
            environment: Environment { path: "/usr/bin:/bin".into(), home: None, config_home: None, mark: None },
            version: "test",
        }
    }

    /// A server at any port.
    pub(crate) fn serve(&self) -> Running {
        self.serve_as(|_| {})
    }

    /// A server where the user has rules.
    pub(crate) fn serve_under(&self, rules: Vec<Rule>) -> Running {
        self.start(Server::start(self.options_with(rules), Self::http()).unwrap())
    }

    pub(crate) fn serve_as(&self, change: impl FnOnce(&mut HttpOptions)) -> Running {
        let mut http = Self::http();
        change(&mut http);
        self.start(Server::start(self.options(), http).unwrap())
    }

    /// Any port, and the token.
    pub(crate) fn http() -> HttpOptions {
        HttpOptions {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            port: PortChoice::Exactly,
            token: Some(sayso_server::Token::new(TOKEN).unwrap()),
            hosts: Vec::new(),
            origins: Vec::new(),
            timing: Timing::USUAL,
        }
    }

    fn start(&self, server: Server) -> Running {
        let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
        let stop = server.stopper();
        let login = server.logins().create().unwrap().reveal().to_owned();
        let place = EnginePlace::new(&self.journal());
        let thread = std::thread::spawn(move || server.run().unwrap());
        let (socket, verdicts) = (place.socket(), place.verdict_socket().unwrap());
        Running { address, socket, verdicts, login, stop, thread: Some(thread) }
    }
}

/// A server in this process. Stops when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// The socket for proposals.
    pub(crate) socket: PathBuf,
    /// The name of the socket for verdicts.
    pub(crate) verdicts: String,
    /// With which verdicts are taken over TCP.
    pub(crate) login: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// A client on the socket for verdicts.
    pub(crate) fn near(&self) -> Client {
        Client::new(Arc::new(AbstractSocket(self.verdicts.clone())), None)
    }

    /// A client on the socket for proposals.
    pub(crate) fn proposing(&self) -> Client {
        Client::new(Arc::new(Socket(self.socket.clone())), None)
    }

    /// A client over TCP, with a login.
    pub(crate) fn far(&self) -> Client {
        Client::new(Arc::new(Loopback { address: self.address }), Some(Token::new(&self.login).unwrap()))
    }

    /// A client that connects in its own way, with the token.
    pub(crate) fn by(dial: Arc<dyn Dial>) -> Client {
        Client::new(dial, Some(Token::new(TOKEN).unwrap()))
    }

    /// Ends it and waits until it is over.
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

/// A file with a content, as a proposal.
pub(crate) fn write(path: &str, content: &str) -> Proposed {
    let change = serde_json::json!({ "operation": "write", "path": path, "new_content": content });
    Proposed::Text(change.to_string().into_bytes())
}

/// Proposes something that waits.
pub(crate) async fn ask(client: &Client, proposed: Proposed) -> Progress {
    client.propose(proposed, Origin::default(), Proposing::Ask, View::Nothing).await.unwrap()
}

pub(crate) fn verdict(record: &ChangeRecord, answer: Answer) -> Verdict {
    Verdict { preview: record.preview, answer, comments: Vec::new(), by: Decider::Person }
}

pub(crate) fn no(reason: &str) -> Answer {
    Answer::Deny { reason: Some(reason.to_owned()) }
}

/// Waits for something that has to come, and fails if it does not.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(LONG, future).await;
    waited.unwrap_or_else(|_| panic!("{what} did not come within {LONG:?}"))
}

/// Every file of a tree with its content, and every link with where it leads.
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

/// Numbers that look random and are the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    /// The seed is printed, and taken from `SAYSO_SEED` where that is set, so that a failure can be had again.
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
        // SplitMix64, as published.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
