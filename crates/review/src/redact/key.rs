//! Names of members that hold credentials.

use std::ops::RangeInclusive;

use super::FILLER;

/// Ends of names that hold a credential, in small letters and without separators.
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

/// Names that hold a credential only if nothing comes before them.
pub(super) const WHOLE: &[&str] = &["bearer", "cookie", "setcookie"];

/// Parts of names, one of which is in every name above, in the forms `api_key`, `apiKey` and `API_KEY`. Those of frequent words have the
/// end of the key with them, a quote or the backslash before it.
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

/// Lengths of a value that is a credential under the key `token`.
const OPAQUE_SIZES: RangeInclusive<usize> = 20..=4_096;

/// Longest name that is looked at, in characters that count.
const MAX_NAME: usize = 64;

/// `true` if a string under this key is a credential: `api_key`, `X-Api-Key`, `clientSecret`, `DB_PASSWORD`.
///
/// Case, `-`, `_` and digits at the end do not count. `max_tokens`, `page_token` and `eos_token` are none; a variable such as
/// `MY_TOKEN` is. Under `token` alone only a long opaque value is a credential.
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

/// `true` for a value that is a credential if its key is `token`. Answers list the tokens of a text under that key, which are short.
pub(super) fn is_opaque(value: &[u8]) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.~+/=".contains(byte);
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let is_drawn = value.iter().all(is_of_token) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    OPAQUE_SIZES.contains(&value.len()) && (is_drawn || value.iter().all(|byte| *byte == FILLER))
}

/// The last letters and digits of a name, in small letters.
fn normalised<'b>(name: &[u8], buffer: &'b mut [u8; MAX_NAME]) -> &'b [u8] {
    let mut start = MAX_NAME;
    for byte in name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(MAX_NAME) {
        start -= 1;
        buffer[start] = byte.to_ascii_lowercase();
    }
    &buffer[start..]
}

/// `true` for the name of an environment variable that ends in `_TOKEN`.
fn is_variable_of_token(name: &[u8]) -> bool {
    name.ends_with(b"_TOKEN") && name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}
