//! Names of members that hold credentials.

/// Ends of names that hold a credential, in small letters and without separators.
const SUFFIXES: &[&str] = &[
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
    "encryptionkey",
    "idtoken",
    "masterkey",
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
    "sessiontoken",
    "signingkey",
    "subscriptionkey",
    "usertoken",
];

/// Names that hold a credential only if nothing comes before them.
const WHOLE: &[&str] = &["bearer", "cookie", "setcookie"];

/// Longest name that is looked at, in characters that count.
const MAX_NAME: usize = 64;

/// `true` if a string under this key is a credential: `api_key`, `X-Api-Key`, `clientSecret`, `DB_PASSWORD`.
///
/// Case, `-`, `_` and digits at the end do not count. `token` alone is not one, since answers list the tokens of a text under that
/// name, nor are `max_tokens`, `page_token` or `eos_token`; a variable such as `GITHUB_TOKEN` is.
pub fn is_credential_key(name: &[u8]) -> bool {
    let name = name.trim_ascii_end();
    let name = &name[..name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()];
    // Sorts out most names by their last letter.
    let last = name.iter().rev().find(|byte| byte.is_ascii_alphanumeric());
    if !last.is_some_and(|last| b"denrty".contains(&last.to_ascii_lowercase())) {
        return false;
    }
    is_variable_of_token(name) || {
        let mut plain = [0; MAX_NAME];
        let plain = normalised(name, &mut plain);
        WHOLE.iter().any(|whole| plain == whole.as_bytes())
            || SUFFIXES.iter().any(|end| plain.ends_with(end.as_bytes()))
    }
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
