//! Settings and rules: defaults, under the user's file, under the workspace's.
//!
//! Every value knows where it comes from. The workspace's file came with the workspace, so that its rules can only make things
//! stricter, and its other settings do not count, until the user has trusted exactly these bytes.

mod accepted;
mod append;
mod file;
mod outside;
mod request;
pub(crate) mod show;
mod trust;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_adapters::hook::Agent;
use sayso_gate::{Rules, SnapshotLimits};
use sayso_review::{
    ContentHash, Defaults, ErrorKind, Layer, OutsidePath, Policy, PolicyError, Rule, Ruling, Standing, WsPath,
};
use sayso_workspace::{OpenError, ReadLimit};

use crate::failure::Failure;
use crate::state::State;

use accepted::{Accepted, Confirmed};
pub(crate) use accepted::{confirm, inspect};
pub(crate) use append::append_rule;
use file::File;
pub(crate) use file::OnFailure;
use request::Requests;
pub(crate) use trust::{Trust, TrustStore, trust_file};

/// The workspace's file.
pub(crate) const WORKSPACE_FILE: &str = "sayso.toml";
/// No configuration that a person writes is larger.
const LARGEST_FILE: u64 = 4 << 20;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// A file.
    File(String),
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Valued<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Valued<T> {
    fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    fn set(&mut self, value: Option<T>, file: &str) {
        if let Some(value) = value {
            *self = Self { value, origin: Origin::File(file.to_owned()) };
        }
    }
}

/// A setting of the workspace's file that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredSetting {
    pub(crate) key: &'static str,
    pub(crate) why: &'static str,
}

/// All settings, merged.
#[derive(Debug)]
pub(crate) struct Config {
    /// The rules by where they come from, for [`Policy::new`].
    pub(crate) layers: Vec<Layer>,
    /// The largest file that a snapshot keeps, in bytes.
    pub(crate) largest_file: Valued<u64>,
    /// How much snapshots keep together, in bytes.
    pub(crate) quota: Valued<u64>,
    /// How names of branches begin.
    pub(crate) branch_prefix: Valued<String>,
    /// What to run when something waits and nobody looks.
    pub(crate) notify: Valued<Option<Vec<String>>>,
    /// When what nobody decided is denied.
    pub(crate) deadline: Valued<Option<Duration>>,
    /// What becomes of a call if a hook cannot ask the engine.
    pub(crate) on_failure: Valued<OnFailure>,
    /// How requests to models are treated.
    pub(crate) requests: Requests,
    pub(crate) ignored: Vec<IgnoredSetting>,
    /// Files that became milder while something ran under the gate, and count as they were before.
    pub(crate) unconfirmed: Vec<String>,
    /// How the workspace's file stands.
    pub(crate) trust: Trust,
    /// sayso's own files, should they lie in the workspace.
    protected: Vec<WsPath>,
    /// sayso's own folders wherever they are.
    protected_outside: Vec<OutsidePath>,
}

impl Config {
    /// Reads all files that matter to a workspace.
    pub(crate) fn load(state: &State) -> Result<Self, Failure> {
        Self::load_while(state, &|| false)
    }

    /// The same, where an engine says whether a change that it let go ahead is not over.
    pub(crate) fn load_while(state: &State, under_way: &dyn Fn() -> bool) -> Result<Self, Failure> {
        let user = user_file();
        let mut config = Self::built_in(state, user.as_deref());
        if let Some(path) = &user
            && let Some(bytes) = config.counted(Accepted::user(state), read_if_there(path)?, under_way)
        {
            let name = path.display().to_string();
            let mut file = File::parse(&bytes, &name)?;
            outside::expand_home(&mut file.rule, &name)?;
            config.take(file, &name, Standing::Full);
        }
        let accepted = Some(Accepted::workspace(state));
        if let Some(bytes) = config.counted(accepted, workspace_bytes(state)?, under_way) {
            config.trust = TrustStore::load(state)?.about(&state.root, ContentHash::of(&bytes));
            let file = File::parse(&bytes, WORKSPACE_FILE)?;
            outside::refuse_in_workspace(&bytes)?;
            let standing = if config.trust == Trust::Trusted { Standing::Full } else { Standing::Tightens };
            config.take_workspace(file, standing);
        }
        config.requests.take_environment(|name| std::env::var(name).ok()).map_err(|reason| {
            Failure::bad_input("the environment is not understood")
                .why(&reason)
                .hint("correct the variable, or unset it")
        })?;
        Ok(config)
    }

