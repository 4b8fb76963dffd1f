//! A change that waits: what it shows, and waiting for somebody to decide in another terminal.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_api::client::{Progress, Shown, View};
use sayso_gate::{DEADLINE, GateError};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, Comment, Decider, Preview, Verdict};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tokio::io::AsyncReadExt as _;

use crate::engine::{Connected, Finding, runtime};
use crate::failure::Failure;
use crate::output::say;
use crate::terminal;

/// What ends a process that waits.
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// How long what was decided takes at most to happen, unless something is wrong.
const SETTLES: Duration = Duration::from_secs(10);

/// A change that waits, with all that it shows.
pub(crate) struct Pending {
    pub(crate) record: ChangeRecord,
    pub(crate) preview: Preview,
}

impl Pending {
    /// Asks for a change, which may be decided by now.
    pub(crate) fn get(connected: &Connected, change: u64) -> Result<Self, Failure> {
        let progress = connected.block(connected.client().get_change(change, View::Content, Shown::Proposed))?;
        Self::of(progress)
    }

    pub(crate) fn of(progress: Progress) -> Result<Self, Failure> {
        let Progress { record, preview, .. } = progress;
        let preview = preview.ok_or(GateError::ContentGone(record.change))?;
        Ok(Self { record, preview })
    }

    pub(crate) fn waits(&self) -> bool {
        self.record.status == ChangeStatus::Pending
    }

    pub(crate) fn change(&self) -> u64 {
        self.record.change
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.record.origin.session.as_deref()
    }

    /// A person's verdict on what it shows.
    pub(crate) fn verdict(&self, answer: Answer, comments: Vec<Comment>) -> Verdict {
        Verdict { preview: self.record.preview, answer, comments, by: Decider::Person }
    }
}

/// Withdraws a change that nobody decides; that it is decided by now is no failure.
pub(crate) fn withdraw(connected: &Connected, change: u64) {
    let _ = connected.wait(connected.client().withdraw(change));
}

/// What became of a change that no longer waits, once that is known, and why it no longer does, for whoever was asked about it.
pub(crate) fn overtaken(connected: &Connected, change: u64) -> Result<ChangeRecord, Failure> {
    let record = settled(connected, change)?;
    say(match &record.status {
        ChangeStatus::Cancelled => "It was withdrawn; nobody waits for it any more.",
        _ => match record.verdict.as_ref().map(|verdict| &verdict.by) {
            Some(Decider::Policy { rule }) if rule == DEADLINE => "Nobody decided in time.",
            Some(Decider::Policy { .. }) => "A rule decided.",
            _ => "Somebody else decided first.",
        },
    });
    Ok(record)
}

/// How a change stands that was decided: what is on its way to the tree is waited for.
pub(crate) fn settled(connected: &Connected, change: u64) -> Result<ChangeRecord, Failure> {
    let client = connected.client();
    let settled = async { tokio::time::timeout(SETTLES, client.await_outcome(change, View::Nothing)).await };
    match connected.wait(settled) {
        Ok(progress) => Ok(progress?.record),
        // The next start settles it, and nobody waits for that.
        Err(_) => Ok(connected.block(client.get_change(change, View::Nothing, Shown::Proposed))?.record),
    }
}

/// Notices when whoever waits is told to stop. Made before anything is recorded, so that nothing is left behind.
pub(crate) struct Patience {
    told: UnixStream,
}

impl Patience {
    pub(crate) fn new() -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::bad_input("signals cannot be waited for").why(&error);
        let (told, tell) = UnixStream::pair().map_err(failed)?;
        told.set_nonblocking(true).map_err(failed)?;
        for signal in ENDS {
            signal_hook::low_level::pipe::register(signal, tell.try_clone().map_err(failed)?).map_err(failed)?;
        }
        Ok(Self { told })
    }

    /// Listens, within a runtime.
    pub(crate) fn listen(self) -> Result<Told, Failure> {
        tokio::net::UnixStream::from_std(self.told)
            .map(Told)
            .map_err(|error| Failure::bad_input("signals cannot be waited for").why(&error))
    }

    /// Waits until a change is decided elsewhere. Whoever is interrupted withdraws it.
    pub(crate) fn for_verdict(self, connected: &Connected, change: u64) -> Result<ChangeRecord, Failure> {
        say(&format!("Change {change} waits for a decision: run `sayso review` in another terminal."));
        let client = connected.client();
        let outcome = connected.wait(async {
            let mut told = self.listen()?;
            tokio::select! {
                outcome = client.await_outcome(change, View::Nothing) => Ok(Some(outcome?)),
                () = told.end() => Ok::<_, Failure>(None),
            }
        })?;
        if let Some(progress) = outcome {
            return Ok(progress.record);
        }
        withdraw(connected, change);
        Ok(connected.block(client.get_change(change, View::Nothing, Shown::Proposed))?.record)
    }
}

/// Somebody who listens for the end.
pub(crate) struct Told(tokio::net::UnixStream);

impl Told {
    /// Waits until this process is told to stop.
    pub(crate) async fn end(&mut self) {
        // If it fails, nobody is left to tell.
        let _ = self.0.read_u8().await;
    }
}

/// Withdraws what is asked about, should this process be told to stop while a person thinks.
pub(crate) struct Withdrawing {
    change: Arc<AtomicU64>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Withdrawing {
    pub(crate) fn new(connected: &Connected) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::bad_input("signals cannot be waited for").why(&error);
        let change = Arc::new(AtomicU64::new(0));
        let mut signals = Signals::new(ENDS).map_err(failed)?;
        let handle = signals.handle();
        let (asked, finding) = (Arc::clone(&change), connected.finding());
        let thread = std::thread::spawn(move || {
            for signal in &mut signals {
                if signal == SIGINT && terminal::is_lent() {
                    continue;
                }
                end(&finding, asked.swap(0, Ordering::AcqRel), signal);
            }
        });
        Ok(Self { change, handle, thread: Some(thread) })
    }

    /// Says what is asked about now; 0 for nothing.
    pub(crate) fn asks_about(&self, change: u64) {
        self.change.store(change, Ordering::Release);
    }
}

impl Drop for Withdrawing {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// Withdraws a change and ends this process.
fn end(finding: &Arc<Finding>, change: u64, signal: i32) {
    if let (1.., Ok(runtime)) = (change, runtime()) {
        // Should it fail, the next engine notices that we are gone.
        let _ = runtime.block_on(finding.client().withdraw(change));
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
