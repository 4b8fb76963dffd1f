//! What happened to a tree between two scans.

use std::cmp::Ordering;

use sayso_review::{Fingerprint, RecordedStep, WsPath};

use super::known::{Entry, Held, Known, Span};

/// What differs between two scans of one tree.
///
/// What one of them did not look at (an ignored directory, one that could not be opened, all that came after a limit) is in none
/// of the lists: that a file was not seen does not mean that it was not there, and an undo must never remove it for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeChanges {
    /// Files and links that came, went or became others, in the order of their paths. Both sides are captured.
    pub steps: Vec<RecordedStep>,
    /// What changed and cannot be brought back, since it was not captured on one side at least; in the order of their paths.
    pub uncaptured: Vec<UncapturedChange>,
    /// Directories that came, outermost first.
    pub made: Vec<WsPath>,
    /// Directories that went, outermost first.
    pub removed: Vec<WsPath>,
}

/// A change that is known to have happened, and no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncapturedChange {
    /// Where.
    pub path: WsPath,
    /// What.
    pub change: Happened,
}

/// What happened to something that was not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was not there before.
    Came,
    /// It is not there any more.
    Went,
    /// It is another, or was written to.
    Changed,
}

impl TreeChanges {
    /// Compares what two scans found.
    pub fn between(before: &Known, after: &Known) -> Self {
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

    /// Directories that only one of two scans could look into, outermost first: whatever is in them may have changed, and is in none of
    /// the lists.
    pub fn hidden_once(before: &Known, after: &Known) -> Vec<WsPath> {
        let one_way = |seen: &Known, other: &Known| -> Vec<WsPath> {
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

    /// Files and directories that a scan left out, most often since git ignores them, and that are not there any more.
    pub fn unseen_and_gone(before: &Known, after: &Known) -> Vec<WsPath> {
        let is_there = |path: &str, directory: &str| {
            let known = |list: &[Span]| list.binary_search_by(|span| after.text(*span).cmp(path)).is_ok();
            let entry = || after.entries.binary_search_by(|entry| after.text(entry.path).cmp(path)).is_ok();
            after.may_hide(directory) || after.may_hide(path) || known(&after.directories) || entry()
        };
        let unseen = before.unseen.iter().map(|span| before.text(*span));
        let gone = unseen.filter(|listed| !is_there(listed.trim_end_matches('/'), listed));
        gone.filter_map(|listed| WsPath::parse(listed.trim_end_matches('/')).ok()).collect()
    }

    /// Whether nothing differs.
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
            (None, _) => Happened::Came,
            (_, None) => Happened::Went,
            _ => Happened::Changed,
        };
        self.uncaptured.push(UncapturedChange { path, change });
    }
}

/// One path in one of the scans.
#[derive(Clone, Copy)]
struct Side<'k> {
    known: &'k Known,
    entry: Option<&'k Entry>,
}

impl<'k> Side<'k> {
    fn path(self) -> Option<&'k str> {
        self.entry.map(|entry| self.known.text(entry.path))
    }

    /// Whether it is not here only because nobody looked.
    fn hides(self, path: &str) -> bool {
        self.entry.is_none() && self.known.may_hide(path)
    }

    fn fingerprint(self) -> Option<Fingerprint> {
        self.entry.map_or(Some(Fingerprint::Absent), |entry| self.known.fingerprint(entry))
    }

    fn equals(self, other: Self) -> bool {
        let (Some(one), Some(two)) = (self.entry, other.entry) else { return false };
        match (one.held, two.held) {
            (Held::Content(old), Held::Content(new)) => {
                old == new && one.signature.permissions() == two.signature.permissions()
            }
            (Held::Link(old), Held::Link(new)) => self.known.text(old) == other.known.text(new),
            // Whoever uses a pipe changes its times.
            (Held::Special, Held::Special) => one.signature.mode == two.signature.mode,
            _ => one.signature == two.signature,
        }
    }
}

/// Directories that one scan found and the other did not, though it would have.
fn missing(here: &Known, there: &Known) -> Vec<WsPath> {
    let mut others = there.directories.iter().map(|span| there.text(*span)).peekable();
    let mut is_missing = |path: &str| {
        while others.next_if(|other| *other < path).is_some() {}
        others.peek() != Some(&path) && !there.may_hide(&format!("{path}/"))
    };
    let paths = here.directories.iter().map(|span: &Span| here.text(*span));
    paths.filter(|path| is_missing(path)).filter_map(|path| WsPath::parse(path).ok()).collect()
}
