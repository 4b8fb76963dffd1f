//! Names of JSON members that hold credentials.

use std::ops::RangeInclusive;

use super::FILLER;

/// Suffixes of names that hold a credential, in lower case without separators.
pub(super) const SUFFIXES: &[&str] = &[
    "accesskey",
    "accesstoken",
    "accountkey",
    "apikey",
    "apitoken",
    "apptoken",
    "authkey",
    "authorization",
    "authorizationtoken",
    "authtoken",
    "bearertoken",
    "bottoken",
    "csrftoken",
    "deploytoken",
    "encryptionkey",
    "githubtoken",
    "gitlabtoken",
    "hftoken",
    "idtoken",
    "masterkey",
    "npmtoken",
    "passphrase",
    "passwd",
    "password",
    "personaltoken",
    "privatekey",
    "privatetoken",
    "refreshtoken",
    "secret",
    "secretkey",
    "secrettoken",
    "securitytoken",
    "servertoken",
    "servicetoken",
    "sessiontoken",
    "signingkey",
    "slacktoken",
    "subscriptionkey",
    "usertoken",
];

/// Names that hold a credential only as a whole.
pub(super) const WHOLE: &[&str] = &["bearer", "cookie", "setcookie"];

/// Substrings for a fast search: every name above contains one of them, in the forms `api_key`, `apiKey` and `API_KEY`.
/// Stems that are frequent words include the character after the key, a quote or its backslash. `value` finds
/// `{"name":"API_KEY","value":…}`, where another member holds the name.
pub(super) const KEY_STEMS: &[&str] = &[
    "key\"",
    "key\\",
    "Key\"",
    "Key\\",
    "KEY\"",
    "KEY\\",
    "oken\"",
    "oken\\",
    "OKEN\"",
    "OKEN\\",
    "value\"",
    "value\\",
    "ecret",
    "ECRET",
    "ssword",
    "SSWORD",
    "ssWord",
    "asswd",
    "ASSWD",
    "ssphrase",
    "SSPHRASE",
    "horization",
    "HORIZATION",
    "earer",
    "EARER",
    "ookie",
    "OOKIE",
];

/// Lengths in bytes of a credential under the key `token`.
const OPAQUE_SIZES: RangeInclusive<usize> = 20..=4_096;

/// Maximum number of examined characters of a name.
const MAX_NAME: usize = 64;

/// `true` if a string under this key is a credential: `api_key`, `X-Api-Key`, `clientSecret`, `DB_PASSWORD`.
///
/// Case, separators and digits at the end do not count. `max_tokens`, `page_token` and `eos_token` are no such keys; a variable
/// such as `MY_TOKEN` is one. The name `token` alone does not match: its value decides.
pub fn is_credential_key(name: &[u8]) -> bool {
    let name = name.trim_ascii_end();
    let name = &name[..name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()];
    is_variable_of_token(name) || {
        let mut plain = [0; MAX_NAME];
        let plain = normalised(name, &mut plain);
        WHOLE.iter().any(|whole| plain == whole.as_bytes())
            || SUFFIXES.iter().any(|end| plain.ends_with(end.as_bytes()))
    }
}

/// `true` if the value of a key `token` is a credential, or one that was masked before. Responses with log probabilities
/// use the key for short pieces of text.
pub(super) fn is_opaque(value: &[u8]) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.~+/=".contains(byte);
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let is_random = value.iter().all(is_of_token) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    OPAQUE_SIZES.contains(&value.len()) && (is_random || value.iter().all(|byte| *byte == FILLER))
}

/// Returns the letters and digits of a name in lower case. A name with more than [`MAX_NAME`] of them loses the first ones.
fn normalised<'b>(name: &[u8], buffer: &'b mut [u8; MAX_NAME]) -> &'b [u8] {
    let mut start = MAX_NAME;
    for byte in name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(MAX_NAME) {
        start -= 1;
        buffer[start] = byte.to_ascii_lowercase();
    }
    &buffer[start..]
}

/// `true` for an environment variable whose name ends in `_TOKEN`.
fn is_variable_of_token(name: &[u8]) -> bool {
    name.ends_with(b"_TOKEN") && name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}
