//! What is sent in place of an answer.

use sayso_wire::stream::collect::{from_body, from_stream};
use sayso_wire::stream::{Api, Begun, CANCELED, HttpReply, Refusal, StreamEvent};
use serde_json::Value;

fn header<'a>(reply: &'a HttpReply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| &**value)
}

#[test]
fn a_cancellation_before_the_status_is_an_error_that_is_not_retried() {
    for api in Api::ALL {
        let reply = api.refuse(&Refusal::Canceled);
        assert_eq!(reply.status, 400);
        assert_eq!(header(&reply, "x-should-retry"), Some("false"));
        assert_eq!(header(&reply, "content-type"), Some("application/json"));
        let answer = from_body(api, &reply.body).unwrap();
        assert_eq!(answer.error.unwrap().1, "Request canceled before sending", "{api:?}");
    }
}

#[test]
fn the_forms_of_a_cancellation_are_those_of_each_api() {
    let forms: Vec<String> = Api::ALL
        .into_iter()
        .map(|api| {
            let reply = api.refuse(&Refusal::Canceled);
            let stream = String::from_utf8(api.break_off(&Refusal::Canceled)).unwrap();
            format!("{api:?}\n{}\n{stream}", String::from_utf8(reply.body).unwrap())
        })
        .collect();
    insta::assert_snapshot!(forms.join("\n"));
}

#[test]
fn a_cancellation_after_the_status_is_an_error_in_the_stream() {
    for api in Api::ALL {
        let mut bytes = api.keep_alive().to_vec();
        bytes.extend(api.break_off(&Refusal::Canceled));
        let answer = from_stream(api, &bytes);
        assert_eq!(answer.error.unwrap().1, CANCELED, "{api:?}");
        assert!(answer.problems.is_empty(), "{api:?}: {:?}", answer.problems);
    }
}

#[test]
fn a_reason_is_told_in_both_places() {
    for api in Api::ALL {
        let refusal = Refusal::Refused { message: "no \"secrets\"\nplease" };
        assert_eq!(from_body(api, &api.refuse(&refusal).body).unwrap().error.unwrap().1, "no \"secrets\"\nplease");
        assert_eq!(from_stream(api, &api.break_off(&refusal)).error.unwrap().1, "no \"secrets\"\nplease");
    }
}

#[test]
fn an_error_of_the_api_is_passed_on_as_it_is_before_the_status() {
    for api in Api::ALL {
        let body = b" {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}} ";
        let reply = api.refuse(&Refusal::Upstream { status: 529, body });
        assert_eq!((reply.status, &*reply.body), (529, &body[..]));
        assert_eq!(header(&reply, "x-should-retry"), None);
    }
}

#[test]
fn an_error_of_the_api_is_carried_inside_after_the_status() {
    for api in Api::ALL {
        for (body, message) in [
            (
                r#"{"error":{"type":"rate_limit_error","message":"Slow down","code":"slow_down","status":"SLOW"}}"#,
                "Slow down",
            ),
            ("<html>busy</html>", "The model API answered with status 429"),
        ] {
            let mut raws = Vec::new();
            let bytes = api.break_off(&Refusal::Upstream { status: 429, body: body.as_bytes() });
            api.decoder().feed(&bytes, &mut |positioned| {
                if let StreamEvent::Error { raw, message: said, .. } = positioned.event {
                    assert_eq!(said, message, "{api:?}");
                    raws.push(serde_json::from_str::<Value>(&raw).unwrap());
                }
            });
            let raw = &raws[0];
            let error = raw.pointer("/error").or(raw.pointer("/response/error")).unwrap();
            assert_eq!(error["upstream"]["status"], 429, "{api:?}");
            let whole = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
            assert_eq!(error["upstream"]["body"], whole, "{api:?}");
        }
    }
}

#[test]
fn keep_alives_are_nothing_but_keep_alives() {
    for api in Api::ALL {
        let mut events = 0;
        let mut decoder = api.decoder();
        for _ in 0..3 {
            decoder.feed(api.keep_alive(), &mut |positioned| {
                assert_eq!(positioned.event, StreamEvent::KeepAlive, "{api:?}");
                events += 1;
            });
        }
        // The first half of a line's end waits for the other one.
        decoder.end(&mut |positioned| panic!("{api:?}: {positioned:?}"));
        assert_eq!(events, 3, "{api:?}");
    }
}

#[test]
fn the_keep_alive_of_responses_is_an_event_with_data() {
    // Codex counts events, and neither bytes nor comments.
    let text = std::str::from_utf8(Api::OpenAiResponses.keep_alive()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("data: {")), "{text}");
}

#[test]
fn the_end_for_good_is_what_clients_were_seen_not_to_try_again_after() {
    let forms: Vec<String> = Api::ALL
        .into_iter()
        .flat_map(|api| [Begun::No, Begun::Yes].map(|begun| (api, begun)))
        .map(|(api, begun)| {
            let stream = String::from_utf8(api.end_for_good(&Refusal::Canceled, begun)).unwrap();
            assert!(stream.contains(CANCELED), "{api:?}");
            format!("{api:?}, begun: {begun:?}\n{stream}")
        })
        .collect();
    insta::assert_snapshot!(forms.join("\n"));
}
