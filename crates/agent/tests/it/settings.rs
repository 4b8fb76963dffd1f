//! Validation of settings.

use sayso_agent::{Catalog, Limits, Settings, SettingsPatch, UpstreamChoice};
use sayso_wire::stream::Api;

use super::scene::{catalog, settings};

fn two_upstreams() -> Catalog {
    let mut catalog = catalog(None);
    catalog.upstreams.push(UpstreamChoice {
        name: "openai".to_owned(),
        dialects: vec![Api::OpenAiChat, Api::OpenAiResponses],
        is_ready: false,
        hint: "set OPENAI_API_KEY".to_owned(),
    });
    catalog
}

#[test]
fn known_model_brings_dialect_and_upstream() {
    let before = settings(Api::AnthropicMessages, "CODE");
    let patch = SettingsPatch { model: Some("gemini-2.5-test".to_owned()), ..SettingsPatch::default() };
    let after = patch.apply(&before, &two_upstreams()).unwrap();
    assert_eq!((after.dialect, after.upstream.as_str()), (Api::Gemini, "scripted"));
    let patch = SettingsPatch {
        model: Some("own-model".to_owned()),
        dialect: Some("openai-chat".to_owned()),
        limits: Some(Limits { turns: 3, ..Limits::default() }),
        ..SettingsPatch::default()
    };
    let after = patch.apply(&before, &two_upstreams()).unwrap();
    assert_eq!((after.model.as_str(), after.dialect, after.limits.turns), ("own-model", Api::OpenAiChat, 3));
}

#[test]
fn errors_name_field_value_and_choices() {
    let before = settings(Api::AnthropicMessages, "CODE");
    let none = SettingsPatch::default;
    let text = |text: &str| Some(text.to_owned());
    let patches = [
        SettingsPatch { model: text(" "), ..none() },
        SettingsPatch { dialect: text("openai"), ..none() },
        SettingsPatch { upstream: text("nowhere"), ..none() },
        SettingsPatch { upstream: text("openai"), ..none() },
        SettingsPatch { upstream: text("openai"), dialect: text("openai-chat"), ..none() },
        SettingsPatch { scenario: text("PLAN"), ..none() },
        SettingsPatch { thinking_tokens: Some(5), ..none() },
    ];
    let shown: Vec<String> = patches
        .iter()
        .map(|patch| {
            let error = patch.apply(&before, &two_upstreams()).unwrap_err();
            format!("{error}\n  hint: {}", error.hint)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn settings_json_uses_dialect_names() {
    let text = serde_json::to_string(&settings(Api::OpenAiResponses, "CODE")).unwrap();
    assert!(text.contains(r#""dialect":"openai-responses""#), "{text}");
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings(Api::OpenAiResponses, "CODE"));
}
