//! Failures of the upstream: retries, errors with hints, broken streams.

use sayso_agent::{FinishedReason, Invoked, SettingsPatch, UserPrompt};
use sayso_scripted_model::{Answer, Latch, Turn};
use sayso_wire::stream::{Api, CANCELED, FinishReason};
use serde_json::json;

use super::scene::{Scene, name, settings};

#[tokio::test]
async fn rate_limit_waits_as_long_as_asked() {
    for api in Api::ALL {
        let limited = Answer::error(429, "slow down").header("retry-after", "7");
        let scene = Scene::new(settings(api, "ASK"), &[], [limited, Turn::says("ok").into()]);
        assert_eq!(scene.complete("go").await, "ok");
        assert_eq!(*scene.host.delays.lock().unwrap(), [7_000], "{}", name(api));
        assert_eq!(scene.states(), ["requesting", "retrying", "requesting", "streaming"]);
    }
}

#[tokio::test]
async fn overload_backs_off_exponentially() {
    for status in [500, 502, 503, 529] {
        let failures = (0..3).map(|_| Answer::error(status, "overloaded")).chain([Turn::says("ok").into()]);
        let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[], failures);
        assert_eq!(scene.complete("go").await, "ok");
        assert_eq!(*scene.host.delays.lock().unwrap(), [1_000, 2_000, 4_000]);
    }
}

#[tokio::test]
async fn delay_in_the_body_of_gemini_counts() {
    let body = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}]}});
    let scene =
        Scene::new(settings(Api::Gemini, "ASK"), &[], [Answer::status(429, body.to_string()), Turn::says("ok").into()]);
    assert_eq!(scene.complete("go").await, "ok");
    assert_eq!(*scene.host.delays.lock().unwrap(), [17_500]);
}

#[tokio::test]
async fn quota_and_long_delays_are_not_retried() {
    for answer in [
        Answer::error(429, "You exceeded your current quota, please check your plan and billing details."),
        Answer::error(429, "slow down").header("retry-after", "3600"),
    ] {
        let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [answer]);
        assert!(matches!(scene.say("go").await, Invoked::Failed { .. }));
        assert_eq!(scene.turns().len(), 1);
    }
}

#[tokio::test]
async fn refusal_without_text_is_not_retried() {
    for api in [Api::AnthropicMessages, Api::Gemini] {
        let scene = Scene::new(settings(api, "ASK"), &[], [Turn::says("").finished_by(FinishReason::Refusal)]);
        let Invoked::Failed { message, .. } = scene.say("go").await else { panic!("it did not fail") };
        assert!(message.starts_with("the model refused to answer"), "{message}");
        assert_eq!(scene.turns().len(), 1, "{}", name(api));
    }
}

#[tokio::test]
async fn lasting_failure_ends_with_a_hint() {
    let failures = (0..20).map(|_| Answer::error(529, "overloaded"));
    let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[], failures);
    let Invoked::Failed { message, hint, .. } = scene.say("go").await else { panic!("it did not fail") };
    assert_eq!(message, "the upstream answered with status 529: overloaded (after 8 attempts)");
    assert_eq!(hint, "try again later, or choose another model");
    assert_eq!(scene.turns().len(), 8);
}

#[tokio::test]
async fn cut_before_content_is_retried() {
    for api in Api::ALL {
        let hang_up = Answer::hang_up();
        let silent = Answer::from(Turn::says("never")).cut_after(0);
        let scene = Scene::new(settings(api, "ASK"), &[], [hang_up, silent, Turn::says("ok").into()]);
        assert_eq!(scene.complete("go").await, "ok", "{}", name(api));
        assert_eq!(scene.turns().len(), 3);
    }
}

