//! The walk itself: down by handles, in the order of paths, beside what is known.

use std::ffi::CString;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::batch::{Batch, NotRead, ReadContent, SAFE};
use super::directory::{Ended, ItemKind, Listed, Names, open_directories, open_directory};
use super::known::{Belief, Cursor, Entry, Held, Known, Standing};
use super::named::Named;
use super::not_captured::{NotCaptured, Reason};
use super::personal::is_personal;
use super::signature::{Moment, Signature};
use super::{Contents, Scan, ScanCost, ScanError, ScanLimits, Trust};
use crate::ignores::{DEEPEST, GIT, IGNORE_FILE, IGNORE_FILE_LIMIT, Ignorable, Ignores};

/// Whether the walk goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

/// What is looked at in a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// All that is not ignored.
    All,
    /// It is ignored itself: only what is named, and what was captured before it was ignored, one last time.
    Known,
}

/// Why a file is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// It belongs to the tree.
    Tree,
    /// It is ignored, and a command names it.
    Command,
}

pub(super) struct Scanner<'s, C> {
    cursor: Cursor<'s>,
    trust: Trust,
    limits: ScanLimits,
    began: Moment,
    protected: Vec<&'s str>,
    contents: &'s mut C,
    /// Where the walk is.
    path: String,
    depth: usize,
    /// Of the file that is looked at.
    standing: Standing,
    /// Why the file is looked at.
    source: Source,
    /// What is captured although it is ignored.
    named: Named,
    /// How many new bytes of ignored files may still be kept.
    room_for_named: u64,
    ignores: Ignores,
    names: Names,
    batch: Batch,
    found: Known,
    not_captured: Vec<NotCaptured>,
    cost: ScanCost,
}

