//! What shows over a network that a client belongs.

use std::fmt;

use http::HeaderValue;

/// The secret that an engine's HTTP server asks for. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

/// A text cannot be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is not empty and has visible ASCII characters only")]
pub struct NotAToken;

impl Token {
    /// Takes a text for a token.
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
    fn a_token_is_not_printed() {
        let printed = Token::new("s3cret").map(|token| format!("{token:?} {:?}", token.header()));
        assert_eq!(printed.as_deref(), Ok("Token(…) Sensitive"));
    }

    #[test]
    fn a_token_cannot_carry_a_second_header() {
        for text in ["", "a b", "a\r\nx: y", "naïve"] {
            assert_eq!(Token::new(text), Err(NotAToken), "{text:?}");
        }
    }
}
