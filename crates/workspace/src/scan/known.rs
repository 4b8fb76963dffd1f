//! What is known of a tree.

use sayso_review::{ContentHash, Fingerprint, WsPath};

use super::signature::Signature;

/// What a scan found, and what the next one starts from: for every file what `stat` said of it and what it held.
///
/// The default is to know nothing. It says as well where nobody looked (what git ignores, what could not be read, what came after
/// a limit), so that not to have seen a file is never taken for its not being there.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// All paths and link targets, one after the other: no file has an allocation of its own.
    pub(super) text: String,
    /// In the order of their paths, byte by byte.
    pub(super) entries: Vec<Entry>,
    /// Directories that were looked into, in order.
    pub(super) directories: Vec<Span>,
    /// What was left out, in order. A directory's name ends in a slash here, and stands for all that is below it.
    pub(super) unseen: Vec<Span>,
    /// Nothing from here on was looked at. A directory's name ends in a slash here.
    pub(super) stopped: Option<Span>,
}

/// A piece of [`Known::text`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What is known of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) path: Span,
    pub(super) signature: Signature,
    pub(super) belief: Belief,
    pub(super) standing: Standing,
    pub(super) held: Held,
}

/// Whether an equal signature means that nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belief {
    /// It does.
    Sure,
    /// It may have been written to again within the same tick of the clock.
    Racy,
}

/// Whether the next scan looks at it as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does.
    Seen,
    /// It does not: it is ignored, and was captured because it was not in the scan before, or because a command names it.
    Leaving,
}

/// What an entry held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// A regular file with this content.
    Content(ContentHash),
    /// A symbolic link with this target.
    Link(Span),
    /// A regular file or a link that was not captured.
    Unkept,
    /// A pipe, a socket or a device.
    Special,
}

impl Known {
    /// How many files and links are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was captured at a path; `None` if nothing was.
    pub fn at(&self, path: &WsPath) -> Option<Fingerprint> {
        let found = self.entries.binary_search_by(|entry| self.text(entry.path).cmp(path.as_str())).ok()?;
        self.fingerprint(self.entries.get(found)?)
    }

    /// What was at a path, be it nothing; `None` if that is not known, since nobody looked or it was not captured.
    pub fn was(&self, path: &WsPath) -> Option<Fingerprint> {
        match self.entries.binary_search_by(|entry| self.text(entry.path).cmp(path.as_str())) {
            Ok(found) => self.fingerprint(self.entries.get(found)?),
            Err(_) if self.may_hide(path.as_str()) => None,
            Err(_) => Some(Fingerprint::Absent),
        }
    }

    /// The contents that it refers to, which have to be kept for as long as it is used.
    pub fn contents(&self) -> impl Iterator<Item = ContentHash> {
        self.entries.iter().filter_map(|entry| match entry.held {
            Held::Content(hash) => Some(hash),
            Held::Link(_) | Held::Unkept | Held::Special => None,
        })
    }

    pub(super) fn text(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(super) fn write(&mut self, text: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        Span { start, end: self.text.len() }
    }

    pub(super) fn fingerprint(&self, entry: &Entry) -> Option<Fingerprint> {
        match entry.held {
            Held::Content(hash) => {
                let Signature { size, .. } = entry.signature;
                Some(Fingerprint::File { hash, size, mode: entry.signature.permissions() })
            }
            Held::Link(target) => Some(Fingerprint::Link { target: self.text(target).to_owned() }),
            Held::Unkept | Held::Special => None,
        }
    }

    /// Whether something may have been there without being known. The path of a directory ends in a slash here.
    pub(super) fn may_hide(&self, path: &str) -> bool {
        let listed = |path: &str| self.unseen.binary_search_by(|span| self.text(*span).cmp(path)).is_ok();
        let above = path.match_indices('/').filter_map(|(at, slash)| path.get(..at + slash.len()));
        self.stopped.is_some_and(|stop| path >= self.text(stop))
            || (!self.unseen.is_empty() && above.chain([path]).any(listed))
    }

    /// Whether a directory was there and nobody looked into it.
    pub(super) fn leaves_out(&self, directory: &str) -> bool {
        let directory = format!("{directory}/");
        self.unseen.binary_search_by(|span| self.text(*span).cmp(directory.as_str())).is_ok()
    }

    /// Puts in order what a walk meets in another one: `a-b/` comes before `a/`, but `a-b` after `a`.
    pub(super) fn sort(&mut self) {
        let Self { text, directories, unseen, .. } = self;
        for list in [directories, unseen] {
            list.sort_unstable_by_key(|span| text.get(span.start..span.end));
        }
    }
}

/// Goes through what is known beside a walk that meets paths in the same order.
pub(super) struct Cursor<'k> {
    pub(super) known: &'k Known,
    next: usize,
}

impl<'k> Cursor<'k> {
    pub(super) fn new(known: &'k Known) -> Self {
        Self { known, next: 0 }
    }

    fn advance(&mut self, path: &str) -> Option<(&'k str, &'k Entry)> {
        while let Some(entry) = self.known.entries.get(self.next) {
            let here = self.known.text(entry.path);
            if here >= path {
                return Some((here, entry));
            }
            self.next += 1;
        }
        None
    }

    /// What is known of a path, which comes after all that were asked for before.
    pub(super) fn find(&mut self, path: &str) -> Option<&'k Entry> {
        self.advance(path).filter(|(here, _)| *here == path).map(|(_, entry)| entry)
    }

    /// Whether a directory was at this path.
    pub(super) fn knew_directory(&self, path: &str) -> bool {
        self.known.directories.binary_search_by(|span| self.known.text(*span).cmp(path)).is_ok()
    }

    /// Whether anything that is not leaving is known below a directory, whose name ends in a slash here.
    pub(super) fn knows_below(&mut self, directory: &str) -> bool {
        self.advance(directory);
        let rest = self.known.entries.get(self.next..).unwrap_or_default();
        let mut below = rest.iter().take_while(|entry| self.known.text(entry.path).starts_with(directory));
        below.any(|entry| entry.standing == Standing::Seen)
    }
}
