//! Responses that sayso writes itself.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use sayso_review::{RequestEnd, RequestId};
use sayso_wire::stream::{Api, ReplyError};
use serde_json::json;

use super::body::Reply;
use super::route::Route;
use super::upstream;

/// An error in the format of an API.
fn error_reply(api: Api, error: &ReplyError<'_>) -> Response<Reply> {
    let reply = api.error_reply(error);
    let mut response = Response::new(Reply::buffered(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_REQUEST);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A rejection in the format of an API.
pub(super) fn api_error(api: Api, message: &str) -> Response<Reply> {
    error_reply(api, &ReplyError::Rejected { message })
}

/// The reply to a request that ended before its client received a status.
pub(super) fn terminated(api: Api, end: &RequestEnd) -> Response<Reply> {
    match end {
        RequestEnd::Canceled | RequestEnd::CanceledBefore => error_reply(api, &ReplyError::Canceled),
        // Retryable: the next engine admits the retry.
        RequestEnd::EngineStopped => error_reply(api, &ReplyError::Unavailable { message: &end.message() }),
        other => api_error(api, &other.agent_message()),
    }
}

pub(super) fn too_large(api: Option<Api>, max: usize) -> Response<Reply> {
    let message = format!(
        "this request is larger than the {} MB that sayso forwards; raise `max_body_size` under [request]",
        max >> 20
    );
    let mut response = match api {
        Some(api) => api_error(api, &message),
        None => json_error(StatusCode::PAYLOAD_TOO_LARGE, &message),
    };
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

/// The reply if an upstream cannot be reached. Only model requests have a number.
pub(super) fn bad_gateway(
    request: Option<RequestId>,
    api: Option<Api>,
    route: &Route,
    error: &(dyn std::error::Error + 'static),
) -> Response<Reply> {
    let message = upstream_error(route, error);
    let reason = upstream::reason(error);
    tracing::warn!(request, upstream = route.upstream, reason, "cannot reach the upstream");
    let mut response = match api {
        // Retryable: the upstream may be back then.
        Some(api) => error_reply(api, &ReplyError::Unavailable { message: &message }),
        None => json_error(StatusCode::BAD_GATEWAY, &message),
    };
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

/// Describes a failed connection for the agent and for the journal.
pub(super) fn upstream_error(route: &Route, error: &(dyn std::error::Error + 'static)) -> String {
    let host = route.address.authority().map(ToString::to_string).unwrap_or_default();
    format!("sayso could not reach {host} (upstream `{}`): {}", route.upstream, upstream::reason(error))
}

/// An error for a client whose API is unknown.
pub(super) fn json_error(status: StatusCode, message: &str) -> Response<Reply> {
    let body = json!({"error": {"type": "sayso", "message": message}}).to_string();
    let mut response = Response::new(Reply::buffered(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
