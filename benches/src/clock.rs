//! CPU time, never wall time: the machine is shared, and waiting is not work.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

/// Time after which one comparison counts as hanging.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Time limit of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After [`TIME_LIMIT`]: it compares one pair.
    Hanging,
    /// After ten minutes: it has thousands of pairs to compare.
    Batch,
}

impl Limit {
    fn duration(self) -> Duration {
        match self {
            Self::Hanging => TIME_LIMIT,
            Self::Batch => Duration::from_mins(10),
        }
    }
}

/// CPU time that this process has used so far.
pub fn own_cpu() -> Duration {
    // The clock exists on every system that this crate compiles on, and reading it has no other way to fail.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// CPU time, user and system, of all children that have been waited for.
fn children_cpu() -> Duration {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(micros.unsigned_abs())
    })
}

/// The CPU time that `work` takes in this process.
pub fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = own_cpu();
    let result = work();
    (result, own_cpu().saturating_sub(start))
}

/// Cost of two successive readings of the clock: a system call, which is significant beside the diff of a small file.
pub fn cost() -> Duration {
    let mut costs: Vec<Duration> = (0..1001).map(|_| time(|| ()).1).collect();
    median(&mut costs)
}

/// Output and cost of a completed program.
pub struct Run {
    /// Its standard output.
    pub output: Vec<u8>,
    /// User and system time.
    pub cpu: Duration,
}

/// Runs a program to its end; `None` if it had to be killed at its limit.
///
/// Output goes through a pipe, since GNU diff does less when it sees `/dev/null`. No other child may run meanwhile.
pub fn run(command: &mut Command, limit: Limit) -> Result<Option<Run>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let before = children_cpu();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{name}`"))?;
    let pipe = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut output = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks gives a short output, which the count of changed lines shows.
            let _ = std::io::Read::read_to_end(&mut pipe, &mut output);
        }
        output
    });
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    let finished = loop {
        if child.try_wait()?.is_some() {
            break true;
        }
        if start.elapsed() > limit.duration() {
            child.kill()?;
            child.wait()?;
            break false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let output = reader.join().map_err(|_| anyhow::anyhow!("reading from `{name}` failed"))?;
    let cpu = children_cpu().saturating_sub(before);
    Ok(finished.then_some(Run { output, cpu }))
}

/// The middle value; sorts the values.
pub fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

/// The value that `percent` of the values do not exceed; sorts the values.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Milliseconds as a person reads them: three digits that count.
pub fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    let decimals = if milliseconds < 10.0 { 2 } else { usize::from(milliseconds < 100.0) };
    format!("{milliseconds:.decimals$}")
}

/// Microseconds with one decimal.
pub fn microseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// Returns `time` divided by `base`.
pub fn ratio(time: Duration, base: Duration) -> f64 {
    time.as_secs_f64() / base.as_secs_f64().max(1e-9)
}
