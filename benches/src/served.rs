//! Cost of the served engine: calls, decisions, watchers, and commands that use it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sayso_api::client::{
    AbstractSocket, Client, Dial, PreviewDetail, ProposeMode, Proposed, RetryBudget, Role, Socket, StatusDetail,
    Watched,
};
use sayso_review::{Answer, Decider, Origin, Verdict};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use crate::clock::{self, Limit, median, microseconds, milliseconds, own_cpu, ratio};
use crate::startup::{build, sayso};
use crate::table::{Check, Section, Target};

const CALLS: u32 = 5_000;
const WATCHERS: usize = 1_000;
const EVENTS: u64 = 1_000;

/// A server process with its own directory.
struct Served {
    child: Child,
    socket: PathBuf,
    home: tempfile::TempDir,
}

impl Served {
    fn sayso(program: &Path) -> Result<Self> {
        // In memory if possible, so that disk waits do not count.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        std::fs::create_dir(home.path().join("work"))?;
        let mut child = command(program, home.path())
            .args(["serve", "--json", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line)?;
        let socket = said["socket"].as_str().context("no socket")?.into();
        Ok(Self { child, socket, home })
    }

    fn echo(program: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let socket = home.path().join("socket");
        let mut child = Command::new(program).arg(&socket).stdout(Stdio::piped()).spawn()?;
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut String::new())?;
        Ok(Self { child, socket, home })
    }

    fn client(&self) -> Client {
        // The abstract socket accepts verdicts; an echo server has only one socket.
        let dial: Arc<dyn Dial> = match std::fs::read_to_string(self.socket.with_file_name("verdicts")) {
            Ok(name) => Arc::new(AbstractSocket(name)),
            Err(_) => Arc::new(Socket(self.socket.clone())),
        };
        Client::new(dial, None).with_retry_budget(RetryBudget::Limited(Duration::ZERO))
    }

    /// Returns the CPU time of all threads of the server.
    fn cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let stat = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            nanoseconds += stat.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Returns a memory field of `/proc/PID/status` in megabytes.
    fn memory(&self, field: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(field)).context("no such field")?;
        let kilobytes: f64 = line.split_ascii_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The server keeps no data.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home.join("work"));
    command
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Measures the server of the release build.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    let Some(program) = sayso() else {
        let note = "not built: `cargo build --release` in the repository, or set SAYSO_BIN";
        return Ok(vec![Section::new("The server", &[], "").note(note)]);
    };
    Ok(vec![
        calls(&program, rounds)?,
        decisions(&program, rounds)?,
        watchers(&program)?,
        commands(&program, rounds * 10)?,
    ])
}

fn calls(program: &Path, rounds: usize) -> Result<Section> {
    let note =
        format!("CPU of both ends for each of {CALLS} calls over a Unix socket, median of {rounds} rounds in turns");
    let mut section =
        Section::new("A call over the Unix socket", &["CPU µs", "of it the server"], "times bare hyper").note(note);
    let (ours, bare) = (Served::sayso(program)?, Served::echo(&build("echo")?)?);
    let runtime = runtime()?;
    let client = ours.client();
    let mut times = [Vec::new(), Vec::new()];
    let mut servers = [Vec::new(), Vec::new()];
    for _ in 0..=rounds {
        let (start, server) = (own_cpu(), ours.cpu()?);
        runtime.block_on(async {
            for _ in 0..CALLS {
                client.list_tools().await?;
            }
            anyhow::Ok(())
        })?;
        let server = ours.cpu()?.saturating_sub(server);
        times[0].push((own_cpu().saturating_sub(start) + server) / CALLS);
        servers[0].push(server / CALLS);
        let (start, server) = (own_cpu(), bare.cpu()?);
        runtime.block_on(echo(&bare.socket, RESPONSE_BYTES))?;
        let server = bare.cpu()?.saturating_sub(server);
        times[1].push((own_cpu().saturating_sub(start) + server) / CALLS);
        servers[1].push(server / CALLS);
    }
    // The first round is for warming up.
    let [ours, bare] = times.each_mut().map(|times| median(&mut times[1..]));
    let [ours_server, bare_server] = servers.each_mut().map(|times| median(&mut times[1..]));
    let check = Check::new(ratio(ours, bare), Target::AtMost(2.0));
    section.row("sayso", vec![microseconds(ours), microseconds(ours_server)], Some(check));
    section.row("bare hyper echo", vec![microseconds(bare), microseconds(bare_server)], None);
    Ok(section)
}

/// Size of a response to `ListTools`, for the echo server.
const RESPONSE_BYTES: usize = 4 << 10;

async fn echo(socket: &Path, size: usize) -> Result<()> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let body = Bytes::from(vec![b'x'; size]);
    for _ in 0..CALLS {
        let request = hyper::Request::post("/").header("host", "localhost").body(Full::new(body.clone()))?;
        let answer = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
        ensure!(answer.len() == size, "the echo server returned another body");
    }
    Ok(())
}

