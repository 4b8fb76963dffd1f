//! An agent that sends requests to a scripted model through a running `sayso serve`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sayso_api::client::{Client, RetryBudget, UpstreamUrls};
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::Scene;
use crate::served::{LONG, Served};

/// A session as Claude Code names it.
pub(crate) const SESSION: &str = "0f5b2c1e-aaaa-4bbb-8ccc-1234567890ab";

/// A workspace, an engine, a model behind it, and an entrance.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) model: ModelServer,
    served: Served,
    base: String,
}

/// A response as the agent received it.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Stage {
    /// With this configuration besides the upstream. The grace period is longer than every test.
    pub(crate) fn new(configuration: &str) -> Self {
        Self::behind(configuration, |model| model.url(), &[])
    }

    /// With a proxy before the model, and additional variables for the engine.
    pub(crate) fn behind(
        configuration: &str,
        front: impl FnOnce(&ModelServer) -> String,
        environment: &[(&str, &str)],
    ) -> Self {
        let scene = Scene::new(&[]);
        let says = || Turn::says("Done.");
        let model = ModelServer::start([says(), says(), says(), says()]);
        let upstream = format!("[upstream.anthropic]\nurl = \"{}\"\n", front(&model));
        scene.configure(&format!("[request]\ngrace = \"1 h\"\n{configuration}\n{upstream}"));
        let served = Served::start_with(&scene, environment);
        let base = open_endpoint(&served);
        Self { scene, model, served, base }
    }

    /// The same with another engine, after this one was killed.
    pub(crate) fn again(self) -> Self {
        let Self { scene, model, served, .. } = self;
        served.kill();
        let served = Served::start_with(&scene, &[]);
        let base = open_endpoint(&served);
        Self { scene, model, served, base }
    }

    /// Sends a request as an agent does, and waits for the answer on a thread of its own.
    pub(crate) fn send(&self, body: &Value) -> JoinHandle<Got> {
        self.send_with(body, "")
    }

    pub(crate) fn send_with(&self, body: &Value, headers: &str) -> JoinHandle<Got> {
        let (address, path) = self.entrance();
        Self::post(address, &format!("/{path}/anthropic"), body, headers)
    }

    /// Sends a request to a base URL, such as an agent was told.
    pub(crate) fn send_to(base: &str, body: &Value) -> JoinHandle<Got> {
        let (address, path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self::post(address.to_owned(), &format!("/{path}"), body, "")
    }

    fn post(address: String, base: &str, body: &Value, headers: &str) -> JoinHandle<Got> {
        let body = body.to_string();
        let text = format!(
            "POST {base}/v1/messages HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-api-key: secret-key\r\n\
             content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            let mut answer = String::new();
            // An engine that is killed cuts it off; then there is no status.
            let _ = stream.read_to_string(&mut answer);
            let status = answer.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
            Got { status, text: answer }
        })
    }

    /// The endpoint of agents: address and path prefix.
    pub(crate) fn entrance(&self) -> (String, String) {
        let (address, path) = self.base.strip_prefix("http://").unwrap().split_once('/').unwrap();
        (address.to_owned(), path.to_owned())
    }

    /// Waits until so many requests wait, and says which.
    pub(crate) fn waiting(&self, count: usize) -> Vec<String> {
        let start = Instant::now();
        loop {
            let (listed, _) = self.scene.json(&["request", "list", "--waiting", "--json"]);
            let found = listed["requests"].as_array().cloned().unwrap_or_default();
            if found.len() == count {
                return found.iter().map(|request| request["request"].as_str().unwrap().to_owned()).collect();
            }
            assert!(start.elapsed() < LONG, "{count} do not wait: {listed}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The base URL that `sayso env` prints for Claude Code, in an environment with this one.
    pub(crate) fn told(&self, base: Option<&str>) -> String {
        let environment = self.scene.environment();
        let own = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        let told = base.map(|base| ("ANTHROPIC_BASE_URL", base));
        let environment: Vec<(&str, &str)> = own.into_iter().chain(told).collect();
        let arguments = ["env", "claude", "--json"];
        let program = env!("CARGO_BIN_EXE_sayso");
        let output = crate::programs::run_with(&self.scene.path(""), program, &arguments, &environment, b"");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        said["variables"]["ANTHROPIC_BASE_URL"].as_str().unwrap().to_owned()
    }

    /// A transcript without what differs from run to run.
    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        steady(&self.scene.transcript(arguments))
    }

    pub(crate) fn client(&self, patience: RetryBudget) -> Client {
        self.served.client(patience)
    }

    pub(crate) fn end(self) {
        drop(self.served);
    }
}

/// Returns the endpoint of an agent.
fn open_endpoint(served: &Served) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = served.client(RetryBudget::Unlimited);
    let endpoint = runtime.block_on(client.open_endpoint(Some("claude"), &UpstreamUrls::new())).unwrap();
    endpoint.url.unwrap()
}

/// A text in which ages and times of day are always the same.
fn steady(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        // An age, in its column or in a text.
        for unit in [" s ", " s\n", " min "] {
            while let Some(at) = line.find(unit) {
                let before = &line[..at];
                let kept = before.trim_end_matches(|character: char| character.is_ascii_digit());
                if kept.len() == before.len() {
                    break;
                }
                line = format!("{} N_s{}", kept.trim_end(), &line[at + unit.len() - 1..]);
            }
        }
        while let Some(at) = clock(&line) {
            line.replace_range(at..at + 9, "[TIME]");
        }
        words.push(line);
    }
    words.concat()
}

fn clock(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let shape = b"dd:dd:ddZ";
    bytes.windows(shape.len()).position(|window| {
        window.iter().zip(shape).all(|(byte, shape)| if *shape == b'd' { byte.is_ascii_digit() } else { byte == shape })
    })
}

/// A request of an agent in the middle of its work.
pub(crate) fn request(asks: &str, result: &str) -> Value {
    json!({
        "model": "claude-sonnet-4-5-20250929",
        "max_tokens": 1024,
        "system": [{"type": "text", "text": "You are a careful engineer.\nYou answer in one line."}],
        "tools": [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": asks}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.rs"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": result}]},
        ],
        "metadata": {"user_id": format!("user_0_account__session_{SESSION}")},
    })
}
