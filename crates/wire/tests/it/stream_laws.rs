//! Laws for arbitrary streams and scripts.

use proptest::prelude::*;
use sayso_wire::stream::collect::{BlockContent, CallState, from_body, from_stream, may_contain_tool_call};
use sayso_wire::stream::{
    Api, Collector, FinishReason, ModelResponse, ModelScript, OpaqueKind, Positioned, ResponseBlock, ScriptBlock,
    ScriptEnding, StreamEvent, StreamProblem, ToolKind, Usage,
};

use crate::stream_corpus::{render, streams};

fn pieces() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[a-zé😀\"\\\\\n\r\t\u{0}/{}\\[\\]: ]{1,12}", 1..5)
}

/// Generates a JSON object in pieces.
fn argument_pieces() -> impl Strategy<Value = Vec<String>> {
    (proptest::collection::btree_map("[a-z]{1,5}", ".{0,20}", 0..4), 1_usize..12).prop_map(|(members, size)| {
        let text = serde_json::to_string(&members).unwrap();
        let characters: Vec<char> = text.chars().collect();
        characters.chunks(size).map(|chunk| chunk.iter().collect()).collect()
    })
}

fn call(api: Api) -> impl Strategy<Value = ScriptBlock> {
    let custom = matches!(api, Api::OpenAiChat | Api::OpenAiResponses);
    let opaque = proptest::option::of("[A-Za-z0-9+/]{1,20}");
    ("[a-z_]{1,8}", argument_pieces(), pieces(), any::<bool>(), opaque).prop_map(
        move |(name, json, text, odd, opaque)| {
            let kind = if odd && custom { ToolKind::Custom } else { ToolKind::Function };
            let pieces = if kind == ToolKind::Custom { text } else { json };
            let opaque = opaque.filter(|_| api == Api::Gemini);
            ScriptBlock::ToolCall { id: String::new(), name, kind, pieces, opaque }
        },
    )
}

/// Generates scripts that a dialect can represent: reasoning, then text, then calls, repeated if blocks are ordered.
fn script(api: Api) -> impl Strategy<Value = ModelScript> {
    let opaque = proptest::option::of("[A-Za-z0-9+/=]{1,30}");
    let thinking = (pieces(), opaque).prop_map(move |(pieces, opaque)| ScriptBlock::Thinking {
        pieces,
        opaque: opaque.filter(|_| api != Api::OpenAiChat),
    });
    let text = pieces().prop_map(|pieces| ScriptBlock::Text { pieces });
    let round = (
        proptest::option::of(thinking),
        proptest::option::of(text),
        proptest::collection::vec(call(api), 0..3),
        any::<bool>(),
    )
        .prop_map(move |(thinking, text, calls, redacted)| {
            let redacted = (redacted && api == Api::AnthropicMessages)
                .then(|| ScriptBlock::Redacted { data: "EmwKAhgB".to_owned() });
            thinking.into_iter().chain(redacted).chain(text).chain(calls).collect::<Vec<_>>()
        });
    let counts = (0_u64..1_000_000, 0_u64..1_000_000, 0_u64..1000, 0_u64..1000);
    let finish = prop_oneof![Just(FinishReason::EndTurn), Just(FinishReason::MaxTokens), Just(FinishReason::Refusal)];
    (proptest::collection::vec(round, 1..3), counts, finish).prop_map(move |(mut rounds, counts, finish)| {
        if api == Api::OpenAiChat {
            rounds.truncate(1);
        }
        let mut blocks: Vec<ScriptBlock> = rounds.concat();
        // Without block numbers, two consecutive blocks of one kind are one block.
        let same = |a: &ScriptBlock, b: &ScriptBlock| std::mem::discriminant(a) == std::mem::discriminant(b);
        blocks.dedup_by(|a, b| api == Api::Gemini && !matches!(a, ScriptBlock::ToolCall { .. }) && same(a, b));
        let mut calls = 0;
        for block in &mut blocks {
            if let ScriptBlock::ToolCall { id, .. } = block {
                calls += 1;
                *id = format!("call_{calls}");
            }
        }
        let (input, output, cached, other) = counts;
        let usage = Usage {
            input: Some(input),
            output: Some(output),
            cache_read: Some(cached),
            cache_written: (api == Api::AnthropicMessages).then_some(other),
            reasoning: (api != Api::AnthropicMessages).then_some(other),
        };
        let finish = if calls > 0 && finish == FinishReason::EndTurn { FinishReason::ToolUse } else { finish };
        let ending = ScriptEnding::Finished(finish);
        ModelScript { id: "answer_1".to_owned(), model: "a-model".to_owned(), blocks, usage, ending }
    })
}

