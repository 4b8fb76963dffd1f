//! Token counts.
//!
//! A count is exact if the model's encoding is public, and an estimate otherwise. [`Tokens`] records the difference,
//! and a sum is only as exact as its parts. An agent sends its whole history with each turn, so a [`TokenCounter`]
//! caches counts by content hash. A repeated history costs a hash, and only new content is counted.
//!
//! Limits: only text is counted, without the API's framing tokens, pictures and documents. The encoding tables add 6 MB
//! to the program, of which the system loads only the used pages.

mod cache;
mod count;
mod encoding;
mod merge;
mod ranks;
mod split;
mod uncached;

pub use cache::{DEFAULT_ENTRIES, TokenCounter};
pub use count::{Exactness, Tokens};
pub use encoding::{TokenEncoding, Tokenizer};
pub use uncached::count;
