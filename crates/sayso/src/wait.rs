//! Waiting for somebody to decide in another terminal.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sayso_gate::{Announcement, ChangeRecord, ChangeStatus, GateError, History};
use sayso_journal::Reader;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::config::Config;
use crate::failure::Failure;
use crate::output::say;
use crate::state::{State, now};

/// How long until the journal is looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// Notices when whoever waits is told to stop. Made before anything is recorded, so that nothing is left behind.
pub(crate) struct Patience {
    interrupted: Arc<AtomicBool>,
}

impl Patience {
    pub(crate) fn new() -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Without it, the change waits until `sayso gc`.
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        }
        Self { interrupted }
    }
}

/// Says that something waits, and waits until it is decided. Whoever is interrupted withdraws it.
pub(crate) fn for_verdict(
    state: &State,
    config: &Config,
    patience: &Patience,
    change: u64,
) -> Result<ChangeRecord, Failure> {
    let reader = Reader::open(&state.folder).map_err(GateError::from)?;
    let history = History::new(&reader);
    announce(config, Announcement { pending: history.status()?.pending.try_into().unwrap_or(usize::MAX), change });
    say(&format!("Change {change} waits for a decision: run `sayso review` in another terminal."));
    loop {
        let record = history.change(change)?;
        if record.status != ChangeStatus::Pending {
            return Ok(record);
        }
        if patience.interrupted.load(Ordering::Relaxed) {
            state.engine()?.cancel(change, now())?;
            continue;
        }
        if record.deadline.is_some_and(|deadline| deadline <= now()) {
            state.engine()?.tick(now())?;
            continue;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Rings where we own a terminal, and runs the user's own command.
pub(crate) fn announce(config: &Config, announcement: Announcement) {
    if let Ok(mut terminal) = std::fs::OpenOptions::new().write(true).open("/dev/tty") {
        // Nobody is left to tell if this fails.
        let _ = terminal.write_all(announcement.for_terminal().as_bytes());
    }
    let Some([program, arguments @ ..]) = config.notify.value.as_deref() else { return };
    let started = Command::new(program)
        .args(arguments)
        .arg(announcement.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        say(&format!("note: the command `{program}` of [notify] could not be started: {error}"));
    }
}
