//! The user's configuration for an engine, and the options of an engine of this program.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use sayso_gate::{Notification, Notify};
use sayso_review::Rule;
use sayso_server::agent_registry::MARK;
use sayso_server::{CredentialHeader, Current, EngineOptions, RuleText, Settings};
use sayso_workspace::git::Environment;

use crate::config::{Config, FileTrust, WORKSPACE_FILE, agent, append_rule, confirm, rule_toml, trust_file, user_file};
use crate::error::CliError;
use crate::output::say;
use crate::workspace_location::WorkspaceLocation;

/// Folder of a workspace with scenarios of the built-in agent. They count once the workspace's configuration is trusted.
const WORKSPACE_SCENARIOS: &str = ".sayso/scenarios";

/// The configuration files of a workspace, read again after they change.
#[derive(Debug)]
pub(crate) struct ConfigurationFiles {
    location: WorkspaceLocation,
    /// The stamps of the files at the last reading.
    read: Mutex<Option<Vec<FileStamp>>>,
}

/// Metadata that changes with a file's content: inode, size, modification and change times. `None` for no file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp(Option<(u64, u64, i64, i64, i64, i64)>);

impl FileStamp {
    fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(
            metadata.map(|file| {
                (file.ino(), file.size(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec())
            }),
        )
    }
}

impl ConfigurationFiles {
    pub(crate) fn new(location: &WorkspaceLocation) -> Self {
        Self { location: location.clone(), read: Mutex::new(None) }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.location.root.join(WORKSPACE_FILE), trust_file(&self.location)];
        files.extend(user_file());
        files.extend(Config::accepted_files(&self.location));
        let own = user_file().and_then(|file| Some(file.parent()?.join("scenarios")));
        for folder in own.into_iter().chain([self.location.root.join(WORKSPACE_SCENARIOS)]) {
            files.extend(std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()));
            files.push(folder);
        }
        files
    }
}

impl Settings for ConfigurationFiles {
    fn changed(&self, has_running_writer: &dyn Fn() -> bool) -> Result<Option<Current>, sayso_server::Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Stamped before reading, so that a write in between is noticed the next time.
        let stamps: Vec<FileStamp> = self.files().iter().map(|file| FileStamp::of(file)).collect();
        if read.as_ref() == Some(&stamps) {
            return Ok(None);
        }
        let current = current(&self.location, &Config::load_while(&self.location, has_running_writer)?)?;
        *read = Some(stamps);
        Ok(Some(current))
    }

    fn strictest(&self) -> Result<Current, sayso_server::Failure> {
        current(&self.location, &Config::strictest(&self.location))
    }

    fn append_rule(&self, rule: &Rule) -> Result<String, sayso_server::Failure> {
        let path = user_file().ok_or_else(|| {
            CliError::invalid_input("there is no configuration file to write a rule to")
                .hint("set HOME or XDG_CONFIG_HOME")
        })?;
        append_rule(&path, rule)?;
        // A person's verdict wrote the rule, so that it needs no confirmation.
        confirm(&self.location)?;
        Ok(path.display().to_string())
    }

    fn rule_text(&self, rule: &Rule) -> Result<RuleText, sayso_server::Failure> {
        let file = user_file().map_or_else(String::new, |path| path.display().to_string());
        Ok(RuleText { file, toml: rule_toml(rule) })
    }

    fn credential(&self, upstream: &str) -> Result<Option<CredentialHeader>, sayso_server::Failure> {
        let config = Config::load(&self.location)?;
        let Some(setting) = config.requests.upstreams.get(upstream) else {
            let names: Vec<&str> = config.requests.upstreams.keys().map(String::as_str).collect();
            return Err(CliError::invalid_input(format!("there is no upstream `{upstream}`"))
                .hint(format!("use one of {}, or add [upstream.{upstream}] to the configuration", names.join(", ")))
                .into());
        };
        let keys = user_file().and_then(|file| Some(file.parent()?.join("keys")));
        Ok(agent::credential(upstream, &setting.value, keys.as_deref(), |name| std::env::var(name).ok())?)
    }
}

