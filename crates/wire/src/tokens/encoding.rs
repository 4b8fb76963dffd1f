//! Which model counts how.

use super::Exactness;
use super::ranks::{self, Ranks};
use super::split::{self, Splitter};

/// A public way to cut text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// `o200k_base`: OpenAI's models since gpt-4o.
    O200k,
    /// `cl100k_base`: gpt-4, gpt-3.5 and the embeddings of their time.
    Cl100k,
}

impl Encoding {
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

/// How the tokens of one model are counted: with its own encoding, or with one that stands in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tokenizer {
    /// What counts.
    pub encoding: Encoding,
    /// Whether it is the model's own.
    pub exactness: Exactness,
}

/// Starts of names and their encodings, the more particular first.
///
/// An entry that does not end in `-` stands for the name itself and for what follows it after `-` or `.`, so that `gpt-4` is
/// not `gpt-4o`.
const MODELS: &[(&str, Encoding)] = &[
    ("gpt-4o", Encoding::O200k),
    ("gpt-4.1", Encoding::O200k),
    ("gpt-4.5", Encoding::O200k),
    ("gpt-5", Encoding::O200k),
    ("gpt-oss", Encoding::O200k),
    ("chatgpt-4o", Encoding::O200k),
    ("codex", Encoding::O200k),
    ("o1", Encoding::O200k),
    ("o3", Encoding::O200k),
    ("o4", Encoding::O200k),
    ("gpt-4", Encoding::Cl100k),
    ("gpt-3.5", Encoding::Cl100k),
    ("gpt-35", Encoding::Cl100k),
    ("text-embedding-3", Encoding::Cl100k),
    ("text-embedding-ada-002", Encoding::Cl100k),
    ("davinci-002", Encoding::Cl100k),
    ("babbage-002", Encoding::Cl100k),
];

impl Tokenizer {
    /// What stands in for an encoding that is not public, or for a model nobody has heard of.
    pub const ESTIMATE: Self = Self { encoding: Encoding::O200k, exactness: Exactness::About };

    /// The tokenizer of a model by its name, as it stands in a request.
    ///
    /// Names may carry a provider before a slash (`openai/gpt-5`), a fine-tuning mark (`ft:gpt-4o:…`), a date or a variant.
    pub fn of_model(name: &str) -> Self {
        let name = name.trim().to_ascii_lowercase();
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let known = MODELS.iter().find(|(start, _)| {
            name.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@']))
        });
        known.map_or(Self::ESTIMATE, |&(_, encoding)| Self { encoding, exactness: Exactness::Exact })
    }
}
