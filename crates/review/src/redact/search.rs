//! Searches a body for candidate positions of credentials, with vector instructions if the processor supports them.

use aho_corasick::{AhoCorasick, packed};

use crate::note::secret::prefixes;

/// Number of searched bytes of a prefix. Four bytes are rare enough, and the vector search examines no more.
const STEM: usize = 4;

/// Searches for issuers' prefixes. Short prefixes have their own search, because they would produce many candidates in
/// the common one.
pub(super) struct Prefixes {
    short: Search,
    long: Search,
}

/// A search for several strings.
pub(super) enum Search {
    Vector(packed::Searcher),
    /// Fallback for processors without vector instructions.
    Automaton(Option<AhoCorasick>),
}

impl Prefixes {
    pub(super) fn new() -> Self {
        let short: Vec<&str> = prefixes().filter(|prefix| prefix.len() < STEM).collect();
        let is_covered = |prefix: &&str| short.iter().any(|short| prefix.starts_with(short));
        let mut long: Vec<&str> =
            prefixes().filter(|prefix| !is_covered(prefix)).map(|prefix| &prefix[..STEM]).collect();
        long.sort_unstable();
        long.dedup();
        Self { short: Search::new(&short), long: Search::new(&long) }
    }

    /// Calls `found` with each offset at which a prefix may begin.
    pub(super) fn each(&self, bytes: &[u8], mut found: impl FnMut(usize)) {
        self.short.each(bytes, &mut found);
        self.long.each(bytes, &mut found);
    }
}

impl Search {
    pub(super) fn new(stems: &[&str]) -> Self {
        match packed::Config::new().builder().extend(stems).build() {
            Some(search) => Self::Vector(search),
            None => Self::Automaton(AhoCorasick::new(stems).ok()),
        }
    }

    /// Calls `found` with the offset of each match.
    pub(super) fn each(&self, bytes: &[u8], mut found: impl FnMut(usize)) {
        match self {
            Self::Vector(search) => search.find_iter(bytes).for_each(|stem| found(stem.start())),
            Self::Automaton(search) => {
                let all = search.iter().flat_map(|search| search.find_iter(bytes));
                all.for_each(|stem| found(stem.start()));
            }
        }
    }
}
