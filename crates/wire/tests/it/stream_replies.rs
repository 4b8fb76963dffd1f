//! Replies in place of a response.

use sayso_wire::stream::collect::{from_body, from_stream};
use sayso_wire::stream::{Api, CANCELED, HttpReply, ReplyError, StreamEvent, StreamStarted};
use serde_json::Value;

fn header<'a>(reply: &'a HttpReply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| &**value)
}

#[test]
fn cancel_before_status_is_not_retried() {
    for api in Api::ALL {
        let reply = api.error_reply(&ReplyError::Canceled);
        assert_eq!(reply.status, 400);
        assert_eq!(header(&reply, "x-should-retry"), Some("false"));
        assert_eq!(header(&reply, "content-type"), Some("application/json"));
        let answer = from_body(api, &reply.body).unwrap();
        assert_eq!(answer.error.unwrap().1, "Request canceled before sending", "{api:?}");
    }
}

#[test]
fn cancel_follows_each_api_format() {
    let forms: Vec<String> = Api::ALL
        .into_iter()
        .map(|api| {
            let reply = api.error_reply(&ReplyError::Canceled);
            let stream = String::from_utf8(api.retryable_end(&ReplyError::Canceled)).unwrap();
            format!("{api:?}\n{}\n{stream}", String::from_utf8(reply.body).unwrap())
        })
        .collect();
    insta::assert_snapshot!(forms.join("\n"));
}

#[test]
fn cancel_after_status_ends_stream_with_error() {
    for api in Api::ALL {
        let mut bytes = api.keep_alive().to_vec();
        bytes.extend(api.retryable_end(&ReplyError::Canceled));
        let answer = from_stream(api, &bytes);
        assert_eq!(answer.error.unwrap().1, CANCELED, "{api:?}");
        assert!(answer.problems.is_empty(), "{api:?}: {:?}", answer.problems);
    }
}

#[test]
fn reason_is_in_reply_and_stream() {
    for api in Api::ALL {
        let refusal = ReplyError::Rejected { message: "no \"secrets\"\nplease" };
        assert_eq!(from_body(api, &api.error_reply(&refusal).body).unwrap().error.unwrap().1, "no \"secrets\"\nplease");
        assert_eq!(from_stream(api, &api.retryable_end(&refusal)).error.unwrap().1, "no \"secrets\"\nplease");
    }
}

#[test]
fn upstream_error_before_status_is_forwarded() {
    for api in Api::ALL {
        let body = b" {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}} ";
        let reply = api.error_reply(&ReplyError::Upstream { status: 529, body });
        assert_eq!((reply.status, &*reply.body), (529, &body[..]));
        assert_eq!(header(&reply, "x-should-retry"), None);
    }
}

#[test]
fn upstream_error_after_status_is_embedded() {
    for api in Api::ALL {
        for (body, message) in [
            (
                r#"{"error":{"type":"rate_limit_error","message":"Slow down","code":"slow_down","status":"SLOW"}}"#,
                "Slow down",
            ),
            ("<html>busy</html>", "The model API answered with status 429"),
        ] {
            let mut raws = Vec::new();
            let bytes = api.retryable_end(&ReplyError::Upstream { status: 429, body: body.as_bytes() });
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
fn keep_alives_decode_to_keep_alives_only() {
    for api in Api::ALL {
        let mut events = 0;
        let mut decoder = api.decoder();
        for _ in 0..3 {
            decoder.feed(api.keep_alive(), &mut |positioned| {
                assert_eq!(positioned.event, StreamEvent::KeepAlive, "{api:?}");
                events += 1;
            });
        }
        // The first half of a line end is held until the second half.
        decoder.end(&mut |positioned| panic!("{api:?}: {positioned:?}"));
        assert_eq!(events, 3, "{api:?}");
    }
}

#[test]
fn responses_keep_alive_is_a_data_event() {
    // Codex counts events, not bytes or comments.
    let text = std::str::from_utf8(Api::OpenAiResponses.keep_alive()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("data: {")), "{text}");
}

#[test]
fn terminal_error_follows_observed_clients() {
    let forms: Vec<String> = Api::ALL
        .into_iter()
        .flat_map(|api| [StreamStarted::No, StreamStarted::Yes].map(|begun| (api, begun)))
        .map(|(api, begun)| {
            let stream = String::from_utf8(api.terminal_error(&ReplyError::Canceled, begun)).unwrap();
            assert!(stream.contains(CANCELED), "{api:?}");
            format!("{api:?}, begun: {begun:?}\n{stream}")
        })
        .collect();
    insta::assert_snapshot!(forms.join("\n"));
}