fn any_script() -> impl Strategy<Value = (Api, ModelScript)> {
    prop_oneof![
        script(Api::AnthropicMessages).prop_map(|script| (Api::AnthropicMessages, script)),
        script(Api::OpenAiChat).prop_map(|script| (Api::OpenAiChat, script)),
        script(Api::OpenAiResponses).prop_map(|script| (Api::OpenAiResponses, script)),
        script(Api::Gemini).prop_map(|script| (Api::Gemini, script)),
    ]
}

/// Returns the expected blocks of a script's response.
fn expected(api: Api, script: &ModelScript) -> Vec<ResponseBlock> {
    let kind = if api == Api::OpenAiResponses { OpaqueKind::Encrypted } else { OpaqueKind::Signature };
    let opaque = |data: &Option<String>| data.iter().map(|data| (kind, data.clone())).collect();
    let block = |block: &ScriptBlock| match block {
        ScriptBlock::Text { pieces } => {
            ResponseBlock { content: BlockContent::Text(pieces.concat()), opaque: Vec::new() }
        }
        ScriptBlock::Thinking { pieces, opaque: data } => {
            ResponseBlock { content: BlockContent::Thinking(pieces.concat()), opaque: opaque(data) }
        }
        ScriptBlock::Redacted { data } => ResponseBlock {
            content: BlockContent::Thinking(String::new()),
            opaque: vec![(OpaqueKind::Redacted, data.clone())],
        },
        ScriptBlock::ToolCall { id, name, kind, pieces, opaque: data } => ResponseBlock {
            content: BlockContent::ToolCall {
                id: id.clone(),
                name: name.clone(),
                kind: *kind,
                arguments: pieces.concat(),
                state: CallState::Complete,
            },
            opaque: opaque(data),
        },
    };
    script.blocks.iter().map(block).collect()
}

fn same_answer(api: Api, script: &ModelScript, answer: &ModelResponse) -> Result<(), TestCaseError> {
    prop_assert_eq!(&answer.blocks, &expected(api, script));
    prop_assert_eq!((&*answer.id, &*answer.model), ("answer_1", "a-model"));
    prop_assert_eq!(answer.usage, script.usage);
    let finish = answer.finish.as_ref().map(|(_, finish)| ScriptEnding::Finished(*finish));
    prop_assert_eq!(finish, Some(script.ending.clone()));
    prop_assert_eq!(&answer.problems, &Vec::<StreamProblem>::new());
    prop_assert_eq!(&answer.error, &None);
    Ok(())
}

proptest! {
    #[test]
    fn encoded_scripts_decode_to_themselves((api, script) in any_script()) {
        same_answer(api, &script, &from_stream(api, &api.encode(&script)))?;
        let body = api.encode_body(&script);
        let answer = from_body(api, &body).unwrap();
        same_answer(api, &script, &answer)?;
        let calls = answer.blocks.iter().any(|block| matches!(block.content, BlockContent::ToolCall { .. }));
        prop_assert!(may_contain_tool_call(api, &body) || !calls, "a call is not missed");
    }

    #[test]
    fn keep_alives_do_not_affect_response((api, script) in any_script(), every in 1_usize..4) {
        let mut bytes = api.keep_alive().to_vec();
        for (number, event) in api.encode_events(&script).iter().enumerate() {
            bytes.extend_from_slice(event);
            if number % every == 0 {
                bytes.extend_from_slice(api.keep_alive());
            }
        }
        let mut kept = 0;
        let mut decoder = api.decoder();
        decoder.feed(&bytes, &mut |positioned| kept += usize::from(positioned.event == StreamEvent::KeepAlive));
        prop_assert!(kept >= 2);
        same_answer(api, &script, &from_stream(api, &bytes))?;
    }

    #[test]
    fn chunk_boundaries_do_not_matter((api, script) in any_script(), sizes in proptest::collection::vec(1_usize..200, 1..5)) {
        let bytes = api.encode(&script);
        let whole = render(api, &bytes, bytes.len());
        for size in sizes {
            prop_assert_eq!(render(api, &bytes, size), &*whole);
        }
    }

    #[test]
    fn fast_path_equals_full_decode((api, script) in any_script(), every in 1_usize..4) {
        // Additional spaces only prevent the fast path.
        let text = String::from_utf8(api.encode(&script)).unwrap();
        let mut number = 0;
        let spaced: String = text
            .split_inclusive("data: {")
            .map(|part| {
                number += 1;
                if part.ends_with('{') && number % every == 0 { format!("{part}{}", " ".repeat(number)) } else { part.to_owned() }
            })
            .collect();
        let without_ranges = |text: &str| -> Vec<String> {
            let told = render(api, text.as_bytes(), text.len());
            told.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).filter(|line| !line.contains("\"other\"")).collect()
        };
        prop_assert_eq!(without_ranges(&spaced), without_ranges(&text));
    }

    #[test]
    fn broken_stream_decodes_alike_in_any_chunks(
        number in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        end in any::<prop::sample::Index>(),
        size in 1_usize..100,
    ) {
        let streams = streams();
        let (api, _, mut bytes) = streams[number.index(streams.len())].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.index(bytes.len()).max(1));
        prop_assert_eq!(render(api, &bytes, size), render(api, &bytes, bytes.len()));
    }

    #[test]
    fn arbitrary_streams_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), json in ".{0,60}") {
        for api in Api::ALL {
            from_stream(api, &bytes);
            let _ = from_body(api, &bytes);
            let _ = from_body(api, json.as_bytes());
            from_stream(api, format!("data: {json}\n\n").as_bytes());
        }
    }
}

