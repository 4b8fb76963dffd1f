//! Requests through the gateway: what it costs beside a bare reverse proxy, and what it adds beside other gateways.

mod bodies;
mod load;
mod memory;
mod process;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;

use crate::clock::{median, microseconds, percentile, ratio};
use crate::corpus::Extent;
use crate::startup::{build, sayso};
use crate::table::{Check, Section, Target};
use bodies::{Kind, Sessions, Size, Start};
use process::{Answers, Log, Process};

const CONNECTIONS: [usize; 2] = [1, 64];

/// Program between client and upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    /// The upstream itself, without a gateway.
    Direct,
    /// A bare hyper reverse proxy.
    Bare,
    /// sayso that records only what waits.
    JournalOff,
    /// sayso that records everything, as it does by itself.
    JournalOn,
    Mitmproxy,
    Litellm,
}

impl Gateway {
    const ALL: [Self; 6] =
        [Self::Direct, Self::Bare, Self::JournalOff, Self::JournalOn, Self::Mitmproxy, Self::Litellm];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Bare => "bare hyper",
            Self::JournalOff => "sayso, journal off",
            Self::JournalOn => "sayso, journal on",
            Self::Mitmproxy => "mitmproxy",
            Self::Litellm => "LiteLLM",
        }
    }

    fn is_peer(self) -> bool {
        matches!(self, Self::Mitmproxy | Self::Litellm)
    }

    /// Starts it; `None` where a peer is not installed.
    fn start(self, kind: Kind, rig: &Rig) -> Result<Option<Process>> {
        let (program, to) = (&rig.program, rig.upstream.address);
        Ok(match self {
            // Another one, so that its CPU time is its own.
            Self::Direct => Some(Process::own(&build("upstream")?, &[])?),
            Self::Bare => Some(Process::own(&build("reverse")?, &[to.to_string()])?),
            Self::JournalOff => Some(Process::sayso(program, to, Log::Paused)?),
            Self::JournalOn => Some(Process::sayso(program, to, Log::All)?),
            Self::Mitmproxy => {
                let answers = if kind == Kind::Plain { Answers::Whole } else { Answers::AsTheyCome };
                rig.peer("mitmproxy").map(|python| Process::mitmproxy(&python, to, answers)).transpose()?
            }
            Self::Litellm => rig.peer("litellm").map(|python| Process::litellm(&python, to)).transpose()?,
        })
    }

    /// Checks that requests are recorded if and only if the journal is on.
    fn check(self, process: &Process) -> Result<()> {
        match self {
            Self::JournalOn => ensure!(recorded(process)? == 1, "the journal has no request"),
            Self::JournalOff => ensure!(recorded(process)? == 0, "the journal has a request that did not wait"),
            _ => {}
        }
        Ok(())
    }
}

/// Returns 1 if a request is recorded, else 0.
fn recorded(process: &Process) -> Result<usize> {
    process.settled_cpu()?;
    let said = process.ask(&["request", "list", "--json", "--number", "1"])?;
    let said: serde_json::Value = serde_json::from_slice(&said)?;
    Ok(said["requests"].as_array().map_or(0, Vec::len))
}

/// Kind of traffic through the gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traffic {
    kind: Kind,
    sessions: Sessions,
}

impl Traffic {
    const ALL: [Self; 4] = [
        Self { kind: Kind::Plain, sessions: Sessions::Named },
        Self { kind: Kind::Streaming, sessions: Sessions::Named },
        Self { kind: Kind::Plain, sessions: Sessions::Unmarked },
        Self { kind: Kind::Plain, sessions: Sessions::UnmarkedDifferent },
    ];

    fn name(self) -> String {
        let kind = if self.kind == Kind::Plain { "plain" } else { "streaming" };
        format!("{kind}, {}", self.sessions.name())
    }

    /// Peers do not know sessions: one table with them is enough. mitmproxy is beside each, for the latency.
    fn gateways(self) -> impl Iterator<Item = Gateway> {
        let all = self.sessions == Sessions::Named;
        Gateway::ALL.into_iter().filter(move |gateway| all || *gateway != Gateway::Litellm)
    }
}

