//! An agent's requests to models: where they come in while it runs, and how it is told.

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use sayso_adapters::traffic::{Pointing, Speaker, Telling, Told};
use sayso_api::{LocalStream, proto};
use sayso_server::EnginePlace;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::Notify;

use crate::engine::{Connected, runtime};
use crate::failure::Failure;
use crate::state::State;

/// What is passed on in one go at most: agents send a megabyte at a time, and reading costs by how often.
const LARGEST_READ: usize = 128 << 10;

/// What the user has told an agent, by the environment and the agent's own configuration.
pub(crate) struct Here(pub(crate) Speaker);

impl Told for Here {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn configuration(&self) -> Option<String> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME");
        let files = match self.0 {
            Speaker::Codex => {
                vec![absolute("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?.join("config.toml")]
            }
            // The nearest counts.
            Speaker::Opencode => {
                let user = absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")));
                let own = absolute("OPENCODE_CONFIG");
                let near = Some(PathBuf::from("opencode.json"));
                own.into_iter().chain(near).chain(user.map(|folder| folder.join("opencode/opencode.json"))).collect()
            }
            Speaker::Claude | Speaker::Gemini | Speaker::Copilot => Vec::new(),
        };
        files.into_iter().find_map(|file| std::fs::read_to_string(file).ok())
    }
}

/// A port of this machine at which an agent's requests come in for as long as it runs, whichever process has the engine.
pub(crate) struct Entrance {
    capability: String,
    telling: Telling,
    over: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Entrance {
    /// Opens one for a run of an agent.
    pub(crate) fn open(connected: &Connected, state: &State, speaker: Speaker) -> Result<Self, Failure> {
        let pointing = Pointing::new(speaker, &Here(speaker));
        for note in &pointing.notes {
            crate::output::say(&format!("note: {note}"));
        }
        let request = proto::OpenEntranceRequest {
            agent: Some(speaker.name().to_owned()),
            upstreams: pointing.upstreams.clone().into_iter().collect(),
            ..Default::default()
        };
        let opened = connected.block(connected.client().open_entrance(request))?;
        let capability = opened.entrance.capability.clone();
        let failed = |error: io::Error| Failure::bad_input("no port of this machine can be listened at").why(&error);
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let telling = pointing.tell(&format!("http://{address}/p/{capability}"));
        let (over, runtime, place) = (Arc::new(Notify::new()), runtime()?, EnginePlace::new(&state.folder));
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = forward(listener, place) => {}
                    () = told.notified() => {}
                }
            });
        });
        Ok(Self { capability, telling, over, thread })
    }

    /// What to tell the agent.
    pub(crate) fn telling(&self) -> &Telling {
        &self.telling
    }

    /// Closes it: the agent is over.
    pub(crate) fn close(self, connected: &Connected) -> Result<(), Failure> {
        self.over.notify_one();
        // It has nothing left to wait for.
        let _ = self.thread.join();
        let request = proto::CloseEntranceRequest { capability: self.capability, ..Default::default() };
        connected.block(connected.client().close_entrance(request)).map(|_| ())
    }
}

/// Passes connections on to the engine's socket for models, at which nothing else is served.
async fn forward(listener: TcpListener, place: EnginePlace) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: those that are open give some back.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let place = place.clone();
        tokio::spawn(async move {
            // An engine that is about to be there is waited for; without one, the connection ends.
            for _ in 0..200 {
                if let Ok(Some(engine)) = place.connect_traffic() {
                    let Ok(mut engine) = LocalStream::new(engine) else { return };
                    // Either end may go away at any time.
                    let _ = copy_bidirectional_with_sizes(&mut stream, &mut engine, LARGEST_READ, LARGEST_READ).await;
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(25)).await;
            }
        });
    }
}
