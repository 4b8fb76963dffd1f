//! Settings and rules: the defaults, then the user's file, then the workspace's file.
//!
//! Every value has its origin. The workspace's file is not the user's own. Until the user trusts exactly its bytes, its rules can only
//! make things stricter and its settings do not count.

mod accepted;
pub(crate) mod agent;
mod append;
mod file;
mod outside;
mod request;
pub(crate) mod show;
mod trust;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_adapters::Agent;
use sayso_gate::{Rules, SnapshotLimits};
use sayso_review::{
    BUILT_IN_AGENT, ContentHash, Defaults, ErrorKind, Layer, LayerTrust, OutsidePath, Policy, PolicyError, Rule,
    Ruling, WsPath,
};
use sayso_workspace::{OpenError, ReadLimit};

use crate::error::CliError;
use crate::workspace_location::WorkspaceLocation;

use accepted::{Accepted, Confirmation};
pub(crate) use accepted::{confirm, inspect};
use agent::AgentSettings;
pub(crate) use append::{append_rule, rule_toml};
use file::File;
pub(crate) use file::OnFailure;
use request::RequestSettings;
pub(crate) use trust::{FileTrust, TrustStore, trust_file};

/// The workspace's file.
pub(crate) const WORKSPACE_FILE: &str = "sayso.toml";
/// Tools of the built-in agent that only read or keep its own notes.
const QUIET_TOOLS: [&str; 9] = ["Read", "List", "Glob", "Grep", "Diff", "Echo", "TodoRead", "TodoWrite", "Ask"];
/// Size of the largest configuration file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    Default,
    /// A file or an environment variable.
    File(String),
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Valued<T> {
    pub(crate) value: T,
    pub(crate) origin: ValueOrigin,
}

impl<T> Valued<T> {
    fn default(value: T) -> Self {
        Self { value, origin: ValueOrigin::Default }
    }

    fn set(&mut self, value: Option<T>, file: &str) {
        if let Some(value) = value {
            *self = Self { value, origin: ValueOrigin::File(file.to_owned()) };
        }
    }
}

/// A setting of the workspace's file that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredSetting {
    pub(crate) key: &'static str,
    pub(crate) reason: &'static str,
}

/// All settings, merged.
#[derive(Debug)]
pub(crate) struct Config {
    /// Rules by origin, for [`Policy::new`].
    pub(crate) layers: Vec<Layer>,
    /// Size of the largest file in a snapshot, in bytes.
    pub(crate) max_file_size: Valued<u64>,
    /// Size of all snapshots, in bytes.
    pub(crate) quota: Valued<u64>,
    /// Prefix of branch names.
    pub(crate) branch_prefix: Valued<String>,
    /// Command for notifications.
    pub(crate) notify: Valued<Option<Vec<String>>>,
    /// Time after which a pending change is denied. `None` for never.
    pub(crate) deadline: Valued<Option<Duration>>,
    /// The fate of a call if a hook cannot reach the engine.
    pub(crate) on_failure: Valued<OnFailure>,
    pub(crate) requests: RequestSettings,
    pub(crate) agent: AgentSettings,
    pub(crate) ignored: Vec<IgnoredSetting>,
    /// Files that became milder while a gated process ran. Their accepted copies count.
    pub(crate) unconfirmed: Vec<String>,
    pub(crate) trust: FileTrust,
    /// sayso's own folders inside the workspace.
    protected: Vec<WsPath>,
    /// sayso's own folders as absolute paths.
    protected_outside: Vec<OutsidePath>,
}

impl Config {
    /// Reads the configuration of a workspace.
    pub(crate) fn load(location: &WorkspaceLocation) -> Result<Self, CliError> {
        Self::load_while(location, &|| false)
    }

    /// Reads the configuration for an engine. `has_running_writer` tells if a permitted change is not finished.
    pub(crate) fn load_while(
        location: &WorkspaceLocation,
        has_running_writer: &dyn Fn() -> bool,
    ) -> Result<Self, CliError> {
        let user = user_file();
        let mut config = Self::built_in(location, user.as_deref());
        if let Some(path) = &user
            && let Some(bytes) = config.counted(Accepted::user(location), read_if_there(path)?, has_running_writer)
        {
            let name = path.display().to_string();
            let mut file = File::parse(&bytes, &name)?;
            outside::expand_home(&mut file.rule, &name)?;
            config.apply(file, &name, LayerTrust::Trusted);
        }
        let accepted = Some(Accepted::workspace(location));
        if let Some(bytes) = config.counted(accepted, workspace_bytes(location)?, has_running_writer) {
            config.trust = TrustStore::load(location)?.about(&location.root, ContentHash::of(&bytes));
            let file = File::parse(&bytes, WORKSPACE_FILE)?;
            outside::refuse_in_workspace(&bytes)?;
            let trust = if config.trust == FileTrust::Trusted { LayerTrust::Trusted } else { LayerTrust::TightenOnly };
            config.apply_workspace(file, trust);
        }
        config.requests.apply_environment(|name| std::env::var(name).ok()).map_err(|reason| {
            CliError::invalid_input("cannot read the environment")
                .because(reason)
                .hint("correct the variable, or unset it")
        })?;
        Ok(config)
    }