/// Returns the pieces of a block with 50 MB of arguments, and its start event.
fn open_block(api: Api) -> (Vec<Vec<u8>>, Vec<u8>) {
    let piece = "x".repeat(4000);
    let block = ScriptBlock::ToolCall {
        id: "call_1".to_owned(),
        name: "write".to_owned(),
        kind: ToolKind::Function,
        pieces: vec![piece.clone()],
        opaque: None,
    };
    // Gemini sends calls in one piece, so the open block is text.
    let block = if api == Api::Gemini { ScriptBlock::Text { pieces: vec![piece.clone()] } } else { block };
    let script = ModelScript {
        id: "answer_1".to_owned(),
        model: "a-model".to_owned(),
        blocks: vec![block],
        usage: Usage::default(),
        ending: ScriptEnding::ConnectionLost,
    };
    let mut events = api.encode_events(&script);
    let at = events.iter().position(|event| event.windows(piece.len()).any(|window| window == piece.as_bytes()));
    let at = at.expect("the piece is in the stream");
    let repeated = events[at].clone();
    events.truncate(at);
    (events, repeated)
}

#[test]
fn large_open_block_does_not_grow_decoder() {
    for api in Api::ALL {
        let (opening, piece) = open_block(api);
        let mut decoder = api.decoder();
        for event in &opening {
            decoder.feed(event, &mut |_| {});
        }
        let mut length = 0;
        for _ in 0..=50_000_000 / 4000 {
            // Split each event, so that a part of it is buffered.
            let (first, second) = piece.split_at(piece.len() / 2);
            for part in [first, second] {
                decoder.feed(part, &mut |Positioned { event, .. }| {
                    if let StreamEvent::Text { text: piece, .. } | StreamEvent::ToolArguments { piece, .. } = event {
                        length += piece.len();
                    }
                });
                assert!(decoder.retained() < 64 << 10, "{api:?} holds {} bytes", decoder.retained());
            }
        }
        assert!(length > 50_000_000, "{api:?}: {length}");
    }
}

#[test]
fn mid_stream_error_keeps_earlier_content() {
    for api in Api::ALL {
        let script = ModelScript {
            id: "answer_1".to_owned(),
            model: "a-model".to_owned(),
            blocks: vec![ScriptBlock::Text { pieces: vec!["Half a".to_owned()] }],
            usage: Usage::default(),
            ending: ScriptEnding::Failed { status: 529, message: "Overloaded".to_owned() },
        };
        let answer = from_stream(api, &api.encode(&script));
        assert_eq!(answer.blocks[0].content, BlockContent::Text("Half a".to_owned()), "{api:?}");
        assert_eq!(answer.error.as_ref().map(|(_, message)| &**message), Some("Overloaded"), "{api:?}");
    }
}

#[test]
fn invalid_body_is_an_error() {
    for api in Api::ALL {
        for (body, part) in [("<html>", "not JSON"), ("{}", "neither a response"), ("[1]", "neither a response")] {
            let error = from_body(api, body.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert!(!error.hint().is_empty());
        }
    }
}

#[test]
fn text_without_escapes_is_borrowed_from_the_chunk() {
    let bytes = collect_pieces();
    let within = |text: &str| {
        let (start, end) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
        (start..end).contains(&(text.as_ptr() as usize))
    };
    let mut seen = 0;
    Api::AnthropicMessages.decoder().feed(&bytes, &mut |positioned| {
        if let StreamEvent::Text { text, .. } = positioned.event {
            seen += 1;
            assert!(within(&text));
        }
    });
    assert_eq!(seen, 1);
}

fn collect_pieces() -> Vec<u8> {
    let data = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"no escapes, é"}}"#;
    format!("event: content_block_delta\ndata: {data}\n\n").into_bytes()
}

#[test]
fn collector_returns_partial_response() {
    let mut collector = Collector::default();
    collector.push(StreamEvent::Text { block: 0, text: "so far".into() });
    assert_eq!(collector.response().blocks[0].content, BlockContent::Text("so far".to_owned()));
    assert_eq!(collector.response().finish, None);
}
