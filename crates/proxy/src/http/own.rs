//! What a client is told by us, and not by an upstream.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use sayso_review::RequestEnd;
use sayso_wire::stream::{Api, Refusal};
use serde_json::json;

use super::body::Reply;
use super::upstream;
use super::way::Way;

/// An answer of our own in an API's form.
pub(super) fn replied(api: Api, refusal: &Refusal<'_>) -> Response<Reply> {
    let reply = api.refuse(refusal);
    let mut response = Response::new(Reply::whole(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_REQUEST);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

pub(super) fn refused(api: Api, message: &str) -> Response<Reply> {
    replied(api, &Refusal::Refused { message })
}

/// What a client is told when its request ends here, before it had a status.
pub(super) fn ended(api: Api, why: &RequestEnd) -> Response<Reply> {
    match why {
        RequestEnd::Canceled | RequestEnd::CanceledBefore => replied(api, &Refusal::Canceled),
        // Another engine may be there soon, and the person looks at it there.
        RequestEnd::EngineStopped => replied(api, &Refusal::Unavailable { message: &why.message() }),
        other => refused(api, &other.told()),
    }
}

pub(super) fn too_large(api: Option<Api>, most: usize) -> Response<Reply> {
    let message = format!(
        "this request is larger than the {} MB that sayso passes on; raise `largest_body` under [request]",
        most >> 20
    );
    let mut response = match api {
        Some(api) => refused(api, &message),
        None => plain(StatusCode::PAYLOAD_TOO_LARGE, &message),
    };
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

pub(super) fn unreachable(api: Option<Api>, way: &Way, error: &(dyn std::error::Error + 'static)) -> Response<Reply> {
    let message = unreachable_message(way, error);
    tracing::warn!(upstream = way.upstream, reason = upstream::reason(error), "an upstream could not be reached");
    let mut response = match api {
        // It may be there the next time.
        Some(api) => replied(api, &Refusal::Unavailable { message: &message }),
        None => plain(StatusCode::BAD_GATEWAY, &message),
    };
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

/// Why there is no answer, for the client and for the record.
pub(super) fn unreachable_message(way: &Way, error: &(dyn std::error::Error + 'static)) -> String {
    let host = way.address.authority().map(ToString::to_string).unwrap_or_default();
    format!("sayso could not reach {host} (upstream `{}`): {}", way.upstream, upstream::reason(error))
}

/// An answer of our own where the API is not known.
pub(super) fn plain(status: StatusCode, message: &str) -> Response<Reply> {
    let body = json!({"error": {"type": "sayso", "message": message}}).to_string();
    let mut response = Response::new(Reply::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