    /// Returns the content of a file that counts.
    fn counted(
        &mut self,
        accepted: Option<Accepted>,
        current: Option<Vec<u8>>,
        has_running_writer: &dyn Fn() -> bool,
    ) -> Option<Vec<u8>> {
        let Some(accepted) = accepted else { return current };
        let counted = accepted.counted(current, has_running_writer);
        if counted.confirmation == Confirmation::Unconfirmed {
            self.unconfirmed.push(accepted.name);
        }
        counted.bytes
    }

    /// Lists the files beside the configuration that decide which content counts.
    pub(crate) fn accepted_files(location: &WorkspaceLocation) -> Vec<PathBuf> {
        let accepted = [Accepted::user(location), Some(Accepted::workspace(location))];
        accepted.iter().flatten().flat_map(Accepted::files).map(Path::to_owned).collect()
    }

    /// Returns the fallback for an unreadable configuration: built-in settings, and rules that deny everything.
    pub(crate) fn strictest(location: &WorkspaceLocation) -> Self {
        let mut config = Self::built_in(location, user_file().as_deref());
        let deny = Some(Ruling::Deny);
        let defaults = Defaults { read: deny, write: deny, run: deny, tool: deny, delegate: deny, send: deny };
        let file = "the strictest rules".to_owned();
        config.layers = vec![Layer { file, trust: LayerTrust::Trusted, defaults, rules: Vec::new() }];
        config
    }

    /// Returns the rules for an engine.
    pub(crate) fn rules(&self) -> Result<Rules, CliError> {
        let rules = Rules::new(self.layers.clone(), self.protected.clone()).map_err(|error| bad_rule(&error))?;
        Ok(rules.with_protected_outside(self.protected_outside.clone()))
    }

    /// Returns the limits of snapshots.
    pub(crate) fn snapshots(&self) -> SnapshotLimits {
        SnapshotLimits { max_file_bytes: self.max_file_size.value, quota_bytes: self.quota.value }
    }

    /// Compiles the rules.
    pub(crate) fn policy(&self) -> Result<Policy, CliError> {
        let policy = Policy::new(&self.layers, &self.protected).map_err(|error| bad_rule(&error))?;
        Ok(policy.with_protected_outside(&self.protected_outside))
    }

    fn built_in(location: &WorkspaceLocation, user: Option<&Path>) -> Self {
        let ours: Vec<&Path> =
            [Some(location.home.as_path()), user.and_then(Path::parent)].into_iter().flatten().collect();
        let inside = |path: &Path| {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            real.strip_prefix(&location.root).ok().and_then(Path::to_str).and_then(|path| WsPath::parse(path).ok())
        };
        Self {
            layers: vec![quiet()],
            max_file_size: Valued::default(SnapshotLimits::DEFAULT.max_file_bytes),
            quota: Valued::default(SnapshotLimits::DEFAULT.quota_bytes),
            branch_prefix: Valued::default("sayso/".to_owned()),
            notify: Valued::default(None),
            deadline: Valued::default(None),
            on_failure: Valued::default(OnFailure::Deny),
            requests: RequestSettings::built_in(),
            agent: AgentSettings::built_in(),
            ignored: Vec::new(),
            unconfirmed: Vec::new(),
            trust: FileTrust::NoFile,
            protected: ours.iter().copied().filter_map(inside).collect(),
            protected_outside: outside::protected(&ours),
        }
    }

    fn apply(&mut self, file: File, name: &str, trust: LayerTrust) {
        self.max_file_size.set(file.snapshot.max_file_size.map(|size| size.0), name);
        self.quota.set(file.snapshot.quota.map(|size| size.0), name);
        self.branch_prefix.set(file.branch.prefix, name);
        self.notify.set(file.notify.command.map(|words| Some(words.0)), name);
        self.on_failure.set(file.hook.on_failure, name);
        self.deadline.set(file.decide.deadline.map(|span| Some(span.0)), name);
        self.requests.apply(file.request, file.upstream, name);
        self.agent.apply(file.agent, file.mcp_servers, name);
        self.layers.push(Layer { file: name.to_owned(), trust, defaults: file.policy, rules: file.rule });
    }

