//! Directory trees as values, for comparisons.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// All entries below a directory, by path.
pub(crate) type Tree = BTreeMap<String, Entry>;

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { bytes: Vec<u8>, mode: u32 },
    Link { target: String },
    Directory,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { bytes, mode } => write!(f, "{mode:o} {}", bytes.escape_ascii()),
            Self::Link { target } => write!(f, "-> {target}"),
            Self::Directory => f.write_str("directory"),
        }
    }
}

/// Reads a directory tree; empty if it does not exist.
pub(crate) fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(root, "", &mut tree);
    tree
}

fn collect(directory: &Path, prefix: &str, tree: &mut Tree) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        let kind = entry.file_type().unwrap();
        let found = if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            Entry::Link { target: target.into_os_string().into_string().unwrap() }
        } else if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), tree);
            Entry::Directory
        } else {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            Entry::File { bytes: std::fs::read(entry.path()).unwrap(), mode }
        };
        tree.insert(path, found);
    }
}

/// Writes files and links into a directory.
pub(crate) fn write(root: &Path, tree: &Tree) {
    for (path, entry) in tree {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !matches!(entry, Entry::Directory) {
            let _ = std::fs::remove_file(&path);
        }
        match entry {
            Entry::File { bytes, mode } => {
                std::fs::write(&path, bytes).unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).unwrap();
            }
            Entry::Link { target } => symlink(target, &path).unwrap(),
            Entry::Directory => std::fs::create_dir_all(&path).unwrap(),
        }
    }
}

/// Reduces a tree to what git stores: no directories, and only the executable bit of permissions.
pub(crate) fn as_git_keeps_it(tree: &Tree) -> Tree {
    let kept = |entry: &Entry| match entry {
        Entry::File { bytes, mode } => {
            let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
            Some(Entry::File { bytes: bytes.clone(), mode })
        }
        Entry::Link { .. } => Some(entry.clone()),
        Entry::Directory => None,
    };
    tree.iter().filter_map(|(path, entry)| Some((path.clone(), kept(entry)?))).collect()
}
