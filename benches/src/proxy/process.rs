//! A program that requests go through, in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Requests that `sayso serve` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// All of them.
    All,
    /// Paused requests only.
    Paused,
}

/// Treatment of response bodies by mitmproxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Buffers the whole body: mitmproxy's default, and faster.
    Whole,
    /// Streams the body.
    AsTheyCome,
}

/// A running program, killed when it is dropped.
pub struct Process {
    child: Child,
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Prefix of request paths.
    pub prefix: String,
    /// Writable directory; the home of sayso.
    home: tempfile::TempDir,
    program: PathBuf,
}

impl Process {
    /// One of the programs of this package, which prints where it listens.
    pub fn own(program: &Path, arguments: &[String]) -> Result<Self> {
        let home = home()?;
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
        let address = first_line(&mut child)?.trim().parse()?;
        Ok(Self { child, address, prefix: String::new(), home, program: program.to_owned() })
    }

    /// `sayso serve`.
    pub fn sayso(program: &Path, upstream: SocketAddr, log: Log) -> Result<Self> {
        let home = home()?;
        for folder in ["work", "config/sayso", "state"] {
            std::fs::create_dir_all(home.path().join(folder))?;
        }
        let log = if log == Log::All { "all" } else { "paused" };
        let settings = format!("[upstream.anthropic]\nurl = \"http://{upstream}\"\n[request]\nlog = \"{log}\"\n");
        std::fs::write(home.path().join("config/sayso/config.toml"), settings)?;
        let mut child = sayso(program, home.path())
            .args(["serve", "--json", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let said: serde_json::Value = serde_json::from_str(&first_line(&mut child)?)?;
        let address =
            said["url"].as_str().and_then(|url| url.strip_prefix("http://")).context("no address")?.parse()?;
        let mut process = Self { child, address, prefix: String::new(), home, program: program.to_owned() };
        let said: serde_json::Value = serde_json::from_slice(&process.ask(&["env", "claude", "--json"])?)?;
        let base = said["variables"]["ANTHROPIC_BASE_URL"].as_str().context("no base URL")?;
        let prefix = base.strip_prefix(&format!("http://{address}")).context("a base URL of another server")?;
        prefix.clone_into(&mut process.prefix);
        Ok(process)
    }

    /// mitmproxy in reverse mode.
    pub fn mitmproxy(python: &Path, upstream: SocketAddr, answers: Answers) -> Result<Self> {
        let (home, address) = (home()?, free_address()?);
        let mut command = python_program(python, home.path(), "from mitmproxy.tools.main import mitmdump; mitmdump()");
        command.args(["--quiet", "--set", "flow_detail=0", "--listen-host", "127.0.0.1"]);
        command.args(["--mode", &format!("reverse:http://{upstream}"), "--listen-port", &address.port().to_string()]);
        command.arg("--set").arg(format!("confdir={}", home.path().display()));
        if answers == Answers::AsTheyCome {
            command.args(["--set", "stream_large_bodies=1"]);
        }
        let child = command.spawn()?;
        Ok(Self { child, address, prefix: String::new(), home, program: python.to_owned() })
    }

    /// LiteLLM's proxy, which passes on what is beneath `/anthropic`.
    pub fn litellm(python: &Path, upstream: SocketAddr) -> Result<Self> {
        let (home, address) = (home()?, free_address()?);
        let settings = home.path().join("config.yaml");
        std::fs::write(&settings, "model_list: []\nlitellm_settings:\n  telemetry: false\n")?;
        let mut command =
            python_program(python, home.path(), "from litellm.proxy.proxy_cli import run_server; run_server()");
        command.env("ANTHROPIC_API_BASE", format!("http://{upstream}")).env("ANTHROPIC_API_KEY", "none");
        // It listens on this machine only, for minutes, and holds no key: asking for one would only slow it down.
        command.env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
        // Uses the bundled price list instead of downloading it.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string(), "--config"]).arg(settings);
        let child = command.spawn()?;
        Ok(Self { child, address, prefix: "/anthropic".to_owned(), home, program: python.to_owned() })
    }

    /// Runs a command of sayso with the same home and returns its output.
    pub fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = sayso(&self.program, self.home.path()).args(arguments).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`sayso {}` failed: {complaint}", arguments.join(" "));
        Ok(output.stdout)
    }

    /// `true` while the process runs.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Returns the CPU time of all threads, including ended ones.
    pub fn cpu(&self) -> Result<Duration> {
        let process = Pid::from_raw(i32::try_from(self.child.id())?);
        Ok(clock_gettime(clock_getcpuclockid(process)?)?.into())
    }

    /// Returns the CPU time once the process is idle: it records requests after the response.
    pub fn settled_cpu(&self) -> Result<Duration> {
        let mut before = self.cpu()?;
        for _ in 0..60 {
            std::thread::sleep(Duration::from_millis(40));
            let now = self.cpu()?;
            if now.saturating_sub(before) < Duration::from_micros(500) {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }

    /// Megabytes of memory: `VmRSS` now, `VmHWM` at most so far.
    pub fn memory(&self, field: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(field)).context("no such field")?;
        let kilobytes: f64 = line.split_ascii_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process keeps no data.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In memory, where there is some, so that what is measured is work, and not the disk.
fn home() -> Result<tempfile::TempDir> {
    Ok(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?)
}

fn first_line(child: &mut Child) -> Result<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    Ok(line)
}

fn sayso(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home.join("work"));
    command.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("state"));
    command
}

/// A program of a virtual environment that may have been moved, so that only its interpreter can be called.
fn python_program(python: &Path, home: &Path, text: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", text]).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns an unused address.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
