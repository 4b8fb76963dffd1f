//! Ids of tool calls in the form that each API accepts. A session may switch between APIs.

use std::borrow::Cow;

use sayso_base::ContentHash;

/// Start of ids that the agent chose because the API gave none.
pub(super) const OWN_PREFIX: &str = "sayso_call_";
/// Maximum length of an id.
const MAX_ID_BYTES: usize = 64;

/// Returns an id that Anthropic and OpenAI accept. Different ids stay different.
pub(super) fn portable(id: &str) -> Cow<'_, str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(allowed) {
        return Cow::Borrowed(id);
    }
    let hash = ContentHash::of(id.as_bytes()).to_string();
    Cow::Owned(format!("call_{}", &hash[..hash.len().min(32)]))
}

/// Returns the id of a call for which the API gave none.
pub(crate) fn own_call_id(number: usize) -> String {
    format!("{OWN_PREFIX}{number}")
}
