//! Cost of many pending decisions, and of delivering one event to many subscribers.

use std::fs;
use std::future::Future;
use std::pin::{Pin, pin};
use std::process::Command as Program;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use sayso_gate::{Engine, Gate, NoNotify, Rules, Submission, SubmitResult};
use sayso_journal::{Journal, Options};
use sayso_review::{Defaults, Intent, Layer, LayerTrust, Origin, Proposal};
use sayso_workspace::Workspace;
use serde::{Deserialize, Serialize};

use crate::changes::work_directory;
use crate::clock::{self, median, microseconds, milliseconds, ratio};
use crate::table::{Check, Section, Target, thousands};

const FEW_CHANGES: u64 = 1_000;
const MANY_CHANGES: u64 = 10_000;
/// Submissions that are timed together, at the start and at the end.
const BLOCK: u64 = 250;
const SUBSCRIBERS: usize = 1_000;

/// An engine in a fresh workspace.
fn open(name: &str) -> Result<Gate> {
    let folder = work_directory().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("tree"))?;
    reopen(name)
}

fn reopen(name: &str) -> Result<Gate> {
    let folder = work_directory().join(name);
    let journal = Journal::open(&folder.join("journal"), Options { wait: Duration::ZERO })?;
    let (engine, _) = Engine::open(Workspace::open(&folder.join("tree"))?, journal, 1)?;
    let (trust, defaults) = (LayerTrust::Trusted, Defaults::default());
    let layer = Layer { file: "config.toml".to_owned(), trust, defaults, rules: Vec::new() };
    Ok(Gate::new(engine, Rules::new(vec![layer], Vec::new())?, Box::new(NoNotify), 1)?)
}

fn submit(gate: &Gate, number: u64) -> Result<()> {
    let content = format!("{number}: {}\n", "some text of a small file ".repeat(8));
    let path = format!("folder{:02}/file{number}.txt", number % 20);
    let change = serde_json::json!({ "operation": "write", "path": path, "content": content });
    let intent = Intent::ChangeFiles(Proposal::parse(change.to_string().as_bytes())?);
    let origin = Origin { session: Some(format!("session {}", number % 10)), ..Origin::default() };
    let deadline = Some(1_000_000 + number.cast_signed());
    let submission = Submission { deadline, ..Submission::new(intent, origin) };
    match gate.submit(submission, 1)? {
        SubmitResult::Pending(_) => Ok(()),
        other => bail!("the change is not pending: {other:?}"),
    }
}

/// Cost of a number of pending decisions in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PendingCost {
    /// Memory beyond an engine without pending changes.
    resident_bytes: u64,
    first: Duration,
    last: Duration,
    tick: Duration,
    decide: Duration,
    start: Duration,
}

/// Selects one of the times.
type Figure = fn(&PendingCost) -> Duration;

/// Returns the private memory of this process in bytes.
fn resident() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).context("no size in /proc")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