impl<'s, C: Contents> Scanner<'s, C> {
    pub(super) fn new(
        known: &'s Known,
        trust: Trust,
        limits: ScanLimits,
        began: Moment,
        protected: Vec<&'s str>,
        contents: &'s mut C,
    ) -> Self {
        let mut found = Known::default();
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
            standing: Standing::Seen,
            source: Source::Tree,
            named: Named::default(),
            room_for_named: limits.most_ignored_bytes,
            ignores: Ignores::default(),
            names: Names::new(),
            batch: Batch::default(),
            found,
            not_captured: Vec::new(),
            cost: ScanCost::default(),
        }
    }

    /// The same, and captures what is named even if it is ignored.
    pub(super) fn naming(mut self, named: &Named) -> Self {
        self.named = named.clone();
        self
    }

    pub(super) fn scan(mut self, root: &OwnedFd) -> Result<Scan, ScanError<C::Error>> {
        let listed = self.names.list(root.as_fd(), self.limits.most_files).map_err(ScanError::List)?;
        self.directory(root.as_fd(), &listed, Within::All).map_err(ScanError::Contents)?;
        self.batch.hand_over(self.contents).map_err(ScanError::Contents)?;
        self.found.sort();
        self.cost.found = self.found.entries.len();
        Ok(Scan { known: self.found, not_captured: self.not_captured, cost: self.cost })
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
                // A directory that changes while it is listed may name an entry twice.
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

    /// Looks at the entry that `path` names, whose own name starts at `start`.
    fn entry(&mut self, above: BorrowedFd<'_>, start: usize, kind: ItemKind, within: Within) -> Result<Flow, C::Error> {
        if self.protected.contains(&self.path.as_str()) {
            return Ok(Flow::On);
        }
        let most = self.limits.most_files;
        if self.found.entries.len() >= most || self.found.directories.len() >= most || self.found.unseen.len() >= most {
            return Ok(self.stop(kind));
        }
        let ignorable = if kind == ItemKind::Directory { Ignorable::Directory } else { Ignorable::Other };
        let is_ignored = within == Within::Known || self.ignores.is_ignored(&self.path, ignorable);
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
                self.below(above, start, if is_ignored { Within::Known } else { Within::All })
            }
            ItemKind::Other => {
                let known = self.cursor.find(&self.path);
                let name = self.path.get(start..).unwrap_or_default();
                let is_seen = !is_ignored || (within == Within::All && is_personal(name));
                let is_named = !is_seen && self.named.has_file(&self.path);
                self.source = if is_named { Source::Command } else { Source::Tree };
                self.standing = if is_seen {
                    Standing::Seen
                } else if is_named
                    || known.is_some_and(|known| known.standing == Standing::Seen)
                    // What took the place of a directory is in the way of putting that back.
                    || self.cursor.knew_directory(&self.path)
                {
                    Standing::Leaving
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
        if self.depth == DEEPEST {
            self.leave_out_because(Reason::TooDeep, ItemKind::Directory);
            return Ok(Flow::On);
        }
        let opened = open_directory(above, self.path.get(start..).unwrap_or_default());
        let listed = opened.and_then(|handle| {
            let listed = self.names.list(handle.as_fd(), self.limits.most_files)?;
            Ok((handle, listed))
        });
        let (handle, listed) = match listed {
            Ok(opened) => opened,
            // It went away.
            Err(Errno::NOENT) => return Ok(Flow::On),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                // Now this, now that.
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

    fn file(&mut self, above: BorrowedFd<'_>, start: usize, known: Option<&'s Entry>) -> Result<(), C::Error> {
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
        if let Some(known) = same.filter(|known| known.belief == Belief::Sure) {
            match known.held {
                Held::Content(hash) if self.trust == Trust::Kept || self.contents.has(hash)? => {
                    self.add(signature, Held::Content(hash));
                    return Ok(());
                }
                Held::Link(target) => {
                    let target = self.found.write(self.cursor.known.text(target));
                    self.add(signature, Held::Link(target));
                    return Ok(());
                }
                // Whatever the reason was, it is looked for again.
                Held::Content(_) | Held::Unkept | Held::Special => {}
            }
        }
        match signature.file_type() {
            FileType::RegularFile => self.regular(above, start, signature, known),
            FileType::Symlink => {
                let name = self.path.get(start..).unwrap_or_default();
                match rustix::fs::readlinkat(above, name, Vec::new()).map(CString::into_string) {
                    Ok(Ok(target)) => {
                        let target = self.found.write(&target);
                        self.add(signature, Held::Link(target));
                    }
                    Ok(Err(_)) => self.add_uncaptured(signature, Reason::Target),
                    Err(Errno::NOENT) => {}
                    Err(Errno::INVAL) => self.add_uncaptured(signature, Reason::KeptChanging),
                    Err(errno) => self.add_uncaptured(signature, Reason::Unreadable { reason: errno.to_string() }),
                }
                Ok(())
            }
            // Listed as something else: what is in it comes elsewhere in the order of paths, and waits for the next scan.
            FileType::Directory => {
                self.leave_out(ItemKind::Other);
                self.leave_out_because(Reason::KeptChanging, ItemKind::Directory);
                Ok(())
            }
            special => {
                self.say(Reason::special(special));
                self.add(signature, Held::Special);
                Ok(())
            }
        }
    }

    fn regular(
        &mut self,
        above: BorrowedFd<'_>,
        start: usize,
        signature: Signature,
        known: Option<&Entry>,
    ) -> Result<(), C::Error> {
        let ScanLimits { largest_file: limit, most_bytes, .. } = self.limits;
        if signature.size > limit {
            self.add_uncaptured(signature, Reason::TooLarge { size: signature.size, limit });
            return Ok(());
        }
        // What may be the same as before is read even if nothing new fits: the same needs no room.
        let may_be_same = known.is_some_and(|known| known.signature == signature && known.belief == Belief::Racy);
        if signature.size > self.room() && !may_be_same {
            self.add_uncaptured(signature, Reason::TooMuch { limit: most_bytes });
            return Ok(());
        }
        self.batch.make_room(signature.size, self.contents)?;
        self.cost.read += 1;
        let name = self.path.get(start..).unwrap_or_default();
        match self.batch.read(above, name, limit) {
            Ok(ReadContent { hash, signature }) => {
                let is_known = known.is_some_and(|known| matches!(known.held, Held::Content(old) if old == hash));
                let is_kept =
                    (is_known && self.trust == Trust::Kept) || self.batch.has(hash) || self.contents.has(hash)?;
                if !is_kept && signature.size > self.room() {
                    self.add_uncaptured(signature, Reason::TooMuch { limit: most_bytes });
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
                self.add(signature, Held::Content(hash));
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

    /// A file that is none any more: gone, or in the place of which there is something else.
    fn changed_since(&mut self, above: BorrowedFd<'_>, start: usize, signature: Signature) {
        let name = self.path.get(start..).unwrap_or_default();
        let now = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(now, Err(Errno::NOENT)) {
            self.add_uncaptured(signature, Reason::KeptChanging);
        }
    }

    /// How many new bytes may still be kept for the file that is looked at.
    fn room(&self) -> u64 {
        let room = self.limits.most_bytes.saturating_sub(self.cost.kept_bytes);
        if self.source == Source::Command { room.min(self.room_for_named) } else { room }
    }

    fn add(&mut self, signature: Signature, held: Held) {
        let path = self.found.write(&self.path);
        let belief = if signature.is_racy(self.began) { Belief::Racy } else { Belief::Sure };
        self.found.entries.push(Entry { path, signature, belief, standing: self.standing, held });
    }

    fn add_uncaptured(&mut self, signature: Signature, reason: Reason) {
        self.say(reason);
        self.add(signature, Held::Unkept);
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

    /// Ends the walk before `path`.
    fn stop(&mut self, kind: ItemKind) -> Flow {
        let (shown, key) = match kind {
            // No path is smaller than this.
            ItemKind::Directory if self.path.is_empty() => (".".to_owned(), "\0".to_owned()),
            ItemKind::Directory => (self.path.clone(), format!("{}/", self.path)),
            ItemKind::Other => (self.path.clone(), self.path.clone()),
        };
        self.not_captured.push(NotCaptured { path: shown, reason: Reason::TooMany { limit: self.limits.most_files } });
        self.found.stopped = Some(self.found.write(&key));
        Flow::Stop
    }

    /// Reads the patterns that hold from this directory on. Those of the repository itself give way to those of the directory.
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

    /// One that is no regular file, or cannot be read, ignores nothing.
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
