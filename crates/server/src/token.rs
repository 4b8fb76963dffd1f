//! Secrets that authenticate callers over HTTP.

use std::fmt;

use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// A secret. Comparison takes constant time; `Debug` hides it.
#[derive(Clone)]
pub struct Token(String);

/// A text that is not accepted as a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadToken {
    /// Too easy to guess. Holds the length in bytes.
    #[error("the token has only {0} characters")]
    TooShort(usize),
    /// Cannot be sent in a header.
    #[error("the token has characters other than letters, digits and -._~+/=")]
    BadCharacter,
}

impl BadToken {
    pub fn hint(&self) -> &'static str {
        "use at least 16 letters and digits, or omit it: sayso then generates one at each start"
    }
}

impl Token {
    const MIN_LENGTH: usize = 16;

    /// Generates a token of 256 random bits.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; 32];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Accepts a token that the user chose.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        if text.len() < Self::MIN_LENGTH {
            return Err(BadToken::TooShort(text.len()));
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if text.bytes().all(fits) { Ok(Self(text.to_owned())) } else { Err(BadToken::BadCharacter) }
    }

    /// `true` if `shown` equals the secret. Takes constant time for a given length.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }

    /// Returns the secret, for the person or client that it was created for.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn token_matches_only_itself_and_debug_hides_it() {
        let token = Token::random().unwrap();
        assert!(token.is(token.reveal().as_bytes()));
        assert!(!token.is(&token.reveal().as_bytes()[..63]));
        assert!(!token.is(b""));
        assert!(!token.is(Token::random().unwrap().reveal().as_bytes()));
        assert!(!format!("{token:?}").contains(token.reveal()));
    }

    #[test]
    fn short_or_unsendable_token_is_rejected() {
        assert_eq!(Token::new("secret").unwrap_err(), BadToken::TooShort(6));
        assert_eq!(Token::new("a secret with spaces").unwrap_err(), BadToken::BadCharacter);
        assert!(Token::new("0123456789abcdef").is_ok());
    }
}
