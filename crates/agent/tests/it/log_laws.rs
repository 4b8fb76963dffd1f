//! Laws of the log: every prefix gives a request in which each call has exactly one result.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sayso_agent::dialect::{RequestParts, build_request};
use sayso_agent::event::FinishedReason;
use sayso_agent::log::{
    AssistantBlock, AssistantMessage, CallKind, Completeness, HistoryItem, RecordedResult, SignatureKind, SignedData,
    ToolCallBlock,
};
use sayso_agent::{Entry, EntryBody, History, LogEntry, Prompt};
use sayso_wire::dialect::ItemKind;
use sayso_wire::stream::Api;
use sayso_wire::{ModelRequest, RequestHead};

use super::scene::{name, settings};

fn path(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "/v1/messages",
        Api::OpenAiChat => "/v1/chat/completions",
        Api::OpenAiResponses => "/v1/responses",
        Api::Gemini => "/v1beta/models/gemini-2.5-test:streamGenerateContent?alt=sse",
    }
}

/// Panics if a request has a problem, or a call without exactly one result.
pub(crate) fn check_request(api: Api, body: &[u8]) {
    let request = ModelRequest::new("r", RequestHead::new(path(api)), body.to_vec());
    let text = String::from_utf8_lossy(body);
    let problems: Vec<String> = request.problems().into_iter().map(|problem| problem.message).collect();
    assert!(problems.is_empty(), "{}: {problems:?}\n{text}", name(api));
    let (mut calls, mut results) = (BTreeMap::new(), BTreeMap::new());
    for item in request.dialect().unwrap().messages(request.document().unwrap()) {
        match item.kind {
            ItemKind::Call { id, .. } => *calls.entry(id).or_insert(0) += 1,
            ItemKind::Result { id } => *results.entry(id).or_insert(0) += 1,
            _ => {}
        }
    }
    assert_eq!(calls, results, "{}: {text}", name(api));
    assert!(api == Api::Gemini || calls.values().all(|count| *count == 1), "{}: {text}", name(api));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("  \n".to_owned()), "[a-z ]{1,12}", Just("\u{202e}\"\\\u{0}é".to_owned())]
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"path":"a"}"#.to_owned()),
        Just(String::new()),
        Just("{broken".to_owned()),
        Just("[1]".to_owned())
    ]
}

fn signatures() -> impl Strategy<Value = Vec<SignedData>> {
    let kind =
        prop_oneof![Just(SignatureKind::Signature), Just(SignatureKind::Encrypted), Just(SignatureKind::Redacted)];
    prop::collection::vec((kind, "[a-z]{1,4}").prop_map(|(kind, data)| SignedData { kind, data }), 0..2)
}

