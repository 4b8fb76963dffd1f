//! Walk of a scan: by handles, in the order of paths, in parallel with the previous index.

use std::ffi::CString;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::batch::{Batch, NotRead, ReadContent, SAFE};
use super::directory::{DirectoryNames, Ended, ItemKind, Listed, open_directories, open_directory};
use super::index::{Coverage, Cursor, IndexEntry, ScanIndex, StatTrust, Stored};
use super::named::NamedPaths;
use super::not_captured::{NotCaptured, Reason};
use super::precious::is_precious;
use super::signature::{Moment, Signature};
use super::{Contents, Scan, ScanCost, ScanError, ScanLimits, Trust};
use crate::ignores::{GIT, IGNORE_FILE, IGNORE_FILE_LIMIT, Ignorable, Ignores, MAX_DEPTH};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

/// Selection of a directory's entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// All entries that are not ignored.
    All,
    /// The directory is ignored: only named entries, and entries that were captured before it was ignored, one last
    /// time.
    Named,
}

/// Reason to capture a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The file is not ignored.
    Tree,
    /// The file is ignored, and a command names it.
    Command,
}

pub(super) struct Scanner<'s, C> {
    cursor: Cursor<'s>,
    trust: Trust,
    limits: ScanLimits,
    began: Moment,
    protected: Vec<&'s str>,
    contents: &'s mut C,
    /// Path of the present entry.
    path: String,
    depth: usize,
    /// Coverage of the present file.
    coverage: Coverage,
    /// Reason to capture the present file.
    source: Source,
    /// Paths to capture even if they are ignored.
    named: NamedPaths,
    /// Remaining bytes for new contents of ignored files.
    room_for_named: u64,
    ignores: Ignores,
    names: DirectoryNames,
    batch: Batch,
    found: ScanIndex,
    not_captured: Vec<NotCaptured>,
    cost: ScanCost,
}

impl<'s, C: Contents> Scanner<'s, C> {
    pub(super) fn new(
        known: &'s ScanIndex,
        trust: Trust,
        limits: ScanLimits,
        began: Moment,
        protected: Vec<&'s str>,
        contents: &'s mut C,
    ) -> Self {
        let mut found = ScanIndex::default();
        found.text.reserve(known.text.len() + known.text.len() / 8);
        found.entries.reserve(known.entries.len() + known.entries.len() / 8);
        Self {
            cursor: Cursor::new(known),
            trust,
            limits,
            began,
            protected,
            contents,
            path: String::new(),
            depth: 0,
            coverage: Coverage::Tracked,
            source: Source::Tree,
            named: NamedPaths::default(),
            room_for_named: limits.max_ignored_bytes,
            ignores: Ignores::default(),
            names: DirectoryNames::new(),
            batch: Batch::default(),
            found,
            not_captured: Vec::new(),
            cost: ScanCost::default(),
        }
    }

    /// Sets the paths to capture even if they are ignored.
    pub(super) fn naming(mut self, named: &NamedPaths) -> Self {
        self.named = named.clone();
        self
    }

    pub(super) fn scan(mut self, root: &OwnedFd) -> Result<Scan, ScanError<C::Error>> {
        let listed = self.names.list(root.as_fd(), self.limits.max_files).map_err(ScanError::List)?;
        self.directory(root.as_fd(), &listed, Within::All).map_err(ScanError::Contents)?;
        self.batch.hand_over(self.contents).map_err(ScanError::Contents)?;
        self.found.sort();
        self.cost.found = self.found.entries.len();
        Ok(Scan { index: self.found, not_captured: self.not_captured, cost: self.cost })
    }

