//! JSON shared by both OpenAI APIs: errors and token counts.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::event::Usage;
use super::reply::ReplyError;
use super::scan::{JsonCursor, ScanError, members};

/// Builds the error object of a response.
pub(super) fn error_object(error: &ReplyError<'_>) -> Value {
    json!({
        "message": error.message(&["/error/message"]),
        "type": error.kind("/error/type").unwrap_or_else(|| match error.status() {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }.to_owned()),
        "code": error.kind("/error/code").or_else(|| {
            matches!(error, ReplyError::Canceled).then(|| "request_canceled".to_owned())
        }),
    })
}

/// Reads the code of an error object, or its type if it has no code, and its message.
pub(super) fn error_parts(raw: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), ScanError> {
    let (mut kind, mut code, mut message) = (None, None, Cow::default());
    members(raw, |key, value| {
        match key {
            "type" => kind = value.string()?,
            "code" => code = value.string()?,
            "message" => message = value.string()?.unwrap_or_default(),
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok((code.or(kind).unwrap_or_default(), message))
}

/// Names of the members that hold token counts. Details are in a member of the same name with `_details` appended.
pub(super) struct UsageNames {
    pub(super) input: &'static str,
    pub(super) output: &'static str,
}

/// Reads token counts. Returns `None` if the value has no count.
pub(super) fn usage(value: &mut JsonCursor<'_>, names: &UsageNames) -> Result<Option<Usage>, ScanError> {
    let mut usage = Usage::default();
    let is_details = |key: &str| key.strip_suffix("_details").is_some_and(|of| of == names.input || of == names.output);
    value.members(&mut |key, value| {
        match key {
            key if key == names.input => usage.input = value.number()?,
            key if key == names.output => usage.output = value.number()?,
            key if is_details(key) => value.members(&mut |key, value| {
                match key {
                    "cached_tokens" => usage.cache_read = value.number()?,
                    "reasoning_tokens" => usage.reasoning = value.number()?,
                    _ => value.skip()?,
                }
                Ok(())
            })?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(Some(usage).filter(|usage| *usage != Usage::default()))
}