fn current(location: &WorkspaceLocation, config: &Config) -> Result<Current, sayso_server::Failure> {
    Ok(Current {
        rules: config.rules()?,
        snapshots: config.snapshots(),
        deadline: config.deadline.value,
        branch_prefix: config.branch_prefix.value.clone(),
        requests: config.requests.settings(|name| std::env::var(name).ok()),
        agent: config
            .agent
            .defaults(agent::scenario_files(&scenario_folders(location, config)), &config.requests.upstreams),
    })
}

/// Returns the folders with scenarios: the user's own, then that of a trusted workspace.
fn scenario_folders(location: &WorkspaceLocation, config: &Config) -> Vec<PathBuf> {
    let own = user_file().and_then(|file| Some(file.parent()?.join("scenarios")));
    let workspace = (config.trust == FileTrust::Trusted).then(|| location.root.join(WORKSPACE_SCENARIOS));
    own.into_iter().chain(workspace).collect()
}

/// Reports problems of the configuration, for commands that work without it.
pub(crate) fn report_configuration_problems(location: &WorkspaceLocation) {
    report_unconfirmed_rules(location);
    if let Some(problem) = configuration_problem(location) {
        say(&format!("note: {problem}. Everything is denied until it is corrected."));
    }
}

/// Reports files whose present rules do not count until a person confirms them.
pub(crate) fn report_unconfirmed_rules(location: &WorkspaceLocation) {
    for file in Config::load(location).map(|config| config.unconfirmed).unwrap_or_default() {
        say(&format!(
            "note: {file} became milder while something ran under the gate. The rules before that count until you confirm it: `sayso trust --rules`."
        ));
    }
}

/// Describes the configuration's first error. `None` if it has none.
pub(crate) fn configuration_problem(location: &WorkspaceLocation) -> Option<String> {
    let error = Config::load(location).and_then(|config| config.rules().map(drop)).err()?;
    Some(error.message())
}

impl From<CliError> for sayso_server::Failure {
    fn from(error: CliError) -> Self {
        let failure = Self::new(error.kind(), error.message());
        match error.hint_text() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Notifies by the terminal's bell and by the user's own command.
#[derive(Debug)]
struct UserNotifier {
    command: Option<Vec<String>>,
}

impl Notify for UserNotifier {
    fn notify(&self, notification: &Notification) {
        if let Ok(mut terminal) = std::fs::OpenOptions::new().write(true).open("/dev/tty") {
            // Best effort.
            let _ = terminal.write_all(notification.for_terminal().as_bytes());
        }
        let Some([program, arguments @ ..]) = self.command.as_deref() else { return };
        let started = Command::new(program)
            .args(arguments)
            .arg(notification.to_string())
            .env(MARK, "notify")
            .env_remove("SAYSO_AUTH_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            // Reaped, because a zombie would stay until the engine ends.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => say(&format!("note: cannot start the command `{program}` of [notify]: {error}")),
        }
    }
}

/// Returns the options of an engine for a workspace.
pub(crate) fn engine_options(location: &WorkspaceLocation) -> EngineOptions {
    let variable = |name: &str| std::env::var_os(name);
    let path = variable("PATH").unwrap_or_default();
    EngineOptions {
        root: location.root.clone(),
        journal: location.folder.clone(),
        home: location.home.clone(),
        settings: Box::new(ConfigurationFiles::new(location)),
        notify: Box::new(UserNotifier { command: Config::load(location).ok().and_then(|config| config.notify.value) }),
        environment: Environment {
            path,
            home: variable("HOME"),
            config_home: variable("XDG_CONFIG_HOME"),
            // A repository's hooks run under this mark, so that they cannot decide.
            mark: Some((MARK, "git")),
        },
        version: env!("CARGO_PKG_VERSION"),
        // Also if the file was replaced since, as by an update.
        program: PathBuf::from("/proc/self/exe"),
    }
}
