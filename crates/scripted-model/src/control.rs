//! Requests of a test to the server itself, below [`CONTROL_PATH`].

use serde_json::json;

use crate::received::Received;
use crate::shared::Shared;
use crate::{Answer, Delivery};

/// Path below which a test controls the server.
pub const CONTROL_PATH: &str = "/_script";

/// Chunks that one call may release.
const MAX_STEPS: usize = 10_000;

/// Answers a request to the server itself. Returns `None` for all other requests.
pub(crate) fn answer(received: &Received, shared: &Shared) -> Option<Answer> {
    let rest = received.path().strip_prefix(CONTROL_PATH)?;
    let ok = |value: serde_json::Value| Answer::status(200, format!("{value}\n"));
    Some(match (received.method.as_str(), rest) {
        ("GET", "/requests") => ok(shared.received().iter().map(describe).collect()),
        ("GET", "/status") => ok(json!({
            "requests": shared.received().len(),
            "turns_left": shared.queued(),
            "mismatches": shared.mismatches(),
        })),
        ("POST", "/step") => match steps(received) {
            Ok(count) => {
                shared.steps.release(count);
                ok(json!({"released": count}))
            }
            Err(message) => Answer::error(400, &message),
        },
        ("POST", "/open") => {
            shared.steps.open();
            ok(json!({"open": true}))
        }
        _ => Answer::error(
            404,
            &format!(
                "the scripted model has GET {CONTROL_PATH}/requests, GET {CONTROL_PATH}/status, POST {CONTROL_PATH}/step?count=N and POST {CONTROL_PATH}/open"
            ),
        ),
    })
}

fn steps(received: &Received) -> Result<usize, String> {
    let query = received.target.split_once('?').map_or("", |(_, query)| query);
    let count = query.split('&').find_map(|pair| pair.strip_prefix("count="));
    let Some(count) = count else { return Ok(1) };
    let parsed = count.parse().ok().filter(|count| (1..=MAX_STEPS).contains(count));
    parsed.ok_or_else(|| format!("`count={count}` is not a number from 1 to {MAX_STEPS}"))
}

fn describe(received: &Received) -> serde_json::Value {
    let delivery = match received.delivery() {
        Delivery::Pending => "pending",
        Delivery::Sending => "sending",
        Delivery::Complete => "complete",
        Delivery::Cut => "cut",
        Delivery::ClientGone => "client_gone",
    };
    json!({
        "method": received.method,
        "path": received.target,
        "body": received.body,
        "delivery": delivery,
        "chunks": received.chunks(),
    })
}
