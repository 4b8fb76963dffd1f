//! Conversations and costs, decoded from requests that pass the proxy.

use sayso_api::proto;
use sayso_api::request::{DetailQuery, RequestCost, RequestQuery};
use sayso_testkit::model::Turn;
use sayso_wire::CacheMissCause;
use sayso_wire::price::{BilledTokens, NanoDollars};
use serde_json::json;

use crate::model_agent::{ModelAgent, SESSION, conversation};
use crate::scene::Scene;

pub(crate) fn drawn(blocks: &[proto::ConversationBlock]) -> Vec<String> {
    let kind = |block: &proto::ConversationBlock| {
        let name = format!("{:?}", block.kind.as_known().unwrap());
        let name = name.strip_prefix("KIND_").unwrap_or(&name).to_lowercase();
        block.tool.as_ref().map_or(name.clone(), |tool| format!("{name} {tool}"))
    };
    blocks.iter().map(|block| format!("{} {}: {}", block.number, kind(block), block.text)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_has_each_block_once_in_order() {
    let scene = Scene::new();
    let script = [Turn::calls("Read", json!({"path": "a"})), Turn::says("It has 12 rows."), Turn::says("Bye.")];
    let mut agent = ModelAgent::start(&scene, script).await;
    agent.prompt("Count the rows.");
    agent.send();
    // The first page is read while the conversation goes on.
    let first = agent.blocks(0).await;
    assert_eq!(first.last, first.blocks.len() as u64);
    let call = first.blocks.iter().find_map(|block| block.call.clone()).expect("a tool call");
    agent.say("user", &json!([{"type": "tool_result", "tool_use_id": call, "content": "12\u{202e} rows\nthe end"}]));
    agent.send();
    agent.prompt("Count the rows.");
    agent.send();
    let all = agent.blocks(0).await;
    assert_eq!(
        drawn(&all.blocks),
        [
            "1 prompt: Count the rows.",
            "2 tool_call Read: {\"path\":\"a\"}",
            "3 tool_result Read: 12⟨U+202E⟩ rows\nthe end",
            "4 assistant_text: It has 12 rows.",
            "5 prompt: Count the rows.",
            "6 assistant_text: Bye.",
        ],
    );
    let rest = agent.blocks(first.last).await;
    assert_eq!(drawn(&rest.blocks), drawn(&all.blocks)[first.blocks.len()..]);
    assert_eq!(agent.model.requests().len(), 3);
    agent.running.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_block_is_shortened_and_returned_whole() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, [Turn::says("Done.")]).await;
    let long = "é".repeat(10_000);
    agent.prompt(&long);
    agent.send();
    let preview = agent.blocks(0).await;
    assert_eq!(preview.blocks[0].text, "é".repeat(4_096));
    assert_eq!(preview.blocks[0].text_size, 20_000);
    let whole = agent.client.conversation_block(SESSION, 1).await.unwrap();
    assert_eq!(whole.text, long);
    for missing in [0, 3] {
        let error = agent.client.conversation_block(SESSION, missing).await.unwrap_err();
        assert!(error.to_string().contains("has 2 blocks"), "{error}");
    }
    agent.running.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_is_the_same_after_a_restart() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, [Turn::says("One."), Turn::says("Two.")]).await;
    for prompt in ["First", "Second"] {
        agent.prompt(prompt);
        agent.send();
    }
    let before = drawn(&agent.blocks(0).await.blocks);
    assert_eq!(before.len(), 4);
    agent.running.end();
    let running = scene.serve();
    let after = conversation(&running.verdict_client(), 0).await;
    assert_eq!(drawn(&after.blocks), before);
    running.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cost_is_summed_per_turn_session_and_total() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, [Turn::says("One."), Turn::says("Two.")]).await;
    for prompt in ["First", "Second"] {
        agent.prompt(prompt);
        agent.send();
    }
    let list = agent.client.list_requests(&RequestQuery::default()).await.unwrap();
    let costs: Vec<RequestCost> = list.iter().map(|request| request.cost.expect("a cost")).collect();
    assert_eq!(costs.len(), 2);
    let price = |tokens: &BilledTokens| {
        (tokens.input * 3_000)
            + (tokens.output + tokens.reasoning) * 15_000
            + tokens.cache_read * 300
            + tokens.cache_written * 3_750
    };
    for cost in &costs {
        assert!(cost.tokens.prompt() > 0, "{cost:?}");
        assert_eq!(cost.price, Some(NanoDollars(price(&cost.tokens))), "{cost:?}");
        assert!(cost.context_share.is_some_and(|share| share > 0.0 && share < 1.0));
    }
    let sums = agent.client.request_costs(None, 0).await.unwrap();
    let total: NanoDollars = costs.iter().filter_map(|cost| cost.price).sum();
    assert_eq!(sums.total.price, Some(total));
    assert_eq!(sums.sessions.len(), 1);
    assert_eq!((sums.sessions[0].session.as_deref(), sums.sessions[0].requests), (Some(SESSION), 2));
    assert_eq!(sums.turns.iter().map(|turn| turn.requests).sum::<u64>(), 2);
    assert_eq!(agent.client.request_costs(None, i64::MAX).await.unwrap().sessions.len(), 0);
    agent.running.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cache_miss_names_the_first_difference() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, [Turn::says("One."), Turn::says("Two.")]).await;
    agent.prompt("First");
    agent.system = "You are careful. Today is Monday.".to_owned();
    agent.send();
    agent.prompt("Second");
    agent.system = "You are careful. Today is Tuesday.".to_owned();
    agent.send();
    let first = agent.client.show_request(1, &DetailQuery::default()).await.unwrap();
    assert_eq!(first.cache_miss, None);
    let second = agent.client.show_request(2, &DetailQuery::default()).await.unwrap();
    let miss = second.cache_miss.expect("a miss");
    assert_eq!((miss.cause, miss.previous_request), (CacheMissCause::UnstablePrefix, 1));
    let difference = miss.difference.expect("a difference");
    assert_eq!(difference.path, "system[0].text");
    assert!(difference.new.contains("Tuesday"), "{difference:?}");
    agent.running.end();
}