fn block() -> impl Strategy<Value = AssistantBlock> {
    let kind = prop_oneof![4 => Just(CallKind::Function), 1 => Just(CallKind::Custom)];
    prop_oneof![
        (text(), signatures()).prop_map(|(text, signatures)| AssistantBlock::Text { text, signatures }),
        (text(), signatures()).prop_map(|(text, signatures)| AssistantBlock::Thinking { text, signatures }),
        (kind, arguments(), signatures()).prop_map(|(kind, arguments, signatures)| {
            let (id, name) = (String::new(), "Read".to_owned());
            AssistantBlock::ToolCall(ToolCallBlock { id, name, kind, arguments, signatures })
        }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let api = prop::sample::select(Api::ALL.to_vec());
    let completeness = prop_oneof![Just(Completeness::Complete), Just(Completeness::Partial)];
    let assistant = (api.clone(), prop::collection::vec(block(), 0..4), completeness).prop_map(
        |(dialect, blocks, completeness)| {
            Entry::Assistant(AssistantMessage {
                dialect,
                model: super::scene::model_of(dialect).to_owned(),
                blocks,
                completeness,
                usage: sayso_review::TokenUsage::default(),
                request: None,
            })
        },
    );
    let result = (0_usize..12, text()).prop_map(|(call, text)| {
        let call = format!("c{call}");
        Entry::Result(RecordedResult { call, text, is_error: false, images: Vec::new(), change: None })
    });
    prop_oneof![
        3 => text().prop_map(|text| Entry::Prompt(Prompt::text(text))),
        6 => assistant,
        6 => result,
        1 => text().prop_map(|text| Entry::Message { text, change: None }),
        1 => text().prop_map(|text| Entry::Notice { text }),
        1 => prop::collection::vec(0_usize..12, 0..3)
            .prop_map(|calls| Entry::Pruned { calls: calls.iter().map(|call| format!("c{call}")).collect() }),
        1 => ("[a-z]{1,9}", 0_usize..5).prop_map(|(summary, kept)| Entry::Compacted { summary, kept, request: None }),
        1 => api.prop_map(|api| Entry::Settings { settings: settings(api, "CODE") }),
        1 => Just(Entry::InvocationEnded {
            invocation: "i1".to_owned(),
            reason: Some(FinishedReason::Interrupted),
            error: String::new(),
        }),
    ]
}

/// Gives each call the id that the session would choose: unique in the log.
fn with_ids(mut entries: Vec<Entry>) -> Vec<LogEntry> {
    let mut next = 0;
    for entry in &mut entries {
        let Entry::Assistant(message) = entry else { continue };
        for block in &mut message.blocks {
            if let AssistantBlock::ToolCall(call) = block {
                call.id = format!("c{next}");
                next += 1;
            }
        }
    }
    let first = Entry::Prompt(Prompt::text("start"));
    std::iter::once(first).chain(entries).map(|entry| LogEntry::new(0, entry)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_gives_a_valid_request(entries in prop::collection::vec(entry(), 0..14)) {
        let log = with_ids(entries);
        let mut incremental = History::default();
        for (index, entry) in log.iter().enumerate() {
            incremental.apply(entry);
            let history = History::fold(&log[..=index]);
            prop_assert_eq!(&history, &incremental);
            for api in Api::ALL {
                let settings = settings(api, "CODE");
                let parts = RequestParts {
                    settings: &settings,
                    instructions: "Be brief.",
                    tools: &[],
                    max_output_tokens: 100,
                    cache_key: "s1",
                };
                check_request(api, &build_request(&history, &parts).body);
            }
        }
    }

    #[test]
    fn entries_survive_their_json(entries in prop::collection::vec(entry(), 0..6)) {
        for entry in with_ids(entries) {
            prop_assert_eq!(LogEntry::from_json(&entry.to_json()).unwrap(), entry);
        }
    }
}

#[test]
fn unknown_entry_survives_without_effect() {
    let text = r#"{"version":9,"time_ms":5,"entry":"rewound","to":{"turn":3},"note":null}"#;
    let entry = LogEntry::from_json(text).unwrap();
    assert!(matches!(&entry.body, EntryBody::Unknown(members) if members["to"]["turn"] == 3));
    let again: serde_json::Value = serde_json::from_str(&entry.to_json()).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
    assert_eq!(History::fold([&entry]), History::default());
}

#[test]
fn late_result_does_not_replace_the_first() {
    let message = AssistantMessage {
        dialect: Api::OpenAiChat,
        model: "m".to_owned(),
        blocks: vec![AssistantBlock::ToolCall(ToolCallBlock {
            id: "c".to_owned(),
            name: "Read".to_owned(),
            kind: CallKind::Function,
            arguments: "{}".to_owned(),
            signatures: Vec::new(),
        })],
        completeness: Completeness::Complete,
        usage: sayso_review::TokenUsage::default(),
        request: None,
    };
    let result = |text: &str| {
        let text = text.to_owned();
        Entry::Result(RecordedResult { call: "c".to_owned(), text, is_error: false, images: Vec::new(), change: None })
    };
    let entries = [Entry::Assistant(message), result("cancelled"), result("late")].map(|entry| LogEntry::new(0, entry));
    let history = History::fold(&entries);
    let HistoryItem::Assistant { results, .. } = &history.items()[0] else { panic!("no message") };
    assert_eq!(results[0].as_ref().unwrap().text, "cancelled");
    assert!(history.dangling_calls().is_empty());
}
