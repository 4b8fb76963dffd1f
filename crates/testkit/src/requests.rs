//! Generated requests of any size in the shape of a coding agent's requests.
//!
//! A request has a system prompt, two dozen tools with schemas, and a history of tool calls. The content is pseudo-random and the
//! same in every run.

use serde_json::{Value, json};

/// Dialects of [`agent_request`], by their names in the corpus.
pub const DIALECTS: [&str; 4] = ["anthropic", "openai-chat", "openai-responses", "gemini"];

const TOOLS: usize = 24;

/// Generates a request of at least `bytes` bytes. It exceeds them by less than one turn of the history.
///
/// The system prompt and the tools have about 73 kB; a smaller size gives a request without history.
pub fn agent_request(dialect: &str, bytes: usize) -> Vec<u8> {
    let shape = shape(dialect);
    let mut body = (shape.frame)();
    let mut history: Vec<Value> = body[shape.history].as_array().cloned().unwrap_or_default();
    body[shape.history] = json!([]);
    let frame = body.to_string().len();
    history.push((shape.ask)("The build is broken on my branch. Find out why, repair it, and add a test."));
    let mut size = frame + length(&history);
    for number in 0.. {
        if size >= bytes {
            break;
        }
        let turn = (shape.turn)(&HistoryTurn::new(number));
        size += length(&turn);
        history.extend(turn);
    }
    body[shape.history] = Value::Array(history);
    body.to_string().into_bytes()
}

/// Returns the texts of a request in order: all strings of more than 24 bytes, which excludes names and markers.
pub fn texts(request: &[u8]) -> Vec<String> {
    fn walk(value: Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.len() > 24 => found.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| walk(item, found)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, field)| walk(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(serde_json::from_slice(request).expect("it is JSON"), &mut found);
    found
}

/// Returns the encoded size of the items in a list.
fn length(items: &[Value]) -> usize {
    items.iter().map(|item| item.to_string().len() + 1).sum()
}

/// One turn of a history: text and a tool call by the model, and the result.
struct HistoryTurn {
    number: usize,
    said: String,
    tool: usize,
    path: String,
    command: String,
    result: String,
}

impl HistoryTurn {
    fn new(number: usize) -> Self {
        let mut random = Random::new(number as u64);
        let path = format!("/work/project/src/{}/{}.rs", random.word(), random.word());
        // Mostly short results, sometimes a whole file.
        let lines = if number % 5 == 4 { 120 } else { 10 + random.below(40) };
        Self {
            number,
            said: random.sentences(1 + number % 3),
            tool: random.below(TOOLS),
            command: format!("cargo test -p {} -- {} 2>&1 | tail -n {}", random.word(), random.word(), lines),
            result: random.code(lines),
            path,
        }
    }

    fn call(&self) -> String {
        format!("call_{:06x}", self.number * 7919 + 17)
    }

    fn arguments(&self) -> Value {
        json!({"file_path": self.path, "command": self.command, "limit": 200})
    }
}

/// Format of a dialect.
struct Shape {
    history: &'static str,
    /// Builds the request without history.
    frame: fn() -> Value,
    ask: fn(&str) -> Value,
    turn: fn(&HistoryTurn) -> Vec<Value>,
}

fn shape(dialect: &str) -> Shape {
    match dialect {
        "anthropic" => Shape {
            history: "messages",
            frame: || {
                json!({
                    "model": "claude-sonnet-4-5-20250929", "max_tokens": 32000, "stream": true, "messages": [],
                    "system": [
                        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197; cc_entrypoint=cli;"},
                        {"type": "text", "text": guide(), "cache_control": {"type": "ephemeral"}},
                    ],
                    "tools": tools(|name, description, schema| {
                        json!({"name": name, "description": description, "input_schema": schema})
                    }),
                    "metadata": {"user_id": "user_0_account__session_00000000-0000-4000-8000-000000000000"},
                })
            },
            ask: |text| json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            turn: |turn| {
                vec![
                    json!({"role": "assistant", "content": [
                        {"type": "text", "text": turn.said},
                        {"type": "tool_use", "id": turn.call(), "name": tool_name(turn.tool), "input": turn.arguments()},
                    ]}),
                    json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": turn.call(), "content": turn.result},
                    ]}),
                ]
            },
        },
        "openai-chat" => Shape {
            history: "messages",
            frame: || {
                json!({
                    "model": "gpt-4.1", "stream": true, "stream_options": {"include_usage": true}, "tool_choice": "auto",
                    "messages": [{"role": "system", "content": guide()}],
                    "tools": tools(|name, description, schema| {
                        json!({"type": "function", "function":
                            {"name": name, "description": description, "parameters": schema}})
                    }),
                })
            },
            ask: |text| json!({"role": "user", "content": text}),
            turn: |turn| {
                vec![
                    json!({"role": "assistant", "content": turn.said, "tool_calls": [{"id": turn.call(), "type": "function",
                        "function": {"name": tool_name(turn.tool), "arguments": turn.arguments().to_string()}}]}),
                    json!({"role": "tool", "tool_call_id": turn.call(), "content": turn.result}),
                ]
            },
        },
        "openai-responses" => Shape {
            history: "input",
            frame: || {
                json!({
                    "model": "gpt-5.5", "instructions": guide(), "input": [], "store": false, "stream": true,
                    "include": ["reasoning.encrypted_content"], "parallel_tool_calls": true,
                    "prompt_cache_key": "00000000-0000-7000-8000-000000000000",
                    "tools": tools(|name, description, schema| {
                        json!({"type": "function", "name": name, "description": description, "parameters": schema})
                    }),
                })
            },
            ask: |text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
            turn: |turn| {
                vec![
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn.said}]}),
                    json!({"type": "function_call", "call_id": turn.call(), "name": tool_name(turn.tool),
                        "arguments": turn.arguments().to_string()}),
                    json!({"type": "function_call_output", "call_id": turn.call(), "output": turn.result}),
                ]
            },
        },
        "gemini" => Shape {
            history: "contents",
            frame: || {
                json!({
                    "contents": [], "systemInstruction": {"role": "user", "parts": [{"text": guide()}]},
                    "tools": [{"functionDeclarations": tools(|name, description, schema| {
                        json!({"name": name, "description": description, "parametersJsonSchema": schema})
                    })}],
                    "generationConfig": {"temperature": 1, "topP": 0.95, "topK": 64},
                })
            },
            ask: |text| json!({"role": "user", "parts": [{"text": text}]}),
            turn: |turn| {
                vec![
                    json!({"role": "model", "parts": [
                        {"text": turn.said},
                        {"functionCall": {"name": tool_name(turn.tool), "args": turn.arguments()}},
                    ]}),
                    json!({"role": "user", "parts": [{"functionResponse":
                        {"name": tool_name(turn.tool), "response": {"output": turn.result}}}]}),
                ]
            },
        },
        other => panic!("no dialect `{other}`, only {DIALECTS:?}"),
    }
}

