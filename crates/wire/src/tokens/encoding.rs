//! Tokenizers of known models.

use super::Exactness;
use super::ranks::{self, Ranks};
use super::split::{self, Splitter};

/// A public token encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenEncoding {
    /// `o200k_base`: OpenAI models since gpt-4o.
    O200k,
    /// `cl100k_base`: gpt-4, gpt-3.5 and the embedding models of that generation.
    Cl100k,
}

impl TokenEncoding {
    pub(super) fn ranks(self) -> &'static Ranks {
        match self {
            Self::O200k => &ranks::O200K,
            Self::Cl100k => &ranks::CL100K,
        }
    }

    pub(super) fn splitter(self) -> &'static Splitter {
        match self {
            Self::O200k => &split::O200K,
            Self::Cl100k => &split::CL100K,
        }
    }
}

/// The encoding that counts the tokens of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tokenizer {
    pub encoding: TokenEncoding,
    /// `Estimate` if the encoding is not the model's own.
    pub exactness: Exactness,
}

/// Prefixes of model names with their encodings, the most specific first.
///
/// An entry without a trailing `-` matches the name itself, or the name followed by `-` or `.`. The entry `gpt-4`
/// therefore does not match `gpt-4o`.
const MODELS: &[(&str, TokenEncoding)] = &[
    ("gpt-4o", TokenEncoding::O200k),
    ("gpt-4.1", TokenEncoding::O200k),
    ("gpt-4.5", TokenEncoding::O200k),
    ("gpt-5", TokenEncoding::O200k),
    ("gpt-oss", TokenEncoding::O200k),
    ("chatgpt-4o", TokenEncoding::O200k),
    ("codex", TokenEncoding::O200k),
    ("o1", TokenEncoding::O200k),
    ("o3", TokenEncoding::O200k),
    ("o4", TokenEncoding::O200k),
    ("gpt-4", TokenEncoding::Cl100k),
    ("gpt-3.5", TokenEncoding::Cl100k),
    ("gpt-35", TokenEncoding::Cl100k),
    ("text-embedding-3", TokenEncoding::Cl100k),
    ("text-embedding-ada-002", TokenEncoding::Cl100k),
    ("davinci-002", TokenEncoding::Cl100k),
    ("babbage-002", TokenEncoding::Cl100k),
];

impl Tokenizer {
    /// Fallback for unknown models and models without a public encoding.
    pub const ESTIMATE: Self = Self { encoding: TokenEncoding::O200k, exactness: Exactness::Estimate };

    /// Returns the tokenizer of a model by its name in a request.
    ///
    /// A name may contain a provider (`openai/gpt-5`), a fine-tuning mark (`ft:gpt-4o:…`), a date or a variant.
    pub fn for_model(name: &str) -> Self {
        let name = name.trim().to_ascii_lowercase();
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let known = MODELS.iter().find(|(start, _)| {
            name.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@']))
        });
        known.map_or(Self::ESTIMATE, |&(_, encoding)| Self { encoding, exactness: Exactness::Exact })
    }
}