fn decisions(program: &Path, rounds: usize) -> Result<Section> {
    const CHANGES: u32 = 100;
    let note = format!(
        "CPU of the server for proposing, telling a watcher, deciding and applying one small file, {CHANGES} a round"
    );
    let mut section = Section::new("A decision's round trip", &["server CPU ms"], "ms").note(note);
    let served = Served::sayso(program)?;
    let (runtime, client) = (runtime()?, served.client());
    let mut times = Vec::new();
    for round in 0..=rounds {
        let start = served.cpu()?;
        runtime.block_on(async {
            let last = client.status(StatusDetail::Counts).await?.last_event;
            let mut watch = client.watch(last, Role::Surface, RetryBudget::Limited(Duration::ZERO));
            for number in 0..CHANGES {
                let text = format!(r#"{{"path":"a.txt","operation":"write","new_content":"{round} {number}\n"}}"#);
                let proposed = Proposed::Text(text.into_bytes());
                let details =
                    client.propose(proposed, Origin::default(), ProposeMode::Record, PreviewDetail::Contents).await?;
                let preview = details.record.preview;
                let verdict = Verdict {
                    preview,
                    answer: Answer::Approve,
                    comments: Vec::new(),
                    message: None,
                    by: Decider::PERSON,
                };
                client.decide(details.record.change, verdict, None, PreviewDetail::Omitted).await?;
                // The events are proposed, decided, applying and ended.
                let mut events = 0;
                while events < 4 {
                    events += u32::from(matches!(watch.next().await?, Watched::Event(_)));
                }
            }
            anyhow::Ok(())
        })?;
        times.push(served.cpu()?.saturating_sub(start) / CHANGES);
    }
    let time = median(&mut times[1..]);
    let check = Check::new(time.as_secs_f64() * 1e3, Target::AtMost(1.0));
    section.row("propose, watch, decide, apply", vec![milliseconds(time)], Some(check));
    Ok(section)
}

fn watchers(program: &Path) -> Result<Section> {
    let note = format!(
        "{WATCHERS} watchers on connections of their own, {EVENTS} events; every one got every event once, in order"
    );
    let mut section = Section::new("Memory of the server", &["MB"], "MB").note(note);
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let served = Served::sayso(program)?;
    let (runtime, client) = (runtime()?, served.client());
    runtime.block_on(client.status(StatusDetail::Counts))?;
    let idle = served.memory("VmRSS")?;
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..WATCHERS {
            let client = served.client();
            tasks.spawn(async move {
                let mut watch = client.watch(0, Role::Observer, RetryBudget::Limited(Duration::ZERO));
                let mut next = 1;
                while next <= EVENTS {
                    if let Watched::Event(event) = watch.next().await? {
                        ensure!(event.number == next, "event {} came in place of {next}", event.number);
                        next += 1;
                    }
                }
                Ok(())
            });
        }
        for number in 0..EVENTS {
            client.start_turn("watched", &format!("turn {number}")).await?;
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        anyhow::Ok(())
    })?;
    section.row("idle", vec![format!("{idle:.1}")], Some(Check::new(idle, Target::AtMost(25.0))));
    let peak = served.memory("VmHWM")?;
    section.row(
        "with 1,000 watchers, at most",
        vec![format!("{peak:.1}")],
        Some(Check::new(peak, Target::AtMost(150.0))),
    );
    Ok(section)
}

fn commands(program: &Path, runs: usize) -> Result<Section> {
    let note = format!("CPU time of the command alone, an engine running, median of {runs} runs in turns");
    let mut section = Section::new("Commands that ask an engine", &["CPU ms"], "ms beyond empty").note(note);
    let served = Served::sayso(program)?;
    let empty = build("empty")?;
    let work = served.home.path().join("work").canonicalize()?;
    std::fs::write(work.join("a.txt"), "a\n")?;
    let call = serde_json::json!({
        "session_id": "s", "cwd": work, "hook_event_name": "PreToolUse", "tool_name": "Read",
        "tool_input": {"file_path": work.join("a.txt")}, "tool_use_id": "t",
    });
    let input = served.home.path().join("input.json");
    std::fs::File::create(&input)?.write_all(call.to_string().as_bytes())?;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        let script = |text: &str| {
            let mut shell = command(Path::new("/bin/sh"), served.home.path());
            shell.args(["-c", text]).arg(program).arg(&input).arg(&empty);
            shell
        };
        // `exec` replaces the shell, so that all three programs have the same overhead.
        let texts = [r#"exec "$0" hook claude < "$1""#, r#"exec "$0" status --short < "$1""#, r#"exec "$2" < "$1""#];
        for (times, text) in times.iter_mut().zip(texts) {
            let run = clock::run(&mut script(text), Limit::Hanging)?.context("a command hangs")?;
            times.push(run.cpu);
        }
    }
    let [hook, status, floor] = times.each_mut().map(|times| median(times));
    for (name, time, most) in [("sayso hook claude", hook, 3.0), ("sayso status --short", status, 5.0)] {
        let beyond = time.saturating_sub(floor).as_secs_f64() * 1e3;
        section.row(name, vec![milliseconds(time)], Some(Check::new(beyond, Target::AtMost(most))));
    }
    section.row("empty program", vec![milliseconds(floor)], None);
    Ok(section)
}
