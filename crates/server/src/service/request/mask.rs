//! Masking of credentials in displayed requests. A held request keeps them in memory and is sent with them.

use std::borrow::Cow;

use sayso_proxy::interceptor::{is_credential_path, redacted_paths};
use sayso_review::MAX_REDACTIONS;
use sayso_review::redact::{FILLER, find, masked_text, merged};
use sayso_wire::ModelRequest;
use sayso_wire::json::text;

/// Shortest credential that is masked everywhere. A shorter one is masked at its own path only.
const MIN_VALUE_BYTES: usize = 6;

/// Masks the credentials of one request.
pub(super) struct CredentialMask {
    /// Credentials before and after edits, longest first.
    values: Vec<String>,
    /// Paths of credentials in the edited body, at most [`MAX_REDACTIONS`].
    pub(super) paths: Vec<String>,
}

impl CredentialMask {
    pub(super) fn of(request: &ModelRequest) -> Self {
        let edited = request.to_bytes();
        let redactions = merged(&find(&edited));
        let mut values: Vec<String> = redactions.iter().map(|redaction| decoded(&edited[redaction.range()])).collect();
        if request.is_dirty() {
            let received = request.original();
            values.extend(find(received).iter().map(|redaction| decoded(&received[redaction.range()])));
        }
        values.retain(|value| value.len() >= MIN_VALUE_BYTES && value.bytes().any(|byte| byte != FILLER));
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values, paths: redacted_paths(&edited, &redactions[..redactions.len().min(MAX_REDACTIONS)]) }
    }

    /// Masks all credentials in a text of the request.
    pub(super) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = Cow::Owned(masked.replace(value.as_str(), &fillers(value.len())));
            }
        }
        // Also masks patterns, such as tokens of known services.
        match masked_text(&masked) {
            Cow::Borrowed(_) => masked,
            Cow::Owned(by_pattern) => Cow::Owned(by_pattern),
        }
    }

    /// Masks the value at a path: completely if the path names a credential.
    pub(super) fn mask_at<'t>(&self, path: &str, text: &'t str) -> Cow<'t, str> {
        let is_container = text.starts_with(['{', '[']);
        if !text.is_empty() && !is_container && is_credential_path(path) {
            return Cow::Owned(fillers(text.len()));
        }
        self.mask(text)
    }
}

fn fillers(size: usize) -> String {
    char::from(FILLER).to_string().repeat(size)
}

fn decoded(raw: &[u8]) -> String {
    text::decode(raw).into_owned()
}
