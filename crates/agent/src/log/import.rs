//! The conversation of a recorded request, as entries of a log.

use sayso_review::TokenUsage;
use sayso_wire::stream::Api;
use sayso_wire::{ModelRequest, RequestHead};
use serde_json::Value;

use super::{
    AssistantBlock, AssistantMessage, CallKind, Completeness, Entry, ImageData, Prompt, RecordedResult, SignatureKind,
    SignedData, ToolCallBlock,
};

/// A request whose conversation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("the request is not one of a known model API")]
    UnknownFormat,
    #[error("the request refers to a conversation on the server, which is not part of it")]
    RemoteHistory,
    #[error("the request has no conversation")]
    Empty,
}

/// Reads the conversation of a request, without its system prompt and tools. `path` selects the API.
pub fn entries_from_request(path: &str, body: &[u8]) -> Result<Vec<Entry>, ImportError> {
    let request = ModelRequest::new("imported", RequestHead::new(path), body);
    let dialect = request.dialect().ok_or(ImportError::UnknownFormat)?.api();
    let body: Value = serde_json::from_slice(&request.to_bytes()).map_err(|_| ImportError::UnknownFormat)?;
    if body.get("previous_response_id").is_some_and(Value::is_string) {
        return Err(ImportError::RemoteHistory);
    }
    let model = match body["model"].as_str() {
        Some(model) => model.to_owned(),
        // Gemini names the model in the path.
        None => path.split("/models/").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default().to_owned(),
    };
    let mut import =
        Import { dialect, model, entries: Vec::new(), prompt: Prompt::default(), blocks: Vec::new(), calls: 0 };
    match dialect {
        Api::AnthropicMessages => import.anthropic(&body),
        Api::OpenAiChat => import.chat(&body),
        Api::OpenAiResponses => import.responses(&body),
        Api::Gemini => import.gemini(&body),
    }
    import.flush();
    if import.entries.is_empty() { Err(ImportError::Empty) } else { Ok(import.entries) }
}

/// Collects entries. Content of one author in a row becomes one entry.
struct Import {
    dialect: Api,
    model: String,
    entries: Vec<Entry>,
    prompt: Prompt,
    blocks: Vec<AssistantBlock>,
    calls: usize,
}

impl Import {
    fn flush(&mut self) {
        if !self.blocks.is_empty() {
            self.entries.push(Entry::Assistant(AssistantMessage {
                dialect: self.dialect,
                model: self.model.clone(),
                blocks: std::mem::take(&mut self.blocks),
                completeness: Completeness::Complete,
                usage: TokenUsage::default(),
                request: None,
            }));
        }
        if self.prompt != Prompt::default() {
            self.entries.push(Entry::Prompt(std::mem::take(&mut self.prompt)));
        }
    }

    fn user_text(&mut self, text: &str) {
        self.end_blocks();
        if !self.prompt.text.is_empty() {
            self.prompt.text.push_str("\n\n");
        }
        self.prompt.text.push_str(text);
    }

    fn user_image(&mut self, image: Option<ImageData>) {
        self.end_blocks();
        self.prompt.images.extend(image);
    }

    fn end_blocks(&mut self) {
        if !self.blocks.is_empty() {
            self.flush();
        }
    }

    fn block(&mut self, block: AssistantBlock) {
        if self.prompt != Prompt::default() {
            self.flush();
        }
        self.blocks.push(block);
    }

    fn assistant_text(&mut self, text: &str, signatures: Vec<SignedData>) {
        if !text.is_empty() || !signatures.is_empty() {
            self.block(AssistantBlock::Text { text: text.to_owned(), signatures });
        }
    }

    fn call(&mut self, id: Option<&str>, name: &str, kind: CallKind, arguments: String, signatures: Vec<SignedData>) {
        self.calls += 1;
        let id = id.map_or_else(|| crate::dialect::own_call_id(self.calls), str::to_owned);
        self.block(AssistantBlock::ToolCall(ToolCallBlock { id, name: name.to_owned(), kind, arguments, signatures }));
    }

    fn result(&mut self, call: &str, text: String, is_error: bool) {
        self.flush();
        let call = call.to_owned();
        self.entries.push(Entry::Result(RecordedResult { call, text, is_error, images: Vec::new(), change: None }));
    }

    fn anthropic(&mut self, body: &Value) {
        for message in items(&body["messages"]) {
            let is_user = message["role"] == "user";
            if let Some(text) = message["content"].as_str() {
                if is_user { self.user_text(text) } else { self.assistant_text(text, Vec::new()) }
            }
            for block in items(&message["content"]) {
                let text = |name: &str| block[name].as_str().unwrap_or_default();
                match text("type") {
                    "text" if is_user => self.user_text(text("text")),
                    "text" => self.assistant_text(text("text"), Vec::new()),
                    "image" => {
                        let source = &block["source"];
                        self.user_image(image(source["media_type"].as_str(), source["data"].as_str()));
                    }
                    "thinking" => {
                        let signature = signature(SignatureKind::Signature, &block["signature"]);
                        self.block(AssistantBlock::Thinking {
                            text: text("thinking").to_owned(),
                            signatures: signature,
                        });
                    }
                    "redacted_thinking" => {
                        let signatures = signature(SignatureKind::Redacted, &block["data"]);
                        self.block(AssistantBlock::Thinking { text: String::new(), signatures });
                    }
                    "tool_use" => self.call(
                        block["id"].as_str(),
                        text("name"),
                        CallKind::Function,
                        block["input"].to_string(),
                        Vec::new(),
                    ),
                    "tool_result" => {
                        self.result(text("tool_use_id"), content_text(&block["content"]), block["is_error"] == true);
                    }
                    _ => {}
                }
            }
        }
    }

