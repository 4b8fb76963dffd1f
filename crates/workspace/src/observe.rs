//! Observation of paths for a preview: their contents, and facts that a reviewer should know.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sayso_review::{FileMode, FileState, Note, Observation, ObservedFile, Obstacle, WsPath};

use crate::apply::attribute_names;
use crate::confine::{OpenError, Opened, Workspace};
use crate::read::{ReadError, ReadLimit};

impl Workspace {
    /// Reads paths for a preview. Unreadable paths are part of the result.
    pub fn observe(&self, paths: impl IntoIterator<Item = WsPath>, limit: ReadLimit) -> Observation {
        let mut observer = Observer { workspace: self, limit, parents: BTreeMap::new(), files: BTreeMap::new() };
        let mut observation = Observation { files: BTreeMap::new(), umask: *self.umask.get_or_init(umask) };
        for path in paths {
            let observed = observer.observe(&path);
            observation.files.insert(path, observed);
        }
        observation
    }
}

/// Returns the umask of this process, which sayso never changes. There is no call to read it without setting it, so it
/// is parsed from `/proc/self/status`.
fn umask() -> u32 {
    let status = rustix::fs::open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    // It is on the second line, so one page is enough.
    let mut page = [0; 4_096];
    let length = status.ok().and_then(|handle| rustix::io::read(&handle, &mut page).ok()).unwrap_or(0);
    let text = String::from_utf8_lossy(&page[..length]);
    let line = text.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// Maximum number of cached parent directories. Paths are sorted, so few are needed again.
const MAX_OPEN_PARENTS: usize = 32;

/// Open parent directory of observed files.
struct Parent {
    /// Path after all symbolic links.
    location: WsPath,
    handle: OwnedFd,
    writable: Result<(), Errno>,
    /// Names by their lower-case form; read when first needed.
    names: Option<BTreeMap<String, Vec<String>>>,
}

struct Observer<'w> {
    workspace: &'w Workspace,
    limit: ReadLimit,
    parents: BTreeMap<WsPath, Result<Parent, Obstacle>>,
    /// Paths by device and inode, to detect two spellings of one name.
    files: BTreeMap<(u64, u64), WsPath>,
}

