//! Searches a body for the few places where a credential may be, with vector instructions where the processor has them.

use aho_corasick::{AhoCorasick, packed};

use crate::note::secret::prefixes;

/// Bytes of a prefix that are searched for. Four are enough to be rare, and as many as the vector search looks at.
const STEM: usize = 4;

/// Searches for the prefixes of issuers. The short ones are searched for by themselves: among the others they would make all hits frequent.
pub(super) struct Prefixes {
    short: Search,
    long: Search,
}

/// Searches for any of some strings.
pub(super) enum Search {
    Vector(packed::Searcher),
    /// For processors without the vector instructions.
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

    /// Calls `found` with the offset of each hit.
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
