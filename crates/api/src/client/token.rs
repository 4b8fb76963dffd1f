//! Tokens, which authenticate a client over TCP.

use std::fmt;

use http::HeaderValue;

/// Secret of an engine's HTTP server. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

/// A text that cannot be sent as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token must be non-empty visible ASCII")]
pub struct NotAToken;

impl Token {
    pub fn new(text: &str) -> Result<Self, NotAToken> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotAToken);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| NotAToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_debug_hides_secret() {
        let printed = Token::new("s3cret").map(|token| format!("{token:?} {:?}", token.header()));
        assert_eq!(printed.as_deref(), Ok("Token(…) Sensitive"));
    }

    #[test]
    fn token_with_line_break_is_rejected() {
        for text in ["", "a b", "a\r\nx: y", "naïve"] {
            assert_eq!(Token::new(text), Err(NotAToken), "{text:?}");
        }
    }
}
