//! The endpoint of an agent's requests to models while `sayso run` runs it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_adapters::Agent;
use sayso_adapters::routing::{AgentEnvironment, LaunchSettings, UpstreamRouting};
use sayso_api::LocalStream;
use sayso_server::EngineSocket;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::Notify;

use crate::engine::{EngineConnection, runtime};
use crate::error::CliError;
use crate::output::say;
use crate::workspace_location::WorkspaceLocation;

/// Bytes of one read. Agents send a megabyte at once, and the number of reads costs the most.
const READ_BUFFER_BYTES: usize = 128 << 10;
/// Attempts to reach an engine that is being handed over, and the pause between them: 5 s in all.
const MAX_CONNECT_ATTEMPTS: usize = 200;
const CONNECT_PAUSE: Duration = Duration::from_millis(25);
/// Pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An agent's settings in the environment and in its own configuration files.
pub(crate) struct ProcessEnvironment(pub(crate) Agent);

impl AgentEnvironment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn configuration(&self) -> Option<String> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME");
        let files = match self.0 {
            Agent::Codex => {
                vec![absolute("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?.join("config.toml")]
            }
            // opencode uses the first file that exists.
            Agent::Opencode => {
                let user = absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")));
                let named = absolute("OPENCODE_CONFIG");
                let project = Some(PathBuf::from("opencode.json"));
                let user = user.map(|folder| folder.join("opencode/opencode.json"));
                named.into_iter().chain(project).chain(user).collect()
            }
            Agent::Claude | Agent::Gemini | Agent::Copilot => Vec::new(),
        };
        files.into_iter().find_map(|file| std::fs::read_to_string(file).ok())
    }
}

/// A local port that forwards an agent's requests to the engine, in whichever process that runs.
pub(crate) struct RunEndpoint {
    capability: String,
    settings: LaunchSettings,
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl RunEndpoint {
    pub(crate) fn open(
        engine: &EngineConnection,
        location: &WorkspaceLocation,
        agent: Agent,
    ) -> Result<Self, CliError> {
        let routing = UpstreamRouting::new(agent, &ProcessEnvironment(agent));
        for note in &routing.notes {
            say(&format!("note: {note}"));
        }
        let opened = engine.block(engine.client().open_endpoint(Some(agent.name()), &routing.upstreams))?;
        let capability = opened.capability;
        let failed = |error: std::io::Error| CliError::io("cannot listen on a port of this machine", &error);
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let settings = routing.launch_settings(&format!("http://{address}/p/{capability}"));
        let (stop, runtime, socket) = (Arc::new(Notify::new()), runtime()?, EngineSocket::new(&location.folder));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = forward(listener, socket) => {}
                    () = stopped.notified() => {}
                }
            });
        });
        Ok(Self { capability, settings, stop, thread })
    }

    /// Returns the variables and arguments with which the agent uses the endpoint.
    pub(crate) fn settings(&self) -> &LaunchSettings {
        &self.settings
    }

    /// Closes the endpoint of an agent that has ended.
    pub(crate) fn close(self, engine: &EngineConnection) -> Result<(), CliError> {
        self.stop.notify_one();
        let _ = self.thread.join();
        engine.block(engine.client().close_endpoint(&self.capability)).map(|_| ())
    }
}

/// Forwards connections to the engine's socket for models, which accepts model requests only.
async fn forward(listener: TcpListener, socket: EngineSocket) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let socket = socket.clone();
        tokio::spawn(async move {
            for _ in 0..MAX_CONNECT_ATTEMPTS {
                if let Ok(Some(engine)) = socket.connect_for_models() {
                    let Ok(mut engine) = LocalStream::new(engine) else { return };
                    // Either side may close at any time.
                    let _ =
                        copy_bidirectional_with_sizes(&mut stream, &mut engine, READ_BUFFER_BYTES, READ_BUFFER_BYTES)
                            .await;
                    return;
                }
                tokio::time::sleep(CONNECT_PAUSE).await;
            }
        });
    }
}
