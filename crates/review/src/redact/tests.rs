//! The credentials are assembled at run time, so that secret scanners ignore this file.

#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

/// Returns random-looking letters and digits, the same in every run.
fn drawn(length: usize) -> String {
    let alphabet = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";
    (0..length).map(|at| char::from(alphabet[(at * at * 7 + at * 31 + 11) % alphabet.len()])).collect()
}

fn names(text: &str) -> Vec<String> {
    merged(&find(text.as_bytes())).into_iter().map(|one| one.name).collect()
}

/// Asserts that exactly the secret is masked, under the given name.
fn check(text: &str, secret: &str, name: &str) {
    let found = merged(&find(text.as_bytes()));
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [name], "{text}");
    let expected = text.replace(secret, &"*".repeat(secret.len()));
    assert_eq!(masked_text(text), expected, "{text}");
    assert_eq!(merged(&find(expected.as_bytes())).len(), 1, "a masked span is found again: {expected}");
    assert_eq!(masked_text(&expected), expected);
}

#[test]
fn value_under_credential_key_is_masked() {
    for key in [
        "authorization_token",
        "api_key",
        "apikey",
        "API-KEY",
        "x-api-key",
        "password",
        "passwd",
        "access_token",
        "refreshToken",
        "secret",
        "clientSecret",
        "Authorization",
        "bearer",
        "private_key",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "password2",
        "github_token",
        "X-Auth-Token",
    ] {
        for secret in ["hunter2", r#"q b\n\"c\\"#, "π≠"] {
            for space in ["", " ", "\n\t"] {
                check(&format!(r#"{{"m":[{{"{key}"{space}:{space}"{secret}"}}],"o":"plain"}}"#), secret, key);
            }
        }
    }
}

#[test]
fn other_members_are_not_masked() {
    for text in [
        r#"{"max_tokens":"12","token":"Hello","page_token":"abc","eos_token":"</s>","pwd":"/home/me","key":"abc"}"#,
        r#"{"properties":{"password":{"type":"string"},"api_key":{"description":"the key"}},"required":["password"]}"#,
        r#"{"password":"","secret":null,"api_key":12,"access_token":{"a":"b"},"secret":["a"]}"#,
        r#"{"text":"the password: is not said, and api_key = none"}"#,
        r#"{"name":"city","value":"Paris"}"#,
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn value_in_nested_json_is_masked_at_any_depth() {
    let mut text = r#"{"password": "hunter2", "b": "plain"}"#.to_owned();
    for _ in 0..4 {
        check(&text, "hunter2", "password");
        text = serde_json::json!({"arguments": text, "after": "kept"}).to_string();
    }
    let inner = r#"{"secret":"say \"hi\\\"\\","b":"plain"}"#;
    let text = serde_json::json!({"arguments": inner}).to_string();
    let masked: serde_json::Value = serde_json::from_str(&masked_text(&text)).unwrap();
    let masked: serde_json::Value = serde_json::from_str(masked["arguments"].as_str().unwrap()).unwrap();
    assert!(masked["secret"].as_str().unwrap().bytes().all(|byte| byte == FILLER), "{masked}");
    assert_eq!(masked["b"], "plain");
}

#[test]
fn value_beside_its_name_is_masked() {
    check(r#"[{"name":"API_KEY","value":"hunter2"}]"#, "hunter2", "API_KEY");
    check(
        r#"[{"op":"replace","path":"/mcp_servers/0/authorization_token","value":"hunter2"}]"#,
        "hunter2",
        "authorization_token",
    );
    check(r#""{\"name\": \"api_key\", \"value\": \"hunter2\"}""#, "hunter2", "api_key");
}

#[test]
fn opaque_value_under_token_is_masked() {
    check(&format!(r#"{{"token":"{}"}}"#, drawn(24)), &drawn(24), "token");
    assert_eq!(names(r#"{"token":" Hello","logprob":-0.1},{"token":"----------------------------"}"#), [""; 0]);
}

#[test]
fn truncated_value_is_masked_to_end() {
    check(r#"{"password":"hunter2"#, "hunter2", "password");
    check(r#"{"a":"{\"password\":\"hunter2"#, "hunter2", "password");
}

#[test]
fn issuer_token_is_masked_after_prefix() {
    for (prefix, length, name) in [
        ("ghp_", 36, "github_token"),
        ("github_pat_", 82, "github_token"),
        ("glpat-", 20, "gitlab_token"),
        ("xoxb-", 40, "slack_token"),
        ("sk-ant-", 90, "anthropic_key"),
        ("sk-proj-", 60, "openai_key"),
        ("AIza", 35, "google_key"),
        ("npm_", 36, "registry_token"),
        ("Bearer ", 40, "bearer_token"),
        ("sk-ant-", 3_000, "anthropic_key"),
    ] {
        let body = drawn(length);
        for (before, after) in [("", ""), (r#"{"text":"use "#, r#" now"}"#), (r#"{"text":"a\n"#, r#"\n"}"#)] {
            let text = format!("{before}{prefix}{body}{after}");
            let found = merged(&find(text.as_bytes()));
            assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [name], "{text}");
            let expected = format!("{before}{prefix}{}{after}", "*".repeat(length));
            assert_eq!(masked_text(&text), expected);
            assert_eq!(find(expected.as_bytes()).len(), 1, "{expected}");
        }
    }
    assert_eq!(names("a task-based ghp_ and sk-ant-api03-your-key-here, Bearer token"), [""; 0]);
}

#[test]
fn token_without_digits_is_masked() {
    let letters: String = drawn(80).chars().filter(char::is_ascii_alphabetic).take(40).collect();
    check(&format!("ghp_{letters}"), &letters, "github_token");
    let capitals = &letters.to_ascii_uppercase()[..16];
    check(&format!("id {}{capitals},", "AKIA"), capitals, "aws_access_key");
    assert_eq!(names("HTTP says: Bearer AuthenticationRequired"), [""; 0]);
}

#[test]
fn private_key_is_masked_up_to_its_end() {
    for line in ["\n", "\\n", "\\n     2→"] {
        let body = format!("{line}{}{line}{}{line}", drawn(64), drawn(40));
        let text = format!("{{\"text\":\"-----BEGIN RSA {}-----{body}-----END RSA PRIVATE KEY-----\"}}", "PRIVATE KEY");
        check(&text, &body, "private_key");
    }
    let cut = format!("-----BEGIN {}-----\\n{}", "PRIVATE KEY", drawn(64));
    let text = format!(r#"{{"a":"{cut}\"","b":"plain"}}"#);
    assert!(masked_text(&text).ends_with(r#"**\"","b":"plain"}"#), "{}", masked_text(&text));
    assert_eq!(names("it looks for `-----BEGIN PRIVATE KEY-----` and `-----END PRIVATE KEY-----`"), [""; 0]);
}

#[test]
fn password_in_an_address_is_masked() {
    check("see postgres://admin:hunter2x@db.internal/x", "hunter2x", "url_password");
    assert_eq!(names("see https://user:password@example.com and http://host:8080/@x"), [""; 0]);
}

#[test]
fn credential_spread_over_events_is_masked() {
    let token = format!("ghp_{}", drawn(36));
    let said = format!(r#"{{"command":"x","password":"hunter2","t":"{token}"}} plain"#);
    for size in 1..12 {
        let mut body = String::new();
        let characters: Vec<char> = said.chars().collect();
        for part in characters.chunks(size) {
            let part: String = part.iter().collect();
            let event = serde_json::json!({"type": "delta", "delta": {"partial_json": part}});
            body.push_str(&format!("event: delta\ndata: {event}\n\n"));
        }
        let mut bytes = body.clone().into_bytes();
        mask(&mut bytes, &find_in_answer(body.as_bytes()));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.len(), body.len());
        let mut joined = String::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            joined.push_str(event["delta"]["partial_json"].as_str().unwrap());
        }
        let expected = said.replace("hunter2", "*******").replace(&token, &format!("ghp_{}", "*".repeat(36)));
        assert_eq!(joined, expected, "{size}");
    }
}

/// Generates parts of bodies: plain text, secrets, and bytes that begin or end them.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z {}:,\\[\\]\"]{0,40}",
        Just(r#"{"role":"user","content":"hello"},"#.to_owned()),
        Just(r#""password": "#.to_owned()),
        "[a-zA-Z0-9]{1,20}".prop_map(|value| format!(r#""api_key":"{value}","#)),
        "[a-zA-Z0-9 ]{10,40}".prop_map(|value| format!(r#""token":"{value}","#)),
        "[a-zA-Z0-9]{1,20}".prop_map(|value| format!(r#"\"secret\":\"{value}\","#)),
        Just("ghp_".to_owned()),
        (30_usize..60).prop_map(drawn),
        (30_usize..60).prop_map(|size| format!("ghp_{}", drawn(size))),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        (1_usize..9_000).prop_map(|size| "lorem ipsum ".repeat(size / 12)),
        Just(format!("-----BEGIN {}-----", "PRIVATE KEY")),
        Just("-----END".to_owned()),
        "[a-z0-9]{4,12}".prop_map(|value| format!("ftp://me:{value}@host/")),
    ]
}

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn delta_scan_equals_full_scan(
        head in pieces(), tail in pieces(), old in pieces(), new in pieces(), less in 0_usize..40,
    ) {
        let (earlier, body) = (format!("{head}{old}{tail}"), format!("{head}{new}{tail}"));
        let shared = SharedEnds { front: head.len().saturating_sub(less), back: tail.len().saturating_sub(less) };
        let read = |range: Range<usize>| Cow::Borrowed(&body.as_bytes()[range]);
        let found = Spans::of(earlier.as_bytes()).after(earlier.len(), body.len(), shared, read);
        prop_assert_eq!(found, Spans::of(body.as_bytes()));
    }

    #[test]
    fn masking_is_idempotent_and_keeps_length(text in pieces()) {
        let masked = masked_text(&text).into_owned();
        prop_assert_eq!(masked.len(), text.len());
        prop_assert_eq!(masked_text(&masked), masked.as_str());
    }
}

#[test]
fn every_credential_key_has_a_stem() {
    for name in key::SUFFIXES.iter().chain(key::WHOLE) {
        for key in [format!("{name}\""), format!("{name}\\\""), format!("{}\"", name.to_ascii_uppercase())] {
            assert!(key::KEY_STEMS.iter().any(|stem| key.contains(stem)), "{key}");
        }
    }
}