#[tokio::test]
async fn cut_after_content_keeps_it_and_goes_on() {
    for api in Api::ALL {
        let long = Turn::says(&"some words ".repeat(30));
        let scene =
            Scene::new(settings(api, "ASK"), &[], [Answer::from(long).cut_after(7), Turn::says("the rest").into()]);
        assert_eq!(scene.complete("go").await, "the rest", "{}", name(api));
        let body = scene.turns()[1].body.to_string();
        assert!(body.contains("some words") && body.contains("Your last answer broke off"), "{}: {body}", name(api));
        assert!(scene.host.delays.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn stream_error_before_content_is_retried() {
    for api in [Api::AnthropicMessages, Api::OpenAiResponses] {
        let scene =
            Scene::new(settings(api, "ASK"), &[], [Turn::default().and_fails(529, "Overloaded"), Turn::says("ok")]);
        assert_eq!(scene.complete("go").await, "ok", "{}", name(api));
    }
}

#[tokio::test]
async fn output_limit_lets_the_model_go_on() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "ASK"),
        &[],
        [Turn::says("half of it").finished_by(FinishReason::MaxTokens), Turn::says("and the rest")],
    );
    assert_eq!(scene.complete("go").await, "and the rest");
    assert!(scene.turns()[1].last_user_text().contains("reached the output limit"));
}

#[tokio::test]
async fn refused_key_names_the_remedy() {
    for (status, words, remedy) in [
        (401, "invalid x-api-key", "check the key of the upstream, and that it may use the model"),
        (404, "model: nope", "check the name of the model, the dialect and the upstream's URL"),
        (402, "no credit", "add credit to the account, or choose another upstream"),
        (400, "bad field", "choose another model or dialect, or start a new session"),
    ] {
        let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [Answer::error(status, words)]);
        let Invoked::Failed { message, hint, .. } = scene.say("go").await else { panic!("it did not fail") };
        assert_eq!(message, format!("the upstream answered with status {status}: {words}"));
        assert_eq!(hint, remedy);
        assert_eq!(scene.turns().len(), 1);
    }
}

#[tokio::test]
async fn cancelled_request_ends_as_cancelled() {
    for api in Api::ALL {
        let scene = Scene::new(settings(api, "ASK"), &[], [Answer::error(400, CANCELED)]);
        let end = scene.say("go").await;
        assert!(matches!(end, Invoked::Finished { reason: FinishedReason::Cancelled, .. }), "{}: {end:?}", name(api));
    }
}

#[tokio::test]
async fn discarded_request_goes_to_the_new_model() {
    let latch = Latch::closed();
    let discarded = Answer::error(400, "Context changed – request discarded").held_by(&latch);
    let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[], [discarded, Turn::says("from gemini").into()]);
    let running = tokio::spawn({
        let session = scene.session.clone();
        async move { session.invoke(UserPrompt::text("go")).await }
    });
    scene.host.wait_until(|host| !host.sent.lock().unwrap().is_empty()).await;
    let patch = SettingsPatch { model: Some("gemini-2.5-test".to_owned()), ..SettingsPatch::default() };
    scene.session.set_settings(&patch).unwrap();
    latch.open();
    let Invoked::Finished { reason: FinishedReason::Completed, text, .. } = running.await.unwrap() else {
        panic!("it did not complete")
    };
    assert_eq!(text, "from gemini");
    assert_eq!(scene.turns()[1].model(), "gemini-2.5-test");
}

#[tokio::test]
async fn answer_in_one_piece_is_read() {
    let body = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "claude-test", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "whole"}], "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let whole = Answer::status(200, body.to_string());
    let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[], [whole]);
    assert_eq!(scene.complete("go").await, "whole");
}

#[tokio::test]
async fn session_goes_on_after_a_failure() {
    let scene = Scene::new(settings(Api::Gemini, "ASK"), &[], [Answer::error(400, "bad"), Turn::says("fine").into()]);
    assert!(matches!(scene.say("go").await, Invoked::Failed { .. }));
    assert_eq!(scene.complete("again").await, "fine");
    assert_eq!(scene.session.completed_turns(), 1);
}