/// Generates a system prompt of about 12 kB.
fn guide() -> String {
    let mut random = Random::new(1 << 40);
    let chapters = (0..12).map(|number| format!("# Part {number}\n\n{}\n\n", random.sentences(14)));
    chapters.collect()
}

fn tool_name(number: usize) -> String {
    let mut random = Random::new((1 << 41) + number as u64);
    format!("{}_{}_{number}", random.word(), random.word())
}

fn tools(spell: fn(String, String, Value) -> Value) -> Value {
    let tool = |number: usize| {
        let mut random = Random::new((1 << 42) + number as u64);
        let fields = (0..6).map(|field| {
            let name = format!("{}_{field}", random.word());
            (name, json!({"type": "string", "description": random.sentences(2)}))
        });
        let properties: serde_json::Map<_, _> = fields.collect();
        let required: Vec<&String> = properties.keys().take(2).collect();
        let schema = json!({"type": "object", "required": required, "properties": properties});
        spell(tool_name(number), random.sentences(26), schema)
    };
    (0..TOOLS).map(tool).collect()
}

/// A pseudo-random generator (xorshift). Its values never change with the version of a crate.
struct Random(u64);

const WORDS: [&str; 48] = [
    "module", "value", "request", "header", "buffer", "token", "parser", "reader", "index", "length", "total", "count",
    "result", "error", "config", "session", "stream", "window", "branch", "commit", "review", "change", "section",
    "context", "cache", "policy", "answer", "agent", "path", "file", "line", "word", "table", "column", "entry",
    "list", "queue", "event", "state", "option", "first", "last", "next", "open", "close", "write", "apply", "check",
];

const GLUE: [&str; 20] = [
    "the", "a", "of", "to", "and", "is", "in", "that", "for", "with", "as", "by", "not", "when", "before", "after",
    "each", "only", "must", "may",
];

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    fn sentences(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            let words = 6 + self.below(10);
            for at in 0..words {
                let word = if at % 2 == 0 { GLUE[self.below(GLUE.len())] } else { self.word() };
                if at == 0 {
                    text.push_str(&word[..1].to_ascii_uppercase());
                    text.push_str(&word[1..]);
                } else {
                    text.push(' ');
                    text.push_str(word);
                }
            }
            text.push_str(". ");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Generates numbered source lines with characters that JSON must escape.
    fn code(&mut self, lines: usize) -> String {
        let mut text = String::new();
        for number in 1..=lines {
            let indent = "    ".repeat(self.below(4));
            let [one, two, three] = [self.word(), self.word(), self.word()];
            let line = match self.below(8) {
                0 => format!("{indent}let {one} = self.{two}.{three}(\"{one} {two}\\n\")?;"),
                1 => format!("{indent}if {one}.len() > {} {{", self.below(1000)),
                2 => format!("{indent}}}"),
                3 => format!("{indent}// The {one} is {two} before the {three} — so it stays."),
                4 => format!("{indent}pub fn {one}_{two}(&self, {three}: &str) -> Result<usize, Error> {{"),
                5 => format!("{indent}assert_eq!({one}[{}], b'\\t', \"{two} of {three}\");", self.below(64)),
                6 => String::new(),
                _ => format!("{indent}{one}.push({two}::new({three}, {:#x}));", self.below(1 << 20)),
            };
            text.push_str(&format!("{number:>6}\t{line}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_deterministic_and_have_requested_size() {
        for dialect in DIALECTS {
            let first = agent_request(dialect, 0).len();
            assert!((60_000..80_000).contains(&first), "{dialect}: {first}");
            for size in [80_000, 300_000, 1_000_000] {
                let request = agent_request(dialect, size);
                assert!((size..size + 16_000).contains(&request.len()), "{dialect}: {} of {size}", request.len());
                assert_eq!(request, agent_request(dialect, size));
            }
        }
    }

    #[test]
    fn longer_request_extends_shorter_request() {
        for dialect in DIALECTS {
            let [short, long] = [200_000, 210_000].map(|size| texts(&agent_request(dialect, size)));
            assert!(short.iter().all(|text| long.contains(text)));
            assert!(long.len() > short.len());
        }
    }

    #[test]
    fn requests_have_all_tools() {
        for dialect in DIALECTS {
            let request: Value = serde_json::from_slice(&agent_request(dialect, 80_000)).unwrap();
            let tools =
                if dialect == "gemini" { &request["tools"][0]["functionDeclarations"] } else { &request["tools"] };
            assert_eq!(tools.as_array().unwrap().len(), TOOLS);
        }
    }
}
