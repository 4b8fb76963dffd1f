//! Compared contents, kept for the next page.
//!
//! A comparison is expensive and a page is cheap. The key consists of content hashes, so that an entry is never out of date.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_diff::{ConflictRows, DiffRows, RowOptions};
use sayso_present::syntax::SyntaxCache;
use sayso_review::{Content, ContentHash};

/// Contents and row indexes in memory.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Syntax classes in memory.
const MAX_SYNTAX_BYTES: usize = 16 << 20;

/// The hashes of the compared contents. `None` is an absent file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Two([Option<ContentHash>; 2]),
    /// The base, their version and your version.
    Three([Option<ContentHash>; 3]),
}

/// A comparison of two or three versions.
#[derive(Clone, Debug)]
pub(crate) enum CachedComparison {
    Two(Arc<DiffRows<Content>>),
    Three(Arc<ConflictRows<Content>>),
}

impl CachedComparison {
    fn bytes(&self) -> usize {
        let size = |content: Option<&Content>| content.map_or(0, |content| content.bytes().len());
        match self {
            Self::Two(rows) => {
                let (old, new) = rows.contents();
                size(old) + size(new) + rows.index_bytes()
            }
            Self::Three(rows) => rows.contents().into_iter().map(size).sum(),
        }
    }
}

#[derive(Debug)]
struct CachedRows {
    key: (Compared, RowOptions),
    comparison: CachedComparison,
    bytes: usize,
}

/// The comparisons used last.
#[derive(Debug)]
pub(crate) struct DiffCache {
    /// The entry used last is at the end.
    entries: Mutex<Vec<CachedRows>>,
    pub(crate) syntax: SyntaxCache,
}

impl Default for DiffCache {
    fn default() -> Self {
        Self { entries: Mutex::default(), syntax: SyntaxCache::new(MAX_SYNTAX_BYTES) }
    }
}

impl DiffCache {
    pub(crate) fn find(&self, compared: Compared, options: RowOptions) -> Option<CachedComparison> {
        let mut entries = self.lock();
        let at = entries.iter().rposition(|entry| entry.key == (compared, options))?;
        let entry = entries.remove(at);
        let comparison = entry.comparison.clone();
        entries.push(entry);
        Some(comparison)
    }

    /// Adds a comparison and removes the ones used longest ago. The new one stays even if it is larger than the limit.
    pub(crate) fn add(&self, compared: Compared, options: RowOptions, comparison: CachedComparison) {
        let mut entries = self.lock();
        // Another call may have compared the same contents meanwhile.
        entries.retain(|entry| entry.key != (compared, options));
        let bytes = comparison.bytes() + size_of::<CachedRows>();
        entries.push(CachedRows { key: (compared, options), comparison, bytes });
        let mut total: usize = entries.iter().map(|entry| entry.bytes).sum();
        while total > MAX_CACHED_BYTES && entries.len() > 1 {
            total -= entries.remove(0).bytes;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CachedRows>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests panic to fail")]
mod tests {
    use super::*;

    fn add(cache: &DiffCache, bytes: Vec<u8>) -> Compared {
        let content = Content::new(bytes);
        let compared = Compared::Two([None, Some(content.hash())]);
        let rows = DiffRows::new(None, Some(content), RowOptions::default());
        cache.add(compared, RowOptions::default(), CachedComparison::Two(Arc::new(rows)));
        compared
    }

    #[test]
    fn cache_stays_within_its_bytes() {
        let cache = DiffCache::default();
        for number in 0..100_u8 {
            add(&cache, vec![number; 4 << 20]);
            let bytes: usize = cache.lock().iter().map(|entry| entry.bytes).sum();
            assert!(bytes <= MAX_CACHED_BYTES, "{bytes}");
        }
        assert_eq!(cache.lock().len(), 15);
        let large = add(&cache, vec![b'x'; MAX_CACHED_BYTES + 1]);
        assert!(cache.find(large, RowOptions::default()).is_some());
        assert_eq!(cache.lock().len(), 1);
    }

    #[test]
    fn same_contents_are_kept_once() {
        let cache = DiffCache::default();
        let compared = add(&cache, vec![1; 10]);
        assert_eq!(add(&cache, vec![1; 10]), compared);
        assert_eq!(cache.lock().len(), 1);
        let whole = RowOptions { whole_file: true, ..RowOptions::default() };
        assert!(cache.find(compared, whole).is_none());
    }
}