impl Observer<'_> {
    fn observe(&mut self, path: &WsPath) -> ObservedFile {
        let blocked = |found| ObservedFile { location: path.clone(), found: Err(found), link: None, facts: Vec::new() };
        let (Some(above), Some(name)) = (path.parent(), path.names().next_back()) else {
            return blocked(Obstacle::Directory);
        };
        if self.parents.len() > MAX_OPEN_PARENTS {
            self.parents.clear();
        }
        let parent = match self.parent(&above) {
            Ok(Some(location)) => location,
            // Without the directory there is no file; a plan would create both.
            Ok(None) => return self.without_directory(path, &above),
            Err(obstacle) => return blocked(obstacle),
        };
        let Some(own) = parent.join(name) else { return blocked(Obstacle::Directory) };
        if self.workspace.is_protected(&own) {
            return blocked(Obstacle::Protected);
        }
        let link = self.link_target(&above, name);
        let mut observed = match self.workspace.open_path(path) {
            Ok(opened) => self.file(opened),
            Err(OpenError::NotFound(_)) if link.is_none() => {
                let facts = self.twin(&above, name);
                ObservedFile { location: own.clone(), found: Ok(FileState::Absent), link: None, facts }
            }
            Err(OpenError::NotFound(_)) => {
                blocked(Obstacle::Unreadable { reason: "it is a dangling symbolic link".to_owned() })
            }
            Err(error) => blocked(obstacle(&error)),
        };
        if let (Ok(_), Some(Ok(Parent { writable: Err(errno), .. }))) = (&observed.found, self.parents.get(&above)) {
            // A link may lead to another directory; applying detects that.
            observed.found =
                Err(Obstacle::ReadOnly { reason: format!("its directory cannot be written to ({errno})") });
        }
        if self.workspace.is_protected(&observed.location) {
            observed.found = Err(Obstacle::Protected);
        }
        if observed.location != *path && observed.found.is_ok() {
            observed.facts.push(Note::Symlink { leads_to: observed.location.to_string() });
        }
        observed.link = link;
        observed
    }

    /// Observes a file whose directory does not exist, from the nearest existing directory.
    fn without_directory(&mut self, path: &WsPath, above: &WsPath) -> ObservedFile {
        let blocked = |found| ObservedFile { location: path.clone(), found: Err(found), link: None, facts: Vec::new() };
        let mut below: Vec<&str> = path.names().next_back().into_iter().collect();
        let mut missing = above.clone();
        let mut location = loop {
            let (Some(parent), Some(name)) = (missing.parent(), missing.names().next_back()) else {
                return blocked(Obstacle::Unreadable { reason: "the workspace was removed".to_owned() });
            };
            match self.parent(&parent) {
                Err(obstacle) => return blocked(obstacle),
                Ok(Some(_)) if self.link_target(&parent, name).is_some() => {
                    return blocked(Obstacle::Unreadable {
                        reason: format!("`{missing}` is a dangling symbolic link"),
                    });
                }
                Ok(Some(location)) => {
                    if let Some(Ok(Parent { writable: Err(errno), .. })) = self.parents.get(&parent) {
                        let reason = format!("no directory can be made in `{location}` ({errno})");
                        return blocked(Obstacle::ReadOnly { reason });
                    }
                    break location.join(name);
                }
                Ok(None) => {}
            }
            // In `a/b/c/d`, if `c` was missing in the last round, `b` is next.
            below.extend(above.names().nth(parent.names().count()));
            missing = parent;
        };
        for name in below.iter().rev() {
            location = location.and_then(|location| location.join(name));
        }
        let Some(location) = location else { return blocked(Obstacle::Directory) };
        if self.workspace.is_protected(&location) {
            return blocked(Obstacle::Protected);
        }
        let facts = if location == *path { Vec::new() } else { vec![Note::Symlink { leads_to: location.to_string() }] };
        ObservedFile { location, found: Ok(FileState::Absent), link: None, facts }
    }

    /// Opens a directory, or returns the cached one; `None` if it does not exist.
    fn parent(&mut self, path: &WsPath) -> Result<Option<WsPath>, Obstacle> {
        if !self.parents.contains_key(path) {
            let parent = match self.workspace.open_path(path) {
                Ok(Opened { handle, resolved }) => {
                    let access = Access::WRITE_OK | Access::EXEC_OK;
                    let writable = rustix::fs::accessat(&handle, ".", access, AtFlags::EACCESS);
                    let stat = rustix::fs::fstat(&handle).map_err(|errno| unreadable(&errno))?;
                    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                        Ok(Parent { location: resolved, handle, writable, names: None })
                    } else {
                        Err(Obstacle::NotADirectory)
                    }
                }
                Err(OpenError::NotFound(_)) => return Ok(None),
                Err(error) => Err(obstacle(&error)),
            };
            self.parents.insert(path.clone(), parent);
        }
        match self.parents.get(path) {
            Some(Ok(parent)) => Ok(Some(parent.location.clone())),
            Some(Err(obstacle)) => Err(obstacle.clone()),
            None => Ok(None),
        }
    }

    fn link_target(&self, parent: &WsPath, name: &str) -> Option<String> {
        let Some(Ok(parent)) = self.parents.get(parent) else { return None };
        let target = rustix::fs::readlinkat(&parent.handle, name, Vec::new()).ok()?;
        // A target that is not UTF-8 cannot be recorded; opening the link reports it.
        target.into_string().ok()
    }

    /// Returns names in the directory that differ from a missing name only in case.
    fn twin(&mut self, parent: &WsPath, name: &str) -> Vec<Note> {
        let Some(Ok(parent)) = self.parents.get_mut(parent) else { return Vec::new() };
        let names = parent.names.get_or_insert_with(|| {
            let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for entry in Dir::read_from(&parent.handle).into_iter().flatten().flatten() {
                if let Ok(name) = entry.file_name().to_str() {
                    names.entry(name.to_lowercase()).or_default().push(name.to_owned());
                }
            }
            names
        });
        let twins = names.get(&name.to_lowercase()).into_iter().flatten().filter(|twin| *twin != name);
        twins.filter_map(|twin| parent.location.join(twin)).map(|other| Note::CaseTwin { other }).collect()
    }

    fn file(&mut self, opened: Opened) -> ObservedFile {
        let location = opened.resolved.clone();
        let observed = |found, facts| ObservedFile { location: location.clone(), found, link: None, facts };
        let stat = match rustix::fs::fstat(&opened.handle) {
            Ok(stat) => stat,
            Err(errno) => return observed(Err(unreadable(&errno)), Vec::new()),
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return observed(Err(Obstacle::Directory), Vec::new());
        }
        let identity = (u64::from(stat.st_dev as u32), stat.st_ino as u64);
        let first = self.files.entry(identity).or_insert_with(|| location.clone());
        if *first != location && stat.st_nlink == 1 {
            let reason = format!("it is the same file as `{first}`, in another spelling");
            return observed(Err(Obstacle::Unreadable { reason }), Vec::new());
        }
        let facts = facts(&opened, &stat);
        if let Err(errno) = self.may_write(&location) {
            return observed(
                Err(Obstacle::ReadOnly { reason: format!("its permissions are {} ({errno})", mode(&stat)) }),
                facts,
            );
        }
        match opened.read(self.limit) {
            Ok(bytes) => observed(Ok(FileState::file(bytes, mode(&stat))), facts),
            Err(ReadError::TooLarge { limit, .. }) => observed(Err(Obstacle::TooLarge { limit }), facts),
            Err(ReadError::Open(error)) => observed(Err(obstacle(&error)), facts),
            Err(ReadError::Directory(_)) => observed(Err(Obstacle::Directory), facts),
            Err(ReadError::Special(_)) => observed(Err(Obstacle::Special), facts),
            Err(ReadError::System { error, .. }) => observed(Err(unreadable(&error)), facts),
        }
    }

    /// Checks the file's write permission, which exchanging names would not require.
    fn may_write(&mut self, location: &WsPath) -> Result<(), Errno> {
        let (Some(above), Some(name)) = (location.parent(), location.names().next_back()) else { return Ok(()) };
        if self.parent(&above).is_err() {
            return Err(Errno::ACCESS);
        }
        let Some(Ok(parent)) = self.parents.get(&above) else { return Ok(()) };
        rustix::fs::accessat(&parent.handle, name, Access::WRITE_OK, AtFlags::EACCESS)
    }
}