/// Common set-up of all gateways.
struct Rig {
    runtime: Runtime,
    program: PathBuf,
    upstream: Process,
    /// Directory with the installed peers.
    peers: Option<PathBuf>,
    extent: Extent,
    rounds: usize,
}

impl Rig {
    /// The interpreter of a peer's virtual environment.
    fn peer(&self, name: &str) -> Option<PathBuf> {
        self.peers.as_ref().map(|folder| folder.join(name).join("bin/python")).filter(|python| python.exists())
    }
}

/// Returns the directory with the peers and installs them if possible. Called once, because a failing attempt without a network
/// takes long.
fn peers() -> Option<PathBuf> {
    if std::env::var_os("SAYSO_BENCH_PEERS").is_some_and(|place| place == "none") {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/setup");
    let output = Command::new(script).arg("--peers").stderr(Stdio::inherit()).output().ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    folder.is_absolute().then_some(folder)
}

/// Result of one gateway for one request size and number of connections.
struct Measured {
    gateway: Gateway,
    size: Size,
    connections: usize,
    /// CPU time of its process for each request, a figure a round.
    cpu: Vec<Duration>,
    latencies: Vec<Duration>,
}

/// Requests of a round: fewer of what takes longer.
fn count(gateway: Gateway, kind: Kind, size: Size, connections: usize, extent: Extent) -> usize {
    let plain = match size {
        Size::Small => 800,
        Size::Middle => 400,
        Size::Large => 80,
    };
    // A stream takes some 50 ms.
    let alone = if kind == Kind::Plain { plain } else { 24 };
    let count = if connections == 1 { alone } else { alone.max(connections * 4) };
    let count = if gateway.is_peer() { count / 4 } else { count };
    (if extent == Extent::Quick { count / 8 } else { count }).max(connections).max(4)
}

/// Measures the release build beside its peers.
pub fn sections(extent: Extent, rounds: usize) -> Result<Vec<Section>> {
    let Some(program) = sayso() else {
        let note = "not built: `cargo build --release` in the repository, or set SAYSO_BIN";
        return Ok(vec![Section::new("The gateway", &[], "").note(note)]);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let upstream = Process::own(&build("upstream")?, &[])?;
    let rig = Rig { runtime, program, upstream, peers: peers(), extent, rounds };
    let mut sections = Vec::new();
    for traffic in Traffic::ALL {
        let measured = measure(&rig, traffic)?;
        sections.push(cpu_section(traffic, &measured, rounds));
        sections.push(latency_section(traffic, &measured));
    }
    Ok(sections)
}

/// Measures what the release build holds in memory.
pub fn memory() -> Result<Option<Section>> {
    let Some(program) = sayso() else { return Ok(None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    memory::section(&runtime, &program, &Process::own(&build("upstream")?, &[])?).map(Some)
}

fn measure(rig: &Rig, traffic: Traffic) -> Result<Vec<Measured>> {
    let (runtime, Traffic { kind, sessions }) = (&rig.runtime, traffic);
    let small = Start::new(kind, Size::Small, sessions)?;
    let mut running = Vec::new();
    for gateway in traffic.gateways() {
        if let Some(mut process) = gateway.start(kind, rig)? {
            let ready = runtime.block_on(load::until_ready(&mut process, &small, kind));
            match ready.and_then(|()| gateway.check(&process)) {
                Ok(()) => running.push((gateway, process)),
                // Others' troubles are not ours.
                Err(error) if gateway.is_peer() => eprintln!("note: without {}: {error:#}", gateway.name()),
                Err(error) => return Err(error.context(gateway.name())),
            }
        }
    }
    let mut measured = Vec::new();
    for size in Size::ALL {
        let start = Start::new(kind, size, sessions)?;
        for connections in CONNECTIONS {
            let new = |gateway| Measured { gateway, size, connections, cpu: Vec::new(), latencies: Vec::new() };
            let mut here: Vec<Measured> = running.iter().map(|(gateway, _)| new(*gateway)).collect();
            // Of one connection each round has its own, and some are slower than others for as long as they live.
            let rounds = if connections == 1 { 2 * rig.rounds } else { rig.rounds };
            for round in 0..=rounds {
                for ((gateway, process), measured) in running.iter().zip(&mut here) {
                    let count = count(*gateway, kind, size, connections, rig.extent);
                    let before = process.settled_cpu()?;
                    let times = runtime
                        .block_on(load::send_many(process, &start, kind, connections, count))
                        .with_context(|| format!("{} with {}", gateway.name(), size.name()))?;
                    let cpu = process.settled_cpu()?.saturating_sub(before) / u32::try_from(times.len())?;
                    // The first round is for warming up.
                    if round > 0 {
                        measured.cpu.push(cpu);
                        measured.latencies.extend(times);
                    }
                }
            }
            measured.extend(here);
        }
    }
    Ok(measured)
}

/// Returns the result of another gateway for the same size and connections as `of`.
fn beside<'a>(all: &'a [Measured], of: &Measured, gateway: Gateway) -> Option<&'a Measured> {
    all.iter().find(|other| other.gateway == gateway && other.size == of.size && other.connections == of.connections)
}

fn row_name(measured: &Measured) -> String {
    format!("{} × {}, {}", measured.size.name(), measured.connections, measured.gateway.name())
}

fn cpu_section(traffic: Traffic, all: &[Measured], rounds: usize) -> Section {
    let note = format!(
        "user and system time of the gateway's process for each request, what it does after the answer included; median of {rounds} rounds in turns, of twice as many over one connection; × connections"
    );
    let title = format!("CPU of the gateway, {}", traffic.name());
    let mut section = Section::new(title, &["CPU µs"], "times bare hyper").note(note);
    let middle = |measured: &Measured| median(&mut measured.cpu.clone());
    for measured in all.iter().filter(|measured| measured.gateway != Gateway::Direct) {
        let bare = beside(all, measured, Gateway::Bare).map(middle).unwrap_or_default();
        let times = ratio(middle(measured), bare);
        let check = match measured.gateway {
            Gateway::JournalOff => Some(Check::new(times, Target::AtMost(1.5))),
            Gateway::JournalOn => Some(Check::new(times, Target::AtMost(3.0))),
            Gateway::Mitmproxy | Gateway::Litellm => Some(Check::note(times)),
            Gateway::Direct | Gateway::Bare => None,
        };
        section.row(row_name(measured), vec![microseconds(middle(measured))], check);
    }
    section
}

fn latency_section(traffic: Traffic, all: &[Measured]) -> Section {
    let until = if traffic.kind == Kind::Plain { "the whole answer" } else { "the first event" };
    let note = format!(
        "wall time until {until} was here, less that of a direct connection, whose own is in its row; a peer's ratio is how many times more it adds at p50 than sayso with its journal on, and beside it than bare hyper, which does nothing else"
    );
    let title = format!("Latency that the gateway adds, {}", traffic.name());
    let mut section = Section::new(title, &["p50 µs", "p99 µs", "peer's / bare's"], "peer's / sayso's").note(note);
    let at = |measured: &Measured, percent| percentile(&mut measured.latencies.clone(), percent).as_secs_f64() * 1e6;
    for measured in all {
        let direct = beside(all, measured, Gateway::Direct);
        let added = |of: &Measured, percent| at(of, percent) - direct.map_or(0.0, |direct| at(direct, percent));
        let own = measured.gateway == Gateway::Direct;
        let cells = [50, 99].map(|percent| if own { at(measured, percent) } else { added(measured, percent) });
        let ours = beside(all, measured, Gateway::JournalOn).filter(|_| measured.gateway.is_peer());
        // Less than a microsecond is noise, and not infinitely better.
        let times = |of: &Measured| added(measured, 50) / added(of, 50).max(1.0);
        let check = ours.map(|ours| Check::new(times(ours), Target::AtLeast(10.0)));
        let bare = beside(all, measured, Gateway::Bare).filter(|_| measured.gateway.is_peer());
        let bare = bare.map(|bare| format!("{:.1}", times(bare))).unwrap_or_default();
        section.row(
            row_name(measured),
            cells.map(|cell| format!("{cell:.0}")).into_iter().chain([bare]).collect(),
            check,
        );
    }
    section
}
