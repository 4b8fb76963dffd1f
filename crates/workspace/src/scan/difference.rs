//! Difference between two scans.

use std::cmp::Ordering;

use sayso_review::{Fingerprint, RecordedStep, WsPath};

use super::index::{IndexEntry, ScanIndex, Span, Stored};

/// Difference between two scans of one tree.
///
/// Paths that one of the scans did not cover (ignored or unreadable directories, and all paths after a limit) are in
/// none of the lists. An unseen file may exist, so an undo must never remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeChanges {
    /// Created, removed and changed files and links, sorted by path. Both sides are captured.
    pub steps: Vec<RecordedStep>,
    /// Changes that cannot be undone, because one side was not captured; sorted by path.
    pub uncaptured: Vec<UncapturedChange>,
    /// Created directories, outermost first.
    pub made: Vec<WsPath>,
    /// Removed directories, outermost first.
    pub removed: Vec<WsPath>,
}

/// A change without captured contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncapturedChange {
    pub path: WsPath,
    pub change: ChangeKind,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Removed,
    /// The file was replaced or written to.
    Modified,
}

impl TreeChanges {
    /// Compares two scans.
    pub fn between(before: &ScanIndex, after: &ScanIndex) -> Self {
        let mut changes = Self::default();
        let (mut old, mut new) = (before.entries.iter().peekable(), after.entries.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => before.text(old.path).cmp(after.text(new.path)),
            };
            let was = (order != Ordering::Greater).then(|| old.next()).flatten();
            let is = (order != Ordering::Less).then(|| new.next()).flatten();
            changes.compare(Side { known: before, entry: was }, Side { known: after, entry: is });
        }
        changes.made = missing(after, before);
        changes.removed = missing(before, after);
        changes
    }

    /// Returns directories that only one of the scans could read, outermost first. Changes inside are in none of the
    /// lists.
    pub fn hidden_once(before: &ScanIndex, after: &ScanIndex) -> Vec<WsPath> {
        let one_way = |seen: &ScanIndex, other: &ScanIndex| -> Vec<WsPath> {
            let hides = |path: &&str| other.leaves_out(path);
            seen.directories
                .iter()
                .map(|span| seen.text(*span))
                .filter(hides)
                .filter_map(|path| WsPath::parse(path).ok())
                .collect()
        };
        let mut paths = [one_way(before, after), one_way(after, before)].concat();
        paths.sort();
        paths
    }

    /// Returns paths that the first scan left out, mostly ignored ones, and that no longer exist.
    pub fn unseen_and_gone(before: &ScanIndex, after: &ScanIndex) -> Vec<WsPath> {
        let is_there = |path: &str, directory: &str| {
            let known = |list: &[Span]| list.binary_search_by(|span| after.text(*span).cmp(path)).is_ok();
            let entry = || after.entries.binary_search_by(|entry| after.text(entry.path).cmp(path)).is_ok();
            after.may_hide(directory) || after.may_hide(path) || known(&after.directories) || entry()
        };
        let unseen = before.unseen.iter().map(|span| before.text(*span));
        let gone = unseen.filter(|listed| !is_there(listed.trim_end_matches('/'), listed));
        gone.filter_map(|listed| WsPath::parse(listed.trim_end_matches('/')).ok()).collect()
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn compare(&mut self, was: Side<'_>, is: Side<'_>) {
        let Some(path) = was.path().or(is.path()) else { return };
        if was.hides(path) || is.hides(path) || was.equals(is) {
            return;
        }
        let Ok(path) = WsPath::parse(path) else { return };
        if let (Some(before), Some(after)) = (was.fingerprint(), is.fingerprint()) {
            self.steps.push(RecordedStep { path, before, after });
            return;
        }
        let change = match (was.entry, is.entry) {
            (None, _) => ChangeKind::Created,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Modified,
        };
        self.uncaptured.push(UncapturedChange { path, change });
    }
}

/// A path in one of the scans.
#[derive(Clone, Copy)]
struct Side<'k> {
    known: &'k ScanIndex,
    entry: Option<&'k IndexEntry>,
}

impl<'k> Side<'k> {
    fn path(self) -> Option<&'k str> {
        self.entry.map(|entry| self.known.text(entry.path))
    }

    /// `true` if the path is missing only because the scan did not cover it.
    fn hides(self, path: &str) -> bool {
        self.entry.is_none() && self.known.may_hide(path)
    }

    fn fingerprint(self) -> Option<Fingerprint> {
        self.entry.map_or(Some(Fingerprint::Absent), |entry| self.known.fingerprint(entry))
    }

    fn equals(self, other: Self) -> bool {
        let (Some(one), Some(two)) = (self.entry, other.entry) else { return false };
        match (one.stored, two.stored) {
            (Stored::Content(old), Stored::Content(new)) => {
                old == new && one.signature.permissions() == two.signature.permissions()
            }
            (Stored::Link(old), Stored::Link(new)) => self.known.text(old) == other.known.text(new),
            // Using a pipe changes its times.
            (Stored::Special, Stored::Special) => one.signature.mode == two.signature.mode,
            _ => one.signature == two.signature,
        }
    }
}

/// Returns directories of one scan that the other one covered and did not find.
fn missing(here: &ScanIndex, there: &ScanIndex) -> Vec<WsPath> {
    let mut others = there.directories.iter().map(|span| there.text(*span)).peekable();
    let mut is_missing = |path: &str| {
        while others.next_if(|other| *other < path).is_some() {}
        others.peek() != Some(&path) && !there.may_hide(&format!("{path}/"))
    };
    let paths = here.directories.iter().map(|span: &Span| here.text(*span));
    paths.filter(|path| is_missing(path)).filter_map(|path| WsPath::parse(path).ok()).collect()
}