/// Hidden subcommand: submits `count` changes and prints their cost as JSON.
pub fn once(count: &str) -> Result<()> {
    let count: u64 = count.parse()?;
    let name = format!("gate-{count}");
    let gate = open(&name)?;
    // The first submissions initialize caches, which are not part of the cost.
    for number in 0..10 {
        submit(&gate, number)?;
    }
    let before = resident()?;
    let block = |from: u64| -> Result<Duration> {
        let (result, time) = clock::time(|| (from..from + BLOCK).try_for_each(|number| submit(&gate, number)));
        result?;
        Ok(time / BLOCK as u32)
    };
    let first = block(10)?;
    (10 + BLOCK..count - BLOCK).try_for_each(|number| submit(&gate, number))?;
    let last = block(count - BLOCK)?;
    let resident_bytes = resident()?.saturating_sub(before);
    let (ticked, tick) = clock::time(|| gate.tick(2));
    ensure!(ticked?.refreshed.is_empty(), "a change was refreshed without a change of its file");
    let middle = count / 2;
    let verdict = gate.pending_change(middle)?.approval();
    let (decided, decide) = clock::time(|| gate.decide(middle, &verdict, None, 3));
    decided?;
    drop(gate);
    let (waiting, start) = clock::time(|| -> Result<usize> { Ok(reopen(&name)?.pending_changes()?.len()) });
    ensure!(waiting? as u64 == count - 1, "a pending change is missing");
    let found = PendingCost { resident_bytes, first, last, tick, decide, start };
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

fn waiting(count: u64) -> Result<PendingCost> {
    let output = Program::new(std::env::current_exe()?).args(["gate", &count.to_string()]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures pending decisions and subscribers.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    Ok(vec![decisions(rounds)?, delivery(rounds)?])
}

fn decisions(rounds: usize) -> Result<Section> {
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        few.push(waiting(FEW_CHANGES)?);
        many.push(waiting(MANY_CHANGES)?);
    }
    let middle = |found: &[PendingCost], of: Figure| median(&mut found.iter().map(of).collect::<Vec<_>>());
    let bytes = |found: &[PendingCost]| {
        let mut all: Vec<u64> = found.iter().map(|one| one.resident_bytes).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let columns = ["1,000 pending", "10,000 pending"];
    let mut section = Section::new("Pending decisions", &columns, "ten times as many").note(format!(
        "small new files, each with a deadline, nothing attached; each count in a process of its own, median of {rounds}. The last \
         figure of a row is that of 10,000 divided by that of 1,000"
    ));
    let (small, large) = (bytes(&few), bytes(&many));
    let cells = vec![thousands((small / FEW_CHANGES) as usize), thousands((large / MANY_CHANGES) as usize)];
    let each = (large as f64 / MANY_CHANGES as f64) / (small as f64 / FEW_CHANGES as f64);
    section.row("memory, bytes each", cells, Some(Check::new(each, Target::AtMost(1.0))));
    let rows: [(&str, Figure, Option<f64>); 5] = [
        ("submitting one of the first, CPU µs", |one| one.first, None),
        ("submitting one of the last, CPU µs", |one| one.last, Some(1.5)),
        ("deciding one, CPU µs", |one| one.decide, None),
        ("tick while nothing changed, CPU µs", |one| one.tick, Some(12.0)),
        ("start and list, CPU µs", |one| one.start, Some(12.0)),
    ];
    for (name, of, most) in rows {
        let (small, large) = (middle(&few, of), middle(&many, of));
        let measured = ratio(large, small);
        let check = most.map_or(Check::note(measured), |most| Check::new(measured, Target::AtMost(most)));
        section.row(name, vec![microseconds(small), microseconds(large)], Some(check));
    }
    Ok(section)
}

/// Numbers of the tasks that were woken.
type Woken = Arc<Mutex<Vec<usize>>>;

struct Task {
    number: usize,
    woken: Woken,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

/// A minimal executor: a task is polled when it is woken.
struct Tasks<F> {
    tasks: Vec<(Pin<Box<F>>, Waker)>,
    woken: Woken,
}

impl<F: Future<Output = u64>> Tasks<F> {
    fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let woken = Woken::default();
        let task = |(number, future)| {
            let waker = Waker::from(Arc::new(Task { number, woken: Arc::clone(&woken) }));
            (Box::pin(future), waker)
        };
        Self { tasks: futures.into_iter().enumerate().map(task).collect(), woken: Arc::clone(&woken) }
    }

    /// Polls all tasks once. Fails if one is ready.
    fn wait(&mut self) -> Result<()> {
        for (task, waker) in &mut self.tasks {
            let ready = task.as_mut().poll(&mut Context::from_waker(waker)).is_ready();
            ensure!(!ready, "an event came too early");
        }
        Ok(())
    }

    /// Polls the woken tasks until none is left, and returns the number of completed tasks.
    fn deliver(&mut self) -> usize {
        let mut done = 0;
        loop {
            let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
            if woken.is_empty() {
                return done;
            }
            for number in woken {
                let (task, waker) = &mut self.tasks[number];
                if let Poll::Ready(event) = pin!(task).as_mut().poll(&mut Context::from_waker(waker)) {
                    done += usize::from(event > 0);
                }
            }
        }
    }
}

fn delivery(rounds: usize) -> Result<Section> {
    let gate = open("gate-subscribers")?;
    let publish = || -> Result<()> { Ok(gate.start_turn("s", "1", 1)?) };
    let (sender, _) = tokio::sync::broadcast::channel::<Arc<u64>>(1_024);
    let (mut alone, mut ours, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds * 10 {
        let (published, time) = clock::time(publish);
        published?;
        alone.push(time);

        let after = round as u64 * 2 + 1;
        let follow = |_| {
            let mut subscription = gate.subscribe(after);
            async move { subscription.next().await.ok().flatten().map_or(0, |event| event.number) }
        };
        let mut tasks = Tasks::new((0..SUBSCRIBERS).map(follow));
        tasks.wait()?;
        let (done, time) = clock::time(|| -> Result<usize> {
            publish()?;
            Ok(tasks.deliver())
        });
        ensure!(done? == SUBSCRIBERS, "a subscriber did not get the event");
        ours.push(time);

        let follow = |_| {
            let mut receiver = sender.subscribe();
            async move { receiver.recv().await.map_or(0, |event| *event) }
        };
        let mut tasks = Tasks::new((0..SUBSCRIBERS).map(follow));
        tasks.wait()?;
        let (done, time) = clock::time(|| {
            let _ = sender.send(Arc::new(1));
            tasks.deliver()
        });
        ensure!(done == SUBSCRIBERS, "a receiver of tokio's channel did not get the event");
        plain.push(time);
    }
    let [alone, ours, plain] = [alone, ours, plain].map(|mut times| median(&mut times));
    let title = format!("One event to {} subscribers", thousands(SUBSCRIBERS));
    let mut section = Section::new(title, &["CPU ms", "µs a subscriber"], "figure").note(format!(
        "tasks that wait, woken and polled until all have it; recording it is part of ours. Median of {}",
        rounds * 10 + 1
    ));
    let cells = |time: Duration| vec![milliseconds(time), microseconds(time / SUBSCRIBERS as u32)];
    let most = Check::new(ours.as_secs_f64() * 1e3, Target::AtMost(50.0));
    section.row("ours, recorded and delivered, ms", cells(ours), Some(most));
    section.row("recorded only", cells(alone), None);
    section.row("tokio's broadcast channel", cells(plain), None);
    let net = ours.saturating_sub(alone);
    section.row(
        "ours less recording, to tokio's",
        cells(net),
        Some(Check::new(ratio(net, plain), Target::AtMost(5.0))),
    );
    Ok(section)
}