    /// What counts of a file.
    fn counted(
        &mut self,
        accepted: Option<Accepted>,
        current: Option<Vec<u8>>,
        under_way: &dyn Fn() -> bool,
    ) -> Option<Vec<u8>> {
        let Some(accepted) = accepted else { return current };
        let counted = accepted.counted(current, under_way);
        if counted.standing == Confirmed::NotYet {
            self.unconfirmed.push(accepted.name);
        }
        counted.bytes
    }

    /// The files beside the configuration of which it depends what counts of it.
    pub(crate) fn accepted_files(state: &State) -> Vec<PathBuf> {
        let accepted = [Accepted::user(state), Some(Accepted::workspace(state))];
        accepted.iter().flatten().flat_map(Accepted::files).map(Path::to_owned).collect()
    }

    /// What counts where a file cannot be understood: nothing is allowed, and the built-in settings.
    pub(crate) fn strictest(state: &State) -> Self {
        let mut config = Self::built_in(state, user_file().as_deref());
        let deny = Some(Ruling::Deny);
        let defaults = Defaults { read: deny, write: deny, run: deny, tool: deny, delegate: deny, send: deny };
        let file = "the strictest rules".to_owned();
        config.layers = vec![Layer { file, standing: Standing::Full, defaults, rules: Vec::new() }];
        config
    }

    /// The rules for an engine.
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        let rules = Rules::new(self.layers.clone(), self.protected.clone()).map_err(|error| bad_rule(&error))?;
        Ok(rules.protecting(self.protected_outside.clone()))
    }

    /// How much is kept for the sake of undoing what commands do.
    pub(crate) fn snapshots(&self) -> SnapshotLimits {
        SnapshotLimits { largest_file: self.largest_file.value, quota: self.quota.value }
    }

    /// Makes the rules ready to judge.
    pub(crate) fn policy(&self) -> Result<Policy, Failure> {
        let policy = Policy::new(&self.layers, &self.protected).map_err(|error| bad_rule(&error))?;
        Ok(policy.protecting(&self.protected_outside))
    }

    fn built_in(state: &State, user: Option<&Path>) -> Self {
        let ours: Vec<&Path> =
            [Some(state.home.as_path()), user.and_then(Path::parent)].into_iter().flatten().collect();
        let inside = |path: &Path| {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            real.strip_prefix(&state.root).ok().and_then(Path::to_str).and_then(|path| WsPath::parse(path).ok())
        };
        Self {
            layers: vec![quiet()],
            largest_file: Valued::default(SnapshotLimits::USUAL.largest_file),
            quota: Valued::default(SnapshotLimits::USUAL.quota),
            branch_prefix: Valued::default("sayso/".to_owned()),
            notify: Valued::default(None),
            deadline: Valued::default(None),
            on_failure: Valued::default(OnFailure::Deny),
            requests: Requests::built_in(),
            ignored: Vec::new(),
            unconfirmed: Vec::new(),
            trust: Trust::NoFile,
            protected: ours.iter().copied().filter_map(inside).collect(),
            protected_outside: outside::protected(&ours),
        }
    }

    fn take(&mut self, file: File, name: &str, standing: Standing) {
        self.largest_file.set(file.snapshot.largest_file.map(|size| size.0), name);
        self.quota.set(file.snapshot.quota.map(|size| size.0), name);
        self.branch_prefix.set(file.branch.prefix, name);
        self.notify.set(file.notify.command.map(|words| Some(words.0)), name);
        self.on_failure.set(file.hook.on_failure, name);
        self.deadline.set(file.decide.deadline.map(|span| Some(span.0)), name);
        self.requests.take(file.request, file.upstream, name);
        self.layers.push(Layer { file: name.to_owned(), standing, defaults: file.policy, rules: file.rule });
    }

    fn take_workspace(&mut self, mut file: File, standing: Standing) {
        let mut ignore = |key, there: bool, why| {
            if there {
                self.ignored.push(IgnoredSetting { key, why });
            }
        };
        // It would run a program of the workspace's choice.
        ignore("notify.command", file.notify.command.take().is_some(), "only the user's own file can set it");
        // An agent could write it, and then make the engine go away.
        let loosens = file.hook.on_failure.take_if(|wanted| *wanted != OnFailure::Deny).is_some();
        ignore("hook.on_failure", loosens, "only the user's own file can loosen it");
        let trusted = standing == Standing::Full;
        if !trusted {
            let why = "the file is not trusted";
            ignore("snapshot.largest_file", file.snapshot.largest_file.take().is_some(), why);
            ignore("snapshot.quota", file.snapshot.quota.take().is_some(), why);
            ignore("branch.prefix", file.branch.prefix.take().is_some(), why);
            ignore("decide.deadline", file.decide.deadline.take().is_some(), why);
        }
        request::restrict(&mut file.request, &mut file.upstream, trusted, &mut self.ignored);
        self.take(file, WORKSPACE_FILE, standing);
    }
}

