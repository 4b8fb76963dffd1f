//! Streams as the APIs send them, and their decoded events.

use std::fmt::Write as _;
use std::path::PathBuf;

use sayso_wire::stream::collect::{BlockContent, CallState, from_stream};
use sayso_wire::stream::{Api, FinishReason, Positioned, StreamEvent, StreamProblem};

fn folder(api: Api) -> PathBuf {
    let name = match api {
        Api::AnthropicMessages => "anthropic",
        Api::OpenAiChat => "chat",
        Api::OpenAiResponses => "responses",
        Api::Gemini => "gemini",
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/streams").join(name)
}

pub(crate) fn stream(api: Api, name: &str) -> Vec<u8> {
    std::fs::read(folder(api).join(name).with_extension("sse")).expect(name)
}

/// Returns every stream of the corpus.
pub(crate) fn streams() -> Vec<(Api, String, Vec<u8>)> {
    let mut streams = Vec::new();
    for api in Api::ALL {
        let mut names: Vec<String> = std::fs::read_dir(folder(api))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        assert!(names.len() >= 5, "{api:?} has too few streams");
        streams.extend(names.into_iter().map(|name| {
            let bytes = stream(api, &name);
            (api, name, bytes)
        }));
    }
    streams
}

/// Renders a stream with one line per event.
pub(crate) fn render(api: Api, bytes: &[u8], chunk: usize) -> String {
    let mut decoder = api.decoder();
    let mut told = String::new();
    let mut take = |Positioned { range, event }: Positioned<StreamEvent<'_>>| {
        let event = serde_json::to_string(&event).unwrap();
        writeln!(told, "{}..{} {event}", range.start, range.end).unwrap();
    };
    for chunk in bytes.chunks(chunk) {
        decoder.feed(chunk, &mut take);
    }
    decoder.end(&mut take);
    told
}

#[test]
fn corpus_streams_decode_as_reviewed() {
    for (api, name, bytes) in streams() {
        insta::assert_snapshot!(format!("stream_{api:?}_{name}"), render(api, &bytes, bytes.len()));
    }
}

#[test]
fn corpus_streams_decode_byte_by_byte() {
    for (api, name, bytes) in streams() {
        let whole = render(api, &bytes, bytes.len());
        for chunk in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(render(api, &bytes, chunk), whole, "{api:?} {name} in chunks of {chunk}");
        }
    }
}

#[test]
fn corpus_streams_decode_with_other_line_ends() {
    for (api, name, bytes) in streams() {
        let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        let without_ranges = |text: &str| -> Vec<String> {
            let told = render(api, text.as_bytes(), 5);
            told.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
        };
        let plain = without_ranges(&text);
        assert_eq!(without_ranges(&text.replace('\n', "\r\n")), plain, "{api:?} {name}");
        assert_eq!(without_ranges(&text.replace('\n', "\r")), plain, "{api:?} {name}");
    }
}

#[test]
fn truncated_call_is_never_complete() {
    for (api, name) in
        [(Api::AnthropicMessages, "cut_in_a_call"), (Api::OpenAiChat, "cut"), (Api::OpenAiResponses, "cut")]
    {
        let answer = from_stream(api, &stream(api, name));
        assert!(answer.problems.contains(&StreamProblem::Truncated { open: 1 }), "{api:?}");
        assert_eq!(answer.finish, None);
        let last = &answer.blocks.last().unwrap().content;
        assert!(matches!(last, BlockContent::ToolCall { state: CallState::Open, .. }), "{api:?}: {last:?}");
    }
}

#[test]
fn call_without_pieces_has_empty_object() {
    let stream = br#"data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_stop","index":0}

"#;
    let answer = from_stream(Api::AnthropicMessages, stream);
    let BlockContent::ToolCall { arguments, state, .. } = &answer.blocks[0].content else { panic!("{answer:?}") };
    assert_eq!((&**arguments, *state), ("{}", CallState::Complete));
}

#[test]
fn replaced_call_is_a_problem() {
    let start = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#;
    let anthropic = format!("{start}\n\n{start}\n\n");
    let start = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"t","name":"n"}}"#;
    let responses = format!("{start}\n\n{start}\n\n");
    for (api, stream) in [(Api::AnthropicMessages, anthropic), (Api::OpenAiResponses, responses)] {
        assert_eq!(
            from_stream(api, stream.as_bytes()).problems,
            [StreamProblem::Contradiction { block: 0 }],
            "{api:?}"
        );
    }
}

#[test]
fn collected_calls_match_client_calls() {
    let answer = from_stream(Api::OpenAiResponses, &stream(Api::OpenAiResponses, "said_twice_differently"));
    assert_eq!(answer.problems, [StreamProblem::Contradiction { block: 0 }]);
    let BlockContent::ToolCall { arguments, .. } = &answer.blocks[0].content else { panic!("{answer:?}") };
    assert_eq!(arguments, r#"{"cmd":"rm -r /"}"#);
    assert_eq!(answer.finish, Some(("max_output_tokens".to_owned(), FinishReason::MaxTokens)));
}

#[test]
fn call_completes_at_its_completing_event() {
    // The text of the event that completes each call.
    for (api, name, completing) in [
        (Api::AnthropicMessages, "thinking_and_tools", ["content_block_stop", "content_block_stop"]),
        // More arguments of the first call may follow after the start of the second.
        (Api::OpenAiChat, "parallel_calls", ["\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"tool_calls\""]),
        (Api::OpenAiResponses, "reasoning_and_calls", ["arguments.done", "arguments.done"]),
        (Api::Gemini, "thinking_and_calls", ["write_file", "write_file"]),
    ] {
        let bytes = stream(api, name);
        let mut found = Vec::new();
        let mut decoder = api.decoder();
        for (at, byte) in bytes.iter().enumerate() {
            decoder.feed(&[*byte], &mut |Positioned { range, event }| {
                assert_eq!(range.end, at as u64 + 1, "everything is said at once");
                if let StreamEvent::ToolCallComplete { .. } = event {
                    found.push(String::from_utf8_lossy(&bytes[range.start as usize..range.end as usize]).into_owned());
                }
            });
        }
        assert!(found.len() >= 2, "{api:?}");
        for (event, part) in found.iter().zip(completing) {
            assert!(event.contains(part), "{api:?}: {part} is not in {event}");
            assert!(event.starts_with("event:") || event.starts_with("data:"), "a range begins with an event: {event}");
            assert!(event.ends_with("\n\n") || event.ends_with("\r\n\r\n"), "a range ends with an event: {event}");
        }
    }
}
