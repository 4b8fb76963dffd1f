//! Tests of the engine in real temporary directories.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic to fail and look at what was written"
)]

mod actions;
mod agent_log;
mod captures;
mod check;
mod concurrent_clients;
mod flow;
mod journal_format;
mod model;
mod model_both;
mod model_files;
mod model_reference;
mod model_steps;
mod model_threads;
mod pending;
mod recent_cache;
mod regressions;
mod requests;
mod scenarios;
mod state_machine;
mod steps;
mod tree;
mod turn_review;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_gate::{AskMode, DecisionResult, Engine, GateError, PendingChange, Rules, Submission, SubmitResult};
use sayso_journal::{Journal, Options};
use sayso_review::{Answer, Defaults, Intent, Layer, LayerTrust, Origin, Proposal, Rule, Ruling, WsPath};
use sayso_workspace::Workspace;
use tempfile::TempDir;

/// A workspace with a journal of its own.
pub(crate) struct Scene {
    root: TempDir,
    pub(crate) state: TempDir,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let scene = Self { root: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        for (path, content) in files {
            scene.write(path, content);
        }
        scene
    }

    /// A scene in memory, for tests with many steps.
    pub(crate) fn in_memory() -> Self {
        let directory = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self { root: directory(), state: directory() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(path)).ok()
    }

    /// Deletes the counters, as a damaged page can.
    pub(crate) fn forget_counters(&self) {
        let journal = rusqlite::Connection::open(self.state.path().join("journal/journal.db")).unwrap();
        assert!(journal.execute("DELETE FROM counters", []).unwrap() > 0);
    }

    /// Deletes the last event, as if the disk had been full.
    pub(crate) fn forget_end(&self) {
        let journal = rusqlite::Connection::open(self.state.path().join("journal/journal.db")).unwrap();
        let last: i64 = journal.query_row("SELECT max(number) FROM events", [], |row| row.get(0)).unwrap();
        journal.execute("DELETE FROM event_keys WHERE event = ?1", [last]).unwrap();
        journal.execute("DELETE FROM events WHERE number = ?1", [last]).unwrap();
        let counters = "UPDATE counters SET value = value - 1 WHERE name IN ('ended', 'plans ended')";
        assert_eq!(journal.execute(counters, []).unwrap(), 2);
    }

    /// Makes the journal reject events after `more` further ones, like a full disk.
    pub(crate) fn refuse_events_after(&self, more: i64) {
        let journal = rusqlite::Connection::open(self.state.path().join("journal/journal.db")).unwrap();
        let last: i64 = journal.query_row("SELECT max(number) FROM events", [], |row| row.get(0)).unwrap();
        let refuse = format!(
            "CREATE TRIGGER full BEFORE INSERT ON events WHEN NEW.number > {} BEGIN SELECT RAISE(ABORT, 'full'); END",
            last + more
        );
        journal.execute_batch(&refuse).unwrap();
    }

    pub(crate) fn refuse_no_events(&self) {
        let journal = rusqlite::Connection::open(self.state.path().join("journal/journal.db")).unwrap();
        journal.execute_batch("DROP TRIGGER full").unwrap();
    }

    pub(crate) fn engine(&self) -> Engine {
        let workspace = Workspace::open(self.root.path()).unwrap();
        let journal = Journal::open(&self.state.path().join("journal"), Options { wait: Duration::ZERO }).unwrap();
        Engine::open(workspace, journal, 1).unwrap().0
    }
}

pub(crate) fn propose(engine: &mut Engine, text: &str) -> PendingChange {
    propose_as(engine, Proposal::parse(text.as_bytes()).unwrap(), Origin::default(), 2)
}

/// Submits changes for a verdict, without a rule that decides.
pub(crate) fn propose_as(engine: &mut Engine, proposal: Proposal, origin: Origin, now: i64) -> PendingChange {
    waiting(submit_for_verdict(engine, proposal, origin, now).unwrap())
}

pub(crate) fn submit_for_verdict(
    engine: &mut Engine,
    proposal: Proposal,
    origin: Origin,
    now: i64,
) -> Result<SubmitResult, GateError> {
    let submission = Submission { ask_mode: AskMode::Always, ..Submission::new(Intent::ChangeFiles(proposal), origin) };
    engine.submit(submission, &mut rules(Vec::new()), now)
}

pub(crate) fn decide(engine: &mut Engine, proposed: &PendingChange, answer: Answer) -> DecisionResult {
    engine.decide(proposed, &proposed.verdict(answer), 3).unwrap()
}

pub(crate) fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

/// Creates a submission of file changes.
pub(crate) fn change(text: &str, session: &str, turn: &str) -> Submission {
    let origin = Origin {
        agent: Some("scripted".to_owned()),
        session: Some(session.to_owned()),
        turn: Some(turn.to_owned()),
        call: None,
    };
    submission(Intent::ChangeFiles(Proposal::parse(text.as_bytes()).unwrap()), origin)
}

pub(crate) fn submission(intent: Intent, origin: Origin) -> Submission {
    Submission::new(intent, origin)
}

/// Compiles user rules without configured defaults.
pub(crate) fn rules(rules: Vec<Rule>) -> Rules {
    let defaults = Defaults::default();
    let layer = Layer { file: "config.toml".to_owned(), trust: LayerTrust::Trusted, defaults, rules };
    Rules::new(vec![layer], Vec::new()).unwrap()
}

/// Creates a rule about writing.
pub(crate) fn writing(pattern: &str, then: Ruling) -> Rule {
    let mut rule = Rule::new(then);
    rule.name = Some(format!("{pattern} {then}"));
    rule.write = vec![pattern.to_owned()];
    rule
}

pub(crate) fn waiting(submitted: SubmitResult) -> PendingChange {
    match submitted {
        SubmitResult::Pending(proposed) => *proposed,
        other => panic!("does not wait: {other:?}"),
    }
}

pub(crate) fn decided(submitted: SubmitResult) -> (PendingChange, DecisionResult) {
    match submitted {
        SubmitResult::Decided { proposed, decided } => (*proposed, decided),
        other => panic!("policy did not decide: {other:?}"),
    }
}
