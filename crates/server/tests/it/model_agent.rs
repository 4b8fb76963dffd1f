//! An agent that sends its conversation to a scripted model through the proxy.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use sayso_api::client::{Client, UpstreamUrls};
use sayso_api::proto;
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::raw::{Answer, connect, rest};
use crate::scene::{Running, Scene};

/// A session as Claude Code names it.
pub(crate) const SESSION: &str = "0d6a3f0e-5b1c-4c3e-9a57-2f6f0a9b7c11";

pub(crate) struct ModelAgent {
    pub(crate) running: Running,
    pub(crate) client: Client,
    capability: String,
    messages: Vec<Value>,
    pub(crate) system: String,
    pub(crate) tools: Value,
    pub(crate) model_name: String,
    // Kept until the end, because the proxy forwards to it.
    pub(crate) model: ModelServer,
}

/// A request on its way.
pub(crate) struct SentRequest(TcpStream);

impl SentRequest {
    /// Waits for the response.
    pub(crate) fn answer(mut self) -> Answer {
        rest(&mut self.0)
    }
}

impl ModelAgent {
    pub(crate) async fn start(scene: &Scene, script: impl IntoIterator<Item = Turn>) -> Self {
        Self::start_in(scene.serve(), script).await
    }

    pub(crate) async fn start_in(running: Running, script: impl IntoIterator<Item = Turn>) -> Self {
        let model = ModelServer::start(script);
        let client = running.verdict_client();
        let upstreams = UpstreamUrls::from([("anthropic".to_owned(), model.url())]);
        let endpoint = client.open_endpoint(Some("claude"), &upstreams).await.unwrap();
        Self {
            running,
            client,
            capability: endpoint.capability,
            messages: Vec::new(),
            system: "You are careful.".to_owned(),
            tools: json!([{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}]),
            model_name: "claude-sonnet-4-5".to_owned(),
            model,
        }
    }

    pub(crate) fn say(&mut self, role: &str, content: &Value) {
        self.messages.push(json!({ "role": role, "content": content }));
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.say("user", &json!([{"type": "text", "text": text}]));
    }

    /// Sends the conversation so far, with headers that end with a line break each.
    pub(crate) fn post(&self, headers: &str) -> SentRequest {
        let body = json!({
            "model": self.model_name, "max_tokens": 100,
            "system": [{"type": "text", "text": self.system}],
            "tools": self.tools,
            "messages": self.messages,
        });
        let body = body.to_string();
        let address: SocketAddr = self.running.address;
        let head = format!(
            "POST /p/{}/anthropic/v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             x-claude-code-session-id: {SESSION}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            self.capability,
            body.len(),
        );
        let mut stream = connect(address);
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        SentRequest(stream)
    }

    /// Sends the conversation so far, and adds the response to it.
    pub(crate) fn send(&mut self) {
        let answer = self.post("").answer();
        assert_eq!(answer.status, 200, "{answer:?}");
        let start = answer.body.find('{').unwrap();
        let end = answer.body.rfind('}').unwrap();
        let answer: Value = serde_json::from_str(&answer.body[start..=end]).unwrap();
        self.say("assistant", &answer["content"]);
    }

    pub(crate) async fn blocks(&self, after: u64) -> proto::GetConversationPreviewResponse {
        conversation(&self.client, after).await
    }
}

/// The conversation of [`SESSION`] as messages of the protocol.
pub(crate) async fn conversation(client: &Client, after: u64) -> proto::GetConversationPreviewResponse {
    let page = client.conversation(SESSION, after, 0, None).await.unwrap();
    let blocks = page.blocks.iter().map(proto::ConversationBlock::from).collect();
    proto::GetConversationPreviewResponse { blocks, last: page.last, ..Default::default() }
}
