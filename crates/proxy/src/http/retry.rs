//! Backoff of a request whose client already received its status.

use std::time::Duration;

use http::HeaderMap;
use http::Response;
use http::header::RETRY_AFTER;
use hyper::body::Incoming;
use sayso_review::UpstreamRetry;

use super::local_response::upstream_error;
use super::route::Route;
use super::sender::SendError;
use crate::recorder::now;
use crate::settings::Retry;

/// Statuses of an overloaded upstream.
const OVERLOADED: [u16; 5] = [429, 502, 503, 504, 529];

/// The longest `retry-after` that is honored. A longer one means that the quota is used up, and the agent has to know.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

pub(super) type SendResult = Result<Response<Incoming>, SendError>;

/// Returns the delay before the next attempt; `None` if the result is final.
pub(super) fn retry_delay(retry: &Retry, retries: u32, result: &SendResult) -> Option<Duration> {
    match result {
        Ok(response) if OVERLOADED.contains(&response.status().as_u16()) => backoff(retry, retries, response.headers()),
        Err(SendError::Connect(_)) => backoff(retry, retries, &HeaderMap::new()),
        // A broken connection may have delivered the request, and the model may be working on it.
        Ok(_) | Err(SendError::Broken(_)) => None,
    }
}

/// Describes a failed attempt for surfaces.
pub(super) fn describe_retry(route: &Route, result: &SendResult, attempts: u32, delay: Duration) -> UpstreamRetry {
    let (status, message) = match result {
        Ok(response) => {
            (Some(response.status().as_u16()), format!("the upstream answered {}", response.status().as_str()))
        }
        Err(error) => (None, upstream_error(route, error)),
    };
    let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
    UpstreamRetry { attempts, status, message, next_attempt_ms: now().saturating_add(delay) }
}

/// Computes the delay: the upstream's, or an exponential one. `None` after the last retry, or if the upstream advises against a retry.
fn backoff(retry: &Retry, retries: u32, headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if retries >= retry.times || text("x-should-retry") == Some("false") {
        return None;
    }
    let number = |name| text(name)?.parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1e3).or_else(|| number(RETRY_AFTER.as_str()));
    match seconds.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok().filter(|delay| *delay <= MAX_RETRY_AFTER),
        None => Some(retry.first.saturating_mul(2_u32.saturating_pow(retries)).min(retry.longest)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn backoff_honors_retry_headers() {
        let retry = Retry { times: 9, first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (name, value, retries, millis) in [
            ("retry-after", "7", 0, Some(7_000)),
            ("retry-after", "7", 9, None),
            ("retry-after", "60", 0, Some(60_000)),
            ("retry-after", "3600", 0, None),
            ("retry-after", "1e20", 1, None),
            ("retry-after", "inf", 0, None),
            ("retry-after", "-1", 0, Some(1_000)),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", 2, Some(4_000)),
            ("retry-after-ms", "250", 0, Some(250)),
            ("x-should-retry", "false", 0, None),
            ("x-should-retry", "true", 0, Some(1_000)),
            ("x-other", "1", 8, Some(30_000)),
        ] {
            let headers =
                HeaderMap::from_iter([(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static(value))]);
            assert_eq!(backoff(&retry, retries, &headers), millis.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
