//! Signals that end a process which waits for a decision.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use sayso_api::client::{PreviewDetail, PreviewOf};
use sayso_review::ChangeRecord;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tokio::io::AsyncReadExt as _;

use crate::engine::{EngineConnection, EngineLocator, runtime};
use crate::error::CliError;
use crate::output::say;
use crate::pending::withdraw;
use crate::terminal;

/// Signals that end a process.
pub(crate) const TERMINATION_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Creates the error about signal handlers.
pub(crate) fn handler_error(error: &io::Error) -> CliError {
    CliError::io("cannot install signal handlers", error)
}

/// Catches termination signals from its creation on. Created before a change is recorded, so that no signal leaves one pending.
pub(crate) struct TerminationSignals {
    /// Readable after a signal.
    receiver: UnixStream,
}

impl TerminationSignals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let (receiver, sender) = UnixStream::pair().map_err(|error| handler_error(&error))?;
        receiver.set_nonblocking(true).map_err(|error| handler_error(&error))?;
        for signal in TERMINATION_SIGNALS {
            let sender = sender.try_clone().map_err(|error| handler_error(&error))?;
            signal_hook::low_level::pipe::register(signal, sender).map_err(|error| handler_error(&error))?;
        }
        Ok(Self { receiver })
    }

    /// Starts to listen. Call it within a runtime.
    pub(crate) fn listen(self) -> Result<SignalListener, CliError> {
        tokio::net::UnixStream::from_std(self.receiver).map(SignalListener).map_err(|error| handler_error(&error))
    }

    /// Waits for a verdict from elsewhere. A signal withdraws the change.
    pub(crate) fn wait_for_verdict(self, engine: &EngineConnection, change: u64) -> Result<ChangeRecord, CliError> {
        say(&format!("Change {change} waits for a decision: run `sayso review` in another terminal."));
        let client = engine.client();
        let outcome = engine.wait(async {
            let mut signals = self.listen()?;
            tokio::select! {
                outcome = client.await_outcome(change, PreviewDetail::Omitted) => Ok(Some(outcome?)),
                () = signals.received() => Ok::<_, CliError>(None),
            }
        })?;
        if let Some(details) = outcome {
            return Ok(details.record);
        }
        withdraw(engine, change);
        Ok(engine.block(client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed))?.record)
    }
}

/// Waits for a termination signal.
pub(crate) struct SignalListener(tokio::net::UnixStream);

impl SignalListener {
    pub(crate) async fn received(&mut self) {
        // An error ends the wait as well.
        let _ = self.0.read_u8().await;
    }
}

/// Withdraws the change that a person is asked about if a signal ends this process.
pub(crate) struct WithdrawOnSignal {
    /// 0 for none.
    change: Arc<AtomicU64>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl WithdrawOnSignal {
    pub(crate) fn new(engine: &EngineConnection) -> Result<Self, CliError> {
        let change = Arc::new(AtomicU64::new(0));
        let mut signals = Signals::new(TERMINATION_SIGNALS).map_err(|error| handler_error(&error))?;
        let handle = signals.handle();
        let (watched, locator) = (Arc::clone(&change), engine.locator());
        let thread = std::thread::spawn(move || {
            for signal in &mut signals {
                // Ctrl-C in an editor is for the editor.
                if signal == SIGINT && terminal::is_lent() {
                    continue;
                }
                withdraw_and_exit(&locator, watched.swap(0, Ordering::AcqRel), signal);
            }
        });
        Ok(Self { change, handle, thread: Some(thread) })
    }

    /// Sets the change to withdraw; 0 for none.
    pub(crate) fn watch(&self, change: u64) {
        self.change.store(change, Ordering::Release);
    }
}

impl Drop for WithdrawOnSignal {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn withdraw_and_exit(locator: &Arc<EngineLocator>, change: u64, signal: i32) {
    if let (1.., Ok(runtime)) = (change, runtime()) {
        // On failure, the next engine cancels the change as orphaned.
        let _ = runtime.block_on(locator.client().withdraw(change));
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
