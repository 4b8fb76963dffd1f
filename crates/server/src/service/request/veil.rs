//! Credentials of a request, hidden in all that is shown of it. A request that waits has them in memory, and is sent with them.

use std::borrow::Cow;

use sayso_proxy::desk::{is_credential_path, redacted_paths};
use sayso_review::MAX_REDACTIONS;
use sayso_review::redact::{FILLER, find, masked_text, merged};
use sayso_wire::ModelRequest;
use sayso_wire::json::text;

/// Shortest value that is hidden wherever it stands. A shorter one is hidden under its key only.
const MIN_VALUE: usize = 6;

/// Hides the credentials of one request.
pub(super) struct Veil {
    /// Values of its credentials, before and after its edits, the longest first.
    values: Vec<String>,
    /// Paths of its credentials as it is now.
    pub(super) paths: Vec<String>,
}

impl Veil {
    pub(super) fn of(request: &ModelRequest) -> Self {
        let now = request.to_bytes();
        let redactions = merged(&find(&now));
        let mut values: Vec<String> = redactions.iter().map(|one| decoded(&now[one.range()])).collect();
        if request.is_dirty() {
            let came = request.original();
            values.extend(find(came).iter().map(|one| decoded(&came[one.range()])));
        }
        values.retain(|value| value.len() >= MIN_VALUE && value.bytes().any(|byte| byte != FILLER));
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values, paths: redacted_paths(&now, &redactions[..redactions.len().min(MAX_REDACTIONS)]) }
    }

    /// A text of the request as it is shown.
    pub(super) fn hide<'t>(&self, shown: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(shown);
        for value in &self.values {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), &fillers(value.len())));
            }
        }
        match masked_text(&shown) {
            Cow::Borrowed(_) => shown,
            Cow::Owned(masked) => Cow::Owned(masked),
        }
    }

    /// What stands at a path, as it is shown.
    pub(super) fn hide_at<'t>(&self, path: &str, shown: &'t str) -> Cow<'t, str> {
        let is_container = shown.starts_with(['{', '[']);
        if !shown.is_empty() && !is_container && is_credential_path(path) {
            return Cow::Owned(fillers(shown.len()));
        }
        self.hide(shown)
    }
}

fn fillers(size: usize) -> String {
    char::from(FILLER).to_string().repeat(size)
}

fn decoded(raw: &[u8]) -> String {
    text::decode(raw).into_owned()
}
