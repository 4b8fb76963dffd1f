//! What a person shows to be let in over HTTP.

use std::fmt;

use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// A secret that is compared in constant time and printed nowhere by accident.
#[derive(Clone)]
pub struct Token(String);

/// A text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadToken {
    /// Too easy to guess.
    #[error("the token has {0} characters")]
    TooShort(usize),
    /// Cannot be sent in a header.
    #[error("the token has characters other than letters, digits and -._~+/=")]
    BadCharacter,
}

impl BadToken {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "give at least 16 letters and digits, or leave it to sayso, which makes one for each start"
    }
}

impl Token {
    /// The shortest that is taken.
    const SHORTEST: usize = 16;

    /// A new one, of 256 random bits.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; 32];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// One of the user's choice.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        if text.len() < Self::SHORTEST {
            return Err(BadToken::TooShort(text.len()));
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if text.bytes().all(fits) { Ok(Self(text.to_owned())) } else { Err(BadToken::BadCharacter) }
    }

    /// Whether this is it. Takes as long for a nearly right one as for any other of its length.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }

    /// The secret itself, for the person who is to have it.
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
    fn a_token_is_told_from_any_other_and_never_printed() {
        let token = Token::random().unwrap();
        assert!(token.is(token.reveal().as_bytes()));
        assert!(!token.is(&token.reveal().as_bytes()[..63]));
        assert!(!token.is(b""));
        assert!(!token.is(Token::random().unwrap().reveal().as_bytes()));
        assert!(!format!("{token:?}").contains(token.reveal()));
    }

    #[test]
    fn what_is_too_short_or_cannot_be_sent_is_no_token() {
        assert_eq!(Token::new("secret").unwrap_err(), BadToken::TooShort(6));
        assert_eq!(Token::new("a secret with spaces").unwrap_err(), BadToken::BadCharacter);
        assert!(Token::new("0123456789abcdef").is_ok());
    }
}
