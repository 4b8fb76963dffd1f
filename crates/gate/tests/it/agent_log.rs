//! The log of the built-in agent: order, contents, clearing and retention.

use sayso_gate::{Engine, NewAgentEntry, NewSession};
use sayso_review::AgentEntryKind;
use serde_json::{Value, json};

use crate::Scene;

fn record(engine: &mut Engine, session: &str, kind: AgentEntryKind, content: &Value, now: i64) -> u64 {
    engine.record_agent_entries(&[NewAgentEntry { session, kind, version: 1, content }], now).unwrap()
}

fn log(engine: &Engine, session: &str) -> Vec<Option<Value>> {
    engine.history().agent_log(session, 0, 100).unwrap().into_iter().map(|entry| entry.content).collect()
}

fn start(engine: &mut Engine, session: &str) {
    engine.start_session(NewSession { session: session.to_owned(), ..NewSession::default() }, 1).unwrap();
}

fn large() -> Value {
    json!({"text": "a".repeat(100_000)})
}

#[test]
fn agent_log_survives_reopening_in_order() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let steps = [json!({"text": "small"}), large(), json!({"text": "last"})];
    for step in &steps {
        record(&mut engine, "s", AgentEntryKind::Log, step, 2);
        record(&mut engine, "other", AgentEntryKind::Log, &json!(0), 2);
    }
    drop(engine);
    let engine = scene.engine();
    assert_eq!(log(&engine, "s"), steps.map(Some));
    let first = engine.history().agent_log("s", 0, 1).unwrap();
    assert_eq!(engine.history().agent_log("s", first[0].number, 100).unwrap().len(), 2);
}

#[test]
fn last_settings_and_todos_replace_earlier_ones() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    for number in 1..=3 {
        record(&mut engine, "s", AgentEntryKind::Settings, &json!(number), 2);
        record(&mut engine, "s", AgentEntryKind::Todos, &json!([number]), 2);
    }
    let last = |kind| engine.history().last_agent_entry("s", kind).unwrap().unwrap().content;
    assert_eq!(last(AgentEntryKind::Settings), Some(json!(3)));
    assert_eq!(last(AgentEntryKind::Todos), Some(json!([3])));
    assert_eq!(log(&engine, "s"), []);
}

#[test]
fn all_reads_since_clearing_are_kept() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let reads = |engine: &Engine| -> Vec<Option<Value>> {
        let entries = engine.history().agent_entries("s", AgentEntryKind::Reads, 0, 100).unwrap();
        entries.into_iter().map(|entry| entry.content).collect()
    };
    record(&mut engine, "s", AgentEntryKind::Reads, &json!({"a": "1"}), 2);
    record(&mut engine, "s", AgentEntryKind::Reads, &json!({"a": null}), 2);
    assert_eq!(reads(&engine), [json!({"a": "1"}), json!({"a": null})].map(Some));
    assert_eq!(log(&engine, "s"), []);
    record(&mut engine, "s", AgentEntryKind::Cleared, &Value::Null, 3);
    assert_eq!(reads(&engine), []);
}

#[test]
fn cleared_log_starts_empty() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    record(&mut engine, "s", AgentEntryKind::Log, &json!("old"), 2);
    record(&mut engine, "s", AgentEntryKind::Cleared, &Value::Null, 3);
    assert_eq!(log(&engine, "s"), []);
    record(&mut engine, "s", AgentEntryKind::Log, &json!("new"), 4);
    assert_eq!(log(&engine, "s"), [Some(json!("new"))]);
}

#[test]
fn retention_keeps_log_of_active_session() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    for session in ["active", "ended", "old"] {
        start(&mut engine, session);
        record(&mut engine, session, AgentEntryKind::Log, &json!([session, large()]), 2);
    }
    for session in ["active", "ended"] {
        record(&mut engine, session, AgentEntryKind::Log, &json!("recent"), 2_000);
    }
    engine.end_session("ended", 2_001).unwrap();
    engine.collect(Some(1_000), None).unwrap();
    assert_eq!(log(&engine, "active")[0], Some(json!(["active", large()])));
    assert_eq!(log(&engine, "ended")[0], None);
    assert_eq!(log(&engine, "old")[0], None, "nobody used it since the limit");
}

#[test]
fn session_record_ignores_agent_log() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    record(&mut engine, "s", AgentEntryKind::Log, &json!(1), 2);
    assert_eq!(engine.history().session("s").unwrap(), None, "the log alone starts no session");
}