/// Returns facts about a file that a rename does not preserve.
fn facts(opened: &Opened, stat: &Stat) -> Vec<Note> {
    let mut facts = Vec::new();
    if stat.st_nlink > 1 {
        #[allow(clippy::unnecessary_cast, reason = "how wide it is depends on the system")]
        facts.push(Note::HardLink { names: stat.st_nlink as u64 });
    }
    let user = rustix::process::geteuid();
    if stat.st_uid != user.as_raw() && !user.is_root() {
        facts.push(Note::Owner { old: format!("user {}", stat.st_uid), new: format!("user {}", user.as_raw()) });
    }
    let names: BTreeSet<String> = attribute_names(&opened.handle)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        // User attributes and access lists are copied; others may be lost.
        .filter(|name| !name.starts_with("user.") && !name.starts_with("system.posix_acl"))
        .collect();
    if !names.is_empty() && !user.is_root() {
        facts.push(Note::Attributes { names: names.into_iter().collect() });
    }
    facts
}

fn mode(stat: &Stat) -> FileMode {
    FileMode::new(stat.st_mode)
}

fn unreadable(error: &impl ToString) -> Obstacle {
    Obstacle::Unreadable { reason: error.to_string() }
}

fn obstacle(error: &OpenError) -> Obstacle {
    match error {
        OpenError::Outside { reason, .. } => Obstacle::Outside { reason: (*reason).to_owned() },
        OpenError::NotFound(_) => Obstacle::Unreadable { reason: "it was removed".to_owned() },
        OpenError::NotADirectory(_) => Obstacle::NotADirectory,
        OpenError::Special(_) => Obstacle::Special,
        OpenError::TooManyLinks(_) => {
            Obstacle::Outside { reason: "it goes through too many symbolic links".to_owned() }
        }
        OpenError::System { error, .. } => unreadable(error),
    }
}