    fn directory(&mut self, handle: BorrowedFd<'_>, listed: &Listed, within: Within) -> Result<Flow, C::Error> {
        for name in &listed.unnameable {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}/{name}", self.path) };
            self.not_captured.push(NotCaptured { path, reason: Reason::Name });
        }
        let mut flow = Flow::On;
        if listed.ended == Ended::TooMany {
            flow = self.stop(ItemKind::Directory);
        } else {
            let lists = self.ignores.depth();
            self.enter_ignores(handle, listed);
            let length = self.path.len();
            for index in listed.from..listed.to {
                let Some((name, kind)) = self.names.item(index) else { break };
                // A listing may contain an entry twice if the directory changes meanwhile.
                let is_again = index > listed.from && self.names.item(index - 1) == Some((name, kind));
                if name == GIT || is_again {
                    continue;
                }
                if length > 0 {
                    self.path.push('/');
                }
                let start = self.path.len();
                self.path.push_str(name);
                flow = self.entry(handle, start, kind, within)?;
                self.path.truncate(length);
                if flow == Flow::Stop {
                    break;
                }
            }
            self.ignores.leave(lists);
        }
        self.names.leave(listed);
        Ok(flow)
    }

    /// Processes the entry at `path`, whose own name starts at `start`.
    fn entry(&mut self, above: BorrowedFd<'_>, start: usize, kind: ItemKind, within: Within) -> Result<Flow, C::Error> {
        if self.protected.contains(&self.path.as_str()) {
            return Ok(Flow::On);
        }
        let most = self.limits.max_files;
        if self.found.entries.len() >= most || self.found.directories.len() >= most || self.found.unseen.len() >= most {
            return Ok(self.stop(kind));
        }
        let ignorable = if kind == ItemKind::Directory { Ignorable::Directory } else { Ignorable::Other };
        let is_ignored = within == Within::Named || self.ignores.is_ignored(&self.path, ignorable);
        match kind {
            ItemKind::Directory => {
                if is_ignored {
                    self.path.push('/');
                    let known = self.cursor.knows_below(&self.path);
                    self.path.pop();
                    if !known && !self.named.reaches(&self.path) {
                        self.leave_out(kind);
                        return Ok(Flow::On);
                    }
                }
                self.below(above, start, if is_ignored { Within::Named } else { Within::All })
            }
            ItemKind::Other => {
                let known = self.cursor.find(&self.path);
                let name = self.path.get(start..).unwrap_or_default();
                let is_seen = !is_ignored || (within == Within::All && is_precious(name));
                let is_named = !is_seen && self.named.has_file(&self.path);
                self.source = if is_named { Source::Command } else { Source::Tree };
                self.coverage = if is_seen {
                    Coverage::Tracked
                } else if is_named
                    || known.is_some_and(|known| known.coverage == Coverage::Tracked)
                    // A file in the place of a directory prevents its restoration, so it is captured.
                    || self.cursor.knew_directory(&self.path)
                {
                    Coverage::LastTime
                } else {
                    self.leave_out(kind);
                    return Ok(Flow::On);
                };
                self.file(above, start, known)?;
                Ok(Flow::On)
            }
        }
    }

    fn below(&mut self, above: BorrowedFd<'_>, start: usize, within: Within) -> Result<Flow, C::Error> {
        if self.depth == MAX_DEPTH {
            self.leave_out_because(Reason::TooDeep, ItemKind::Directory);
            return Ok(Flow::On);
        }
        let opened = open_directory(above, self.path.get(start..).unwrap_or_default());
        let listed = opened.and_then(|handle| {
            let listed = self.names.list(handle.as_fd(), self.limits.max_files)?;
            Ok((handle, listed))
        });
        let (handle, listed) = match listed {
            Ok(opened) => opened,
            // Removed meanwhile.
            Err(Errno::NOENT) => return Ok(Flow::On),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                // Replaced meanwhile.
                self.leave_out(ItemKind::Other);
                self.leave_out_because(Reason::KeptChanging, ItemKind::Directory);
                return Ok(Flow::On);
            }
            Err(errno) => {
                self.leave_out_because(Reason::Unreadable { reason: errno.to_string() }, ItemKind::Directory);
                return Ok(Flow::On);
            }
        };
        let path = self.found.write(&self.path);
        self.found.directories.push(path);
        self.depth += 1;
        let flow = self.directory(handle.as_fd(), &listed, within)?;
        self.depth -= 1;
        Ok(flow)
    }

    fn file(&mut self, above: BorrowedFd<'_>, start: usize, known: Option<&'s IndexEntry>) -> Result<(), C::Error> {
        let name = self.path.get(start..).unwrap_or_default();
        let signature = match rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Signature::of(&stat),
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => {
                self.leave_out_because(Reason::Unreadable { reason: errno.to_string() }, ItemKind::Other);
                return Ok(());
            }
        };
        let same = known.filter(|known| known.signature == signature);
        if let Some(known) = same.filter(|known| known.trust == StatTrust::Sure) {
            match known.stored {
                Stored::Content(hash) if self.trust == Trust::Kept || self.contents.has(hash)? => {
                    self.add(signature, Stored::Content(hash));
                    return Ok(());
                }
                Stored::Link(target) => {
                    let target = self.found.write(self.cursor.known.text(target));
                    self.add(signature, Stored::Link(target));
                    return Ok(());
                }
                // The reason may no longer apply, so the file is read again.
                Stored::Content(_) | Stored::Missing | Stored::Special => {}
            }
        }
        match signature.file_type() {
            FileType::RegularFile => self.regular(above, start, signature, known),
            FileType::Symlink => {
                let name = self.path.get(start..).unwrap_or_default();
                match rustix::fs::readlinkat(above, name, Vec::new()).map(CString::into_string) {
                    Ok(Ok(target)) => {
                        let target = self.found.write(&target);
                        self.add(signature, Stored::Link(target));
                    }
                    Ok(Err(_)) => self.add_uncaptured(signature, Reason::Target),
                    Err(Errno::NOENT) => {}
                    Err(Errno::INVAL) => self.add_uncaptured(signature, Reason::KeptChanging),
                    Err(errno) => self.add_uncaptured(signature, Reason::Unreadable { reason: errno.to_string() }),
                }
                Ok(())
            }
            // Listed as a file, but a directory by now. Its entries have another place in the order of paths, so the
            // next scan finds them.
            FileType::Directory => {
                self.leave_out(ItemKind::Other);
                self.leave_out_because(Reason::KeptChanging, ItemKind::Directory);
                Ok(())
            }
            special => {
                self.say(Reason::special(special));
                self.add(signature, Stored::Special);
                Ok(())
            }
        }
    }

    fn regular(
        &mut self,
        above: BorrowedFd<'_>,
        start: usize,
        signature: Signature,
        known: Option<&IndexEntry>,
    ) -> Result<(), C::Error> {
        let ScanLimits { max_file_bytes: limit, max_new_bytes, .. } = self.limits;
        if signature.size > limit {
            self.add_uncaptured(signature, Reason::TooLarge { size: signature.size, limit });
            return Ok(());
        }
        // A file that may be unchanged is read even without room for new contents, because a known content needs none.
        let may_be_same = known.is_some_and(|known| known.signature == signature && known.trust == StatTrust::Racy);
        if signature.size > self.room() && !may_be_same {
            self.add_uncaptured(signature, Reason::TooMuch { limit: max_new_bytes });
            return Ok(());
        }
        self.batch.make_room(signature.size, self.contents)?;
        self.cost.read += 1;
        let name = self.path.get(start..).unwrap_or_default();
        match self.batch.read(above, name, limit) {
            Ok(ReadContent { hash, signature }) => {
                let is_known = known.is_some_and(|known| matches!(known.stored, Stored::Content(old) if old == hash));
                let is_kept =
                    (is_known && self.trust == Trust::Kept) || self.batch.has(hash) || self.contents.has(hash)?;
                if !is_kept && signature.size > self.room() {
                    self.add_uncaptured(signature, Reason::TooMuch { limit: max_new_bytes });
                    return Ok(());
                }
                if !is_kept {
                    self.cost.kept += 1;
                    self.cost.kept_bytes += signature.size;
                    if self.source == Source::Command {
                        self.room_for_named = self.room_for_named.saturating_sub(signature.size);
                    }
                    self.batch.keep(hash);
                }
                self.add(signature, Stored::Content(hash));
            }
            Err(NotRead::Other) => self.changed_since(above, start, signature),
            Err(NotRead::TooLarge(size)) => self.add_uncaptured(signature, Reason::TooLarge { size, limit }),
            Err(NotRead::KeptChanging(signature)) => self.add_uncaptured(signature, Reason::KeptChanging),
            Err(NotRead::System(errno)) => {
                self.add_uncaptured(signature, Reason::Unreadable { reason: errno.to_string() });
            }
        }
        Ok(())
    }

    /// Handles a file that was removed or replaced before it was read.
    fn changed_since(&mut self, above: BorrowedFd<'_>, start: usize, signature: Signature) {
        let name = self.path.get(start..).unwrap_or_default();
        let now = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(now, Err(Errno::NOENT)) {
            self.add_uncaptured(signature, Reason::KeptChanging);
        }
    }

    /// Returns the remaining bytes for new contents of the present file.
    fn room(&self) -> u64 {
        let room = self.limits.max_new_bytes.saturating_sub(self.cost.kept_bytes);
        if self.source == Source::Command { room.min(self.room_for_named) } else { room }
    }

    fn add(&mut self, signature: Signature, stored: Stored) {
        let path = self.found.write(&self.path);
        let trust = if signature.is_racy(self.began) { StatTrust::Racy } else { StatTrust::Sure };
        self.found.entries.push(IndexEntry { path, signature, trust, coverage: self.coverage, stored });
    }

    fn add_uncaptured(&mut self, signature: Signature, reason: Reason) {
        self.say(reason);
        self.add(signature, Stored::Missing);
    }

    fn say(&mut self, reason: Reason) {
        self.not_captured.push(NotCaptured { path: self.path.clone(), reason });
    }

    fn leave_out(&mut self, kind: ItemKind) {
        let mut path = self.found.write(&self.path);
        if kind == ItemKind::Directory {
            path.end = self.found.write("/").end;
        }
        self.found.unseen.push(path);
    }

    fn leave_out_because(&mut self, reason: Reason, kind: ItemKind) {
        self.say(reason);
        self.leave_out(kind);
    }

    fn stop(&mut self, kind: ItemKind) -> Flow {
        let (shown, key) = match kind {
            // Sorts before all paths.
            ItemKind::Directory if self.path.is_empty() => (".".to_owned(), "\0".to_owned()),
            ItemKind::Directory => (self.path.clone(), format!("{}/", self.path)),
            ItemKind::Other => (self.path.clone(), self.path.clone()),
        };
        self.not_captured.push(NotCaptured { path: shown, reason: Reason::TooMany { limit: self.limits.max_files } });
        self.found.stopped = Some(self.found.write(&key));
        Flow::Stop
    }

    /// Reads the ignore patterns of a directory. Those of `.git/info/exclude` have lower precedence than its
    /// `.gitignore`.
    fn enter_ignores(&mut self, directory: BorrowedFd<'_>, listed: &Listed) {
        if self.names.holds(listed, GIT, ItemKind::Directory)
            && let Ok(Some(folder)) = open_directories(directory, &[GIT, "info"])
        {
            self.enter_ignore_file(folder.as_fd(), "exclude");
        }
        if self.names.holds(listed, IGNORE_FILE, ItemKind::Other) {
            self.enter_ignore_file(directory, IGNORE_FILE);
        }
    }

    /// An ignore file that cannot be read ignores nothing.
    fn enter_ignore_file(&mut self, directory: BorrowedFd<'_>, name: &str) {
        let Ok(handle) = rustix::fs::openat(directory, name, SAFE, Mode::empty()) else { return };
        let is_file = |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !rustix::fs::fstat(&handle).is_ok_and(|stat| is_file(&stat)) {
            return;
        }
        let mut bytes = Vec::new();
        let limit = IGNORE_FILE_LIMIT.0;
        let read = std::fs::File::from(handle).take(limit + 1).read_to_end(&mut bytes);
        if read.is_ok() && bytes.len() as u64 <= limit {
            self.ignores.enter(&self.path, &bytes);
        }
    }
}
