//! The user's configuration as an engine asks for it, and what an engine of this program is made of.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use sayso_gate::{Announce, Announcement};
use sayso_review::Rule;
use sayso_server::agents::MARK;
use sayso_server::{Current, EngineOptions, Settings};
use sayso_workspace::git::Environment;

use crate::config::{Config, WORKSPACE_FILE, append_rule, confirm, trust_file, user_file};
use crate::failure::Failure;
use crate::output::say;
use crate::state::State;

/// The files that settings are in, and how they were when they were last read.
#[derive(Debug)]
pub(crate) struct Configured {
    state: State,
    read: Mutex<Option<Vec<Stamp>>>,
}

/// How a file is, so that it is noticed if it becomes another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(Option<(u64, u64, i64, i64, i64, i64)>);

impl Stamp {
    fn of(path: &Path) -> Self {
        let found = std::fs::metadata(path).ok();
        Self(
            found.map(|file| {
                (file.ino(), file.size(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec())
            }),
        )
    }
}

impl Configured {
    pub(crate) fn new(state: &State) -> Self {
        Self { state: state.clone(), read: Mutex::new(None) }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.state.root.join(WORKSPACE_FILE), trust_file(&self.state)];
        files.extend(user_file());
        files.extend(Config::accepted_files(&self.state));
        files
    }
}

impl Settings for Configured {
    fn changed(&self, under_way: &dyn Fn() -> bool) -> Result<Option<Current>, sayso_server::Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the files are read: what is written meanwhile is noticed the next time.
        let stamps: Vec<Stamp> = self.files().iter().map(|file| Stamp::of(file)).collect();
        if read.as_ref() == Some(&stamps) {
            return Ok(None);
        }
        let current = current(&Config::load_while(&self.state, under_way).map_err(told)?)?;
        *read = Some(stamps);
        Ok(Some(current))
    }

    fn strictest(&self) -> Result<Current, sayso_server::Failure> {
        current(&Config::strictest(&self.state))
    }

    fn keep(&self, rule: &Rule) -> Result<String, sayso_server::Failure> {
        let path = user_file().ok_or_else(|| {
            told(Failure::bad_input("there is no configuration to keep a rule in").hint("set HOME or XDG_CONFIG_HOME"))
        })?;
        append_rule(&path, rule).map_err(told)?;
        // A person's verdict wrote it.
        confirm(&self.state).map_err(told)?;
        Ok(path.display().to_string())
    }
}

/// The configuration as an engine needs it.
fn current(config: &Config) -> Result<Current, sayso_server::Failure> {
    Ok(Current {
        rules: config.rules().map_err(told)?,
        snapshots: config.snapshots(),
        deadline: config.deadline.value,
        branch_prefix: config.branch_prefix.value.clone(),
        requests: config.requests.settings(|name| std::env::var(name).ok()),
    })
}

/// Says what is wrong with the configuration, for commands that go on without it, and what of it does not count yet.
pub(crate) fn tell_of_bad_configuration(state: &State) {
    tell_of_unconfirmed_rules(state);
    if let Some(problem) = configuration_problem(state) {
        say(&format!("note: {problem}. Everything is denied until it is corrected."));
    }
}

/// Says which rules do not count yet.
pub(crate) fn tell_of_unconfirmed_rules(state: &State) {
    for file in Config::load(state).map(|config| config.unconfirmed).unwrap_or_default() {
        say(&format!(
            "note: {file} became milder while something ran under the gate. The rules before that count until you confirm it: `sayso trust --rules`."
        ));
    }
}

/// What is wrong with the configuration, if something is.
pub(crate) fn configuration_problem(state: &State) -> Option<String> {
    let failure = Config::load(state).and_then(|config| config.rules().map(drop)).err()?;
    Some(told(failure).message)
}

/// A failure of this program as the server knows them.
fn told(failure: Failure) -> sayso_server::Failure {
    match failure {
        Failure::Told { kind, what, why, hint } => {
            let message = why.map_or_else(|| what.clone(), |why| format!("{what}: {why}"));
            sayso_server::Failure { kind, message, hint }
        }
        Failure::BrokenPipe => sayso_server::Failure::new(sayso_review::ErrorKind::Unavailable, "a pipe is closed"),
    }
}

/// Makes people look: rings where we own a terminal, and runs the user's own command.
#[derive(Debug)]
struct Ringing {
    notify: Option<Vec<String>>,
}

impl Announce for Ringing {
    fn announce(&self, announcement: &Announcement) {
        if let Ok(mut terminal) = std::fs::OpenOptions::new().write(true).open("/dev/tty") {
            // Nobody is left to tell if this fails.
            let _ = terminal.write_all(announcement.for_terminal().as_bytes());
        }
        let Some([program, arguments @ ..]) = self.notify.as_deref() else { return };
        let started = Command::new(program)
            .args(arguments)
            .arg(announcement.to_string())
            .env(MARK, "notify")
            .env_remove("SAYSO_AUTH_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            // Waited for, or what is left of it stays until the engine ends.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => say(&format!("note: the command `{program}` of [notify] could not be started: {error}")),
        }
    }
}

/// What an engine of a workspace is made of.
pub(crate) fn engine_options(state: &State) -> EngineOptions {
    let variable = |name: &str| std::env::var_os(name);
    let path = variable("PATH").unwrap_or_default();
    EngineOptions {
        root: state.root.clone(),
        journal: state.folder.clone(),
        home: state.home.clone(),
        settings: Box::new(Configured::new(state)),
        announce: Box::new(Ringing { notify: Config::load(state).ok().and_then(|config| config.notify.value) }),
        environment: Environment {
            path,
            home: variable("HOME"),
            config_home: variable("XDG_CONFIG_HOME"),
            // A repository's hooks are not the user's own words.
            mark: Some((MARK, "git")),
        },
        version: env!("CARGO_PKG_VERSION"),
    }
}
