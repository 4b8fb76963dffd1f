//! How many tokens a text has.
//!
//! A count is exact where the model's encoding is public, and an estimate otherwise; [`Tokens`] says which, and a sum is only as
//! exact as its parts. An agent sends its whole history with each turn, so a [`TokenCounter`] remembers what it has counted by a
//! hash of the content: a history that comes again costs a hash, and only what is new is counted.
//!
//! Limits: what is counted is text. What an API adds around a message (a few tokens of framing), pictures and documents are
//! not in a count. The encodings' tables are 6 MB of the program, of
//! which the system loads the pages that are used.

mod cache;
mod count;
mod encoding;
mod merge;
mod piece;
mod ranks;
mod split;

pub use cache::{DEFAULT_ENTRIES, TokenCounter};
pub use count::{Exactness, Tokens};
pub use encoding::{Encoding, Tokenizer};
pub use piece::count;
