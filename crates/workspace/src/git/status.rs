//! Parser for `git status --porcelain=v2 -z`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::error::GitError;

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uncommitted {
    /// Path from the repository's root.
    pub path: PathBuf,
    pub kind: UncommittedKind,
    /// Git's full record without the committed content. Two equal records mean the same work, staged in the same way.
    pub(super) record: Vec<u8>,
}

/// Kind of a file's difference from the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UncommittedKind {
    /// All changes are staged.
    Staged,
    /// No change is staged.
    Unstaged,
    /// Some changes are staged.
    PartlyStaged,
    Untracked,
    /// A merge left conflicts.
    Conflicted,
}

/// Numbers of uncommitted files by kind. A partly staged file counts as staged and as unstaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub staged: usize,
    pub unstaged: usize,
    /// An untracked directory counts as one.
    pub untracked: usize,
    pub conflicted: usize,
}

impl Counts {
    pub fn of(files: &[Uncommitted]) -> Self {
        let mut counts = Self::default();
        for file in files {
            match file.kind {
                UncommittedKind::Staged => counts.staged += 1,
                UncommittedKind::Unstaged => counts.unstaged += 1,
                UncommittedKind::PartlyStaged => {
                    counts.staged += 1;
                    counts.unstaged += 1;
                }
                UncommittedKind::Untracked => counts.untracked += 1,
                UncommittedKind::Conflicted => counts.conflicted += 1,
            }
        }
        counts
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// `None` before the first commit.
    pub(super) commit: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) files: Vec<Uncommitted>,
}

pub(super) fn parse(output: &[u8]) -> Result<Status, GitError> {
    let mut status = Status::default();
    for field in output.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        let unknown = || GitError::NotUnderstood { command: "git status", said: text(field) };
        match field {
            [b'#', b' ', header @ ..] => {
                let header = text(header);
                match header.split_once(' ') {
                    Some(("branch.oid", "(initial)")) => {}
                    Some(("branch.oid", commit)) => status.commit = Some(commit.to_owned()),
                    Some(("branch.upstream", upstream)) => status.upstream = Some(upstream.to_owned()),
                    // Headers of later git versions, and headers that are not needed.
                    _ => {}
                }
            }
            [b'?', b' ', path @ ..] => status.files.push(file(path, UncommittedKind::Untracked, field)),
            [b'1', b' ', staged, unstaged, b' ', ..] => {
                let kind = match (staged, unstaged) {
                    (b'.', _) => UncommittedKind::Unstaged,
                    (_, b'.') => UncommittedKind::Staged,
                    _ => UncommittedKind::PartlyStaged,
                };
                // `1 XY sub mH mI mW hH hI path`; the mode and the hash in HEAD change with the branch.
                let parts: Vec<&[u8]> = field.splitn(9, |byte| *byte == b' ').collect();
                let [_, marks, submodule, _, mode_staged, mode, _, staged, path] = parts[..] else {
                    return Err(unknown());
                };
                let record = [marks, submodule, mode_staged, mode, staged].join(&b' ');
                status.files.push(file(path, kind, &record));
            }
            [b'u', b' ', ..] => {
                // `u XY sub m1 m2 m3 mW h1 h2 h3 path`
                let path = field.splitn(11, |byte| *byte == b' ').nth(10).ok_or_else(unknown)?;
                status.files.push(file(path, UncommittedKind::Conflicted, field));
            }
            // The options exclude renames and ignored files.
            _ => return Err(unknown()),
        }
    }
    Ok(status)
}

fn file(path: &[u8], kind: UncommittedKind, record: &[u8]) -> Uncommitted {
    Uncommitted { path: PathBuf::from(OsStr::from_bytes(path)), kind, record: record.to_vec() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Counts, UncommittedKind, parse};

    #[test]
    fn status_with_odd_names_is_parsed() {
        let hash = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let output = format!(
            "# branch.oid {hash}\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +0 -0\0\
             1 M. N... 100644 100644 100644 {hash} {hash} a b\nc\0\
             1 .D N... 100644 100644 000000 {hash} {hash} gone\0\
             1 AM N... 000000 100644 100755 {hash} {hash} both\0\
             u UU N... 100644 100644 100644 100644 {hash} {hash} {hash} x y\0? new dir/\0"
        );
        let status = parse(output.as_bytes()).unwrap_or_default();
        assert_eq!((status.commit.as_deref(), status.upstream.as_deref()), (Some(hash), Some("origin/main")));
        let files: Vec<_> = status.files.iter().map(|file| (file.path.to_string_lossy(), file.kind)).collect();
        let expected = [
            ("a b\nc", UncommittedKind::Staged),
            ("gone", UncommittedKind::Unstaged),
            ("both", UncommittedKind::PartlyStaged),
            ("x y", UncommittedKind::Conflicted),
            ("new dir/", UncommittedKind::Untracked),
        ];
        assert_eq!(files, expected.map(|(path, kind)| (path.into(), kind)));
        let counts = Counts { staged: 2, unstaged: 2, untracked: 1, conflicted: 1 };
        assert_eq!(Counts::of(&status.files), counts);
    }

    #[test]
    fn unknown_status_lines_are_errors() {
        for output in ["9 what\0", "1 M.\0", "1 M. N... 100644\0", "u UU x\0"] {
            assert!(parse(output.as_bytes()).is_err(), "{output:?}");
        }
    }
}
