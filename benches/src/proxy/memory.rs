//! Memory of `sayso serve` while it forwards requests, and with a thousand paused requests.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::bodies::{Kind, Sessions, Size, Start};
use super::load::{Connection, new_session};
use super::process::{Log, Process};
use crate::table::{Check, Section, Target};

const WAITING: usize = 1_000;
const WAITING_BYTES: usize = 77_000;

/// Measures a server that is idle, and another with requests that wait.
pub fn section(runtime: &Runtime, program: &Path, upstream: &Process) -> Result<Section> {
    let note =
        "resident memory of `sayso serve`, everything recorded; each request that waits is on a connection of its own";
    let mut section = Section::new("Memory of the gateway", &["MB"], "MB").note(note);
    let served = Process::sayso(program, upstream.address, Log::All)?;
    let before = served.memory("VmRSS")?;
    let start = Start::new(Kind::Streaming, Size::Middle, Sessions::Named)?;
    runtime
        .block_on(async { Connection::open(&served).await?.send(&mut new_session(&start), Kind::Streaming).await })?;
    served.settled_cpu()?;
    let beyond = served.memory("VmRSS")? - before;
    section.row("idle, nothing passed", vec![format!("{before:.1}")], None);
    let check = Check::new(beyond, Target::AtMost(25.0));
    section.row("after one request of 100 kB, beyond that", vec![format!("{beyond:.1}")], Some(check));
    drop(served);

    let served = Process::sayso(program, upstream.address, Log::All)?;
    served.ask(&["request", "mode", "pause-every"])?;
    runtime.block_on(wait(&served))?;
    let now = served.memory("VmRSS")?;
    let check = Check::new(now, Target::AtMost(300.0));
    section.row("1,000 requests of 77 kB waiting", vec![format!("{now:.1}")], Some(check));
    let most = served.memory("VmHWM")?;
    section.row("at most until then", vec![format!("{most:.1}")], Some(Check::note(most)));
    Ok(section)
}

/// Sends requests of as many sessions, and returns while all of them wait. They go when the runtime drops them.
async fn wait(served: &Process) -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let start = Start::of(Kind::Streaming, Size::Middle, WAITING_BYTES)?;
    let mut tasks = JoinSet::new();
    for _ in 0..WAITING {
        let mut connection = Connection::open(served).await?;
        let mut session = new_session(&start);
        tasks.spawn(async move { connection.send(&mut session, Kind::Streaming).await });
    }
    let begin = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if let Some(ended) = tasks.try_join_next() {
            let outcome = ended?.err().map_or_else(|| "it was answered".to_owned(), |error| error.to_string());
            anyhow::bail!("a request did not wait: {outcome}");
        }
        let waiting = waiting(served)?;
        if waiting == WAITING {
            served.settled_cpu()?;
            tasks.detach_all();
            return Ok(());
        }
        ensure!(begin.elapsed() < Duration::from_mins(2), "only {waiting} of {WAITING} requests wait");
    }
}

fn waiting(served: &Process) -> Result<usize> {
    let limit = (WAITING * 2).to_string();
    let said = served.ask(&["request", "list", "--waiting", "--json", "--number", &limit])?;
    let said: serde_json::Value = serde_json::from_slice(&said)?;
    Ok(said["requests"].as_array().map_or(0, Vec::len))
}