/// What an agent may do unasked where nobody says otherwise: look, and keep its own books.
fn quiet() -> Layer {
    let rule = |agent: Agent| Rule {
        name: Some(format!("{agent} looks")),
        tool: agent.quiet_tools().iter().map(ToString::to_string).collect(),
        agent: Some(agent.name().to_owned()),
        ..Rule::new(Ruling::Allow)
    };
    let rules = Agent::ALL.into_iter().map(rule).chain(outside::own_folders()).collect();
    Layer { file: "the defaults".to_owned(), standing: Standing::Full, defaults: Defaults::default(), rules }
}

fn bad_rule(error: &PolicyError) -> Failure {
    Failure::of(error.kind(), error.to_string()).hint(error.hint())
}

/// The rules of a workspace's file with these bytes, each of them understood.
pub(crate) fn workspace_layer(bytes: &[u8]) -> Result<Layer, Failure> {
    let File { policy: defaults, rule: rules, .. } = File::parse(bytes, WORKSPACE_FILE)?;
    outside::refuse_in_workspace(bytes)?;
    let layer = Layer { file: WORKSPACE_FILE.to_owned(), standing: Standing::Tightens, defaults, rules };
    Policy::new(std::slice::from_ref(&layer), &[]).map_err(|error| bad_rule(&error))?;
    Ok(layer)
}

/// A variable of the environment that names an absolute path.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Where the user's file is, if the environment tells.
pub(crate) fn user_file() -> Option<PathBuf> {
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("sayso/config.toml"))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::bad_input(format!("{} cannot be read", path.display())).why(&error)),
    }
}

/// The workspace's file. One that is there and cannot be read is a failure: it may forbid something.
pub(crate) fn workspace_bytes(state: &State) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |kind: ErrorKind, why: String| {
        Failure::of(kind, format!("the workspace's {WORKSPACE_FILE} cannot be used"))
            .why(&why)
            .hint("make it a regular file in the workspace, or remove it")
    };
    let path = WsPath::parse(WORKSPACE_FILE).map_err(|error| failed(ErrorKind::Internal, error.to_string()))?;
    match state.workspace()?.open_path(&path) {
        Ok(opened) => {
            let bytes = opened.read(ReadLimit(LARGEST_FILE));
            bytes.map(Some).map_err(|error| failed(ErrorKind::InvalidArgs, error.to_string()))
        }
        Err(OpenError::NotFound(_)) => match state.root.join(WORKSPACE_FILE).symlink_metadata() {
            Ok(_) => Err(failed(ErrorKind::InvalidArgs, "it is a symbolic link that leads nowhere".to_owned())),
            Err(_) => Ok(None),
        },
        Err(error) => Err(failed(ErrorKind::InvalidArgs, error.to_string())),
    }
}