    fn apply_workspace(&mut self, mut file: File, trust: LayerTrust) {
        let mut ignore = |key, is_set: bool, reason| {
            if is_set {
                self.ignored.push(IgnoredSetting { key, reason });
            }
        };
        // The workspace would choose a program to run.
        ignore("notify.command", file.notify.command.take().is_some(), "only the user's own file can set it");
        // An agent could write it, and then end the engine.
        let loosens = file.hook.on_failure.take_if(|wanted| *wanted != OnFailure::Deny).is_some();
        ignore("hook.on_failure", loosens, "only the user's own file can loosen it");
        let is_trusted = trust == LayerTrust::Trusted;
        if !is_trusted {
            let reason = "the file is not trusted";
            ignore("snapshot.max_file_size", file.snapshot.max_file_size.take().is_some(), reason);
            ignore("snapshot.quota", file.snapshot.quota.take().is_some(), reason);
            ignore("branch.prefix", file.branch.prefix.take().is_some(), reason);
            ignore("decide.deadline", file.decide.deadline.take().is_some(), reason);
        }
        request::restrict(&mut file.request, &mut file.upstream, is_trusted, &mut self.ignored);
        agent::restrict(&mut file.agent, is_trusted, &mut self.ignored);
        agent::restrict_servers(&mut file.mcp_servers, is_trusted, &mut self.ignored);
        self.apply(file, WORKSPACE_FILE, trust);
    }
}

/// Returns the default rules, which allow an agent's tools that only read or keep its own notes.
fn quiet() -> Layer {
    let rule = |agent: Agent| Rule {
        name: Some(format!("{} looks", agent.name())),
        tool: agent.quiet_tools().iter().map(ToString::to_string).collect(),
        agent: Some(agent.name().to_owned()),
        ..Rule::new(Ruling::Allow)
    };
    let built_in = Rule {
        name: Some(format!("{BUILT_IN_AGENT} looks")),
        tool: QUIET_TOOLS.iter().map(ToString::to_string).collect(),
        agent: Some(BUILT_IN_AGENT.to_owned()),
        ..Rule::new(Ruling::Allow)
    };
    let rules = Agent::WITH_HOOKS.into_iter().map(rule).chain([built_in]).chain(outside::own_folders()).collect();
    Layer { file: "the defaults".to_owned(), trust: LayerTrust::Trusted, defaults: Defaults::default(), rules }
}

fn bad_rule(error: &PolicyError) -> CliError {
    CliError::new(error.kind(), error.to_string()).hint(error.hint())
}

/// Reads and checks the rules of a workspace's file.
pub(crate) fn workspace_layer(bytes: &[u8]) -> Result<Layer, CliError> {
    let File { policy: defaults, rule: rules, .. } = File::parse(bytes, WORKSPACE_FILE)?;
    outside::refuse_in_workspace(bytes)?;
    let layer = Layer { file: WORKSPACE_FILE.to_owned(), trust: LayerTrust::TightenOnly, defaults, rules };
    Policy::new(std::slice::from_ref(&layer), &[]).map_err(|error| bad_rule(&error))?;
    Ok(layer)
}

/// Returns an environment variable that is an absolute path.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the path of the user's file. `None` if the environment names no place for it.
pub(crate) fn user_file() -> Option<PathBuf> {
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("sayso/config.toml"))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::io(format!("cannot read {}", path.display()), &error)),
    }
}

/// Reads the workspace's file. Fails if it exists and cannot be read, because it may contain a denial.
pub(crate) fn workspace_bytes(location: &WorkspaceLocation) -> Result<Option<Vec<u8>>, CliError> {
    let failed = |kind: ErrorKind, cause: String| {
        CliError::new(kind, format!("cannot use the workspace's {WORKSPACE_FILE}"))
            .because(cause)
            .hint("make it a regular file in the workspace, or remove it")
    };
    let path = WsPath::parse(WORKSPACE_FILE).map_err(|error| failed(ErrorKind::Internal, error.to_string()))?;
    match location.open()?.open_path(&path) {
        Ok(opened) => {
            let bytes = opened.read(ReadLimit(MAX_FILE_BYTES));
            bytes.map(Some).map_err(|error| failed(ErrorKind::InvalidArgs, error.to_string()))
        }
        Err(OpenError::NotFound(_)) => match location.root.join(WORKSPACE_FILE).symlink_metadata() {
            Ok(_) => Err(failed(ErrorKind::InvalidArgs, "it is a symbolic link that leads nowhere".to_owned())),
            Err(_) => Ok(None),
        },
        Err(error) => Err(failed(ErrorKind::InvalidArgs, error.to_string())),
    }
}