    fn chat(&mut self, body: &Value) {
        for message in items(&body["messages"]) {
            match message["role"].as_str().unwrap_or_default() {
                "user" => {
                    self.user_text(&content_text(&message["content"]));
                    for part in items(&message["content"]) {
                        self.user_image(data_url(part["image_url"]["url"].as_str()));
                    }
                }
                "assistant" => {
                    self.assistant_text(&content_text(&message["content"]), Vec::new());
                    for call in items(&message["tool_calls"]) {
                        let (kind, own, key) = match call["type"].as_str() {
                            Some("custom") => (CallKind::Custom, &call["custom"], "input"),
                            _ => (CallKind::Function, &call["function"], "arguments"),
                        };
                        let name = own["name"].as_str().unwrap_or_default();
                        let arguments = own[key].as_str().unwrap_or_default().to_owned();
                        self.call(call["id"].as_str(), name, kind, arguments, Vec::new());
                    }
                    self.end_blocks();
                }
                "tool" => {
                    let call = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                    self.result(&call, content_text(&message["content"]), false);
                }
                _ => {}
            }
        }
    }

    fn responses(&mut self, body: &Value) {
        if let Some(text) = body["input"].as_str() {
            self.user_text(text);
        }
        for item in items(&body["input"]) {
            let text = |name: &str| item[name].as_str().unwrap_or_default();
            match (text("type"), text("role")) {
                ("function_call", _) => {
                    self.call(
                        item["call_id"].as_str(),
                        text("name"),
                        CallKind::Function,
                        text("arguments").to_owned(),
                        Vec::new(),
                    );
                }
                ("custom_tool_call", _) => {
                    self.call(
                        item["call_id"].as_str(),
                        text("name"),
                        CallKind::Custom,
                        text("input").to_owned(),
                        Vec::new(),
                    );
                }
                ("function_call_output" | "custom_tool_call_output", _) => {
                    self.result(text("call_id"), content_text(&item["output"]), false);
                }
                ("reasoning", _) => {
                    let signatures = signature(SignatureKind::Encrypted, &item["encrypted_content"]);
                    self.block(AssistantBlock::Thinking { text: content_text(&item["summary"]), signatures });
                }
                (_, "assistant") => self.assistant_text(&content_text(&item["content"]), Vec::new()),
                (_, "user") => {
                    self.user_text(&content_text(&item["content"]));
                    for part in items(&item["content"]) {
                        self.user_image(data_url(part["image_url"].as_str()));
                    }
                }
                _ => {}
            }
        }
    }

    fn gemini(&mut self, body: &Value) {
        // Calls without an id, in order: results refer to them by name.
        let mut open: Vec<(String, String)> = Vec::new();
        for content in items(&body["contents"]) {
            let is_model = content["role"] == "model";
            for part in items(&content["parts"]) {
                let signatures = signature(SignatureKind::Signature, &part["thoughtSignature"]);
                let (call, response) = (&part["functionCall"], &part["functionResponse"]);
                if call.is_object() {
                    let name = call["name"].as_str().unwrap_or_default();
                    self.call(call["id"].as_str(), name, CallKind::Function, call["args"].to_string(), signatures);
                    if let Some(AssistantBlock::ToolCall(call)) = self.blocks.last() {
                        open.push((call.id.clone(), name.to_owned()));
                    }
                } else if response.is_object() {
                    let matches = |(id, name): &(String, String)| match response["id"].as_str() {
                        Some(given) => given == id,
                        None => response["name"] == name.as_str(),
                    };
                    let Some(at) = open.iter().position(matches) else { continue };
                    let (id, _) = open.remove(at);
                    let response = &response["response"];
                    let is_error = response.get("error").is_some();
                    let text = ["output", "error"].iter().find_map(|name| response[name].as_str());
                    self.result(&id, text.map_or_else(|| response.to_string(), str::to_owned), is_error);
                } else if part["inlineData"].is_object() {
                    let data = &part["inlineData"];
                    self.user_image(image(data["mimeType"].as_str(), data["data"].as_str()));
                } else if let Some(text) = part["text"].as_str() {
                    match (is_model, part["thought"] == true) {
                        (true, true) => self.block(AssistantBlock::Thinking { text: text.to_owned(), signatures }),
                        (true, false) => self.assistant_text(text, signatures),
                        (false, _) => self.user_text(text),
                    }
                }
            }
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the text of a content: a string, or the texts of its parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => items(content).filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn signature(kind: SignatureKind, data: &Value) -> Vec<SignedData> {
    data.as_str().map(|data| SignedData { kind, data: data.to_owned() }).into_iter().collect()
}

fn image(media_type: Option<&str>, base64: Option<&str>) -> Option<ImageData> {
    Some(ImageData { media_type: media_type?.to_owned(), base64: base64?.to_owned() })
}

/// Reads an image in a `data:` URL. Other URLs are left out.
fn data_url(url: Option<&str>) -> Option<ImageData> {
    let (media_type, base64) = url?.strip_prefix("data:")?.split_once(";base64,")?;
    image(Some(media_type), Some(base64))
}
