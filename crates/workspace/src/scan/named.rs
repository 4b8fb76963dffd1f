//! Ignored paths that a scan captures because a command names them.

use sayso_review::WsPath;

/// Paths that a command is about to change. A scan captures them even if git ignores them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedPaths {
    paths: Vec<(WsPath, NamedDepth)>,
}

/// Depth to which entries below a named path count as named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedDepth {
    /// Only direct children that are files.
    Children,
    Recursive,
}

impl NamedPaths {
    pub fn add(&mut self, path: WsPath, below: NamedDepth) {
        self.paths.push((path, below));
    }

    pub fn paths(&self) -> impl Iterator<Item = (&WsPath, NamedDepth)> {
        self.paths.iter().map(|(path, below)| (path, *below))
    }

    /// `true` if a file or link is named.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.paths.iter().any(|(named, below)| match rest(named, path) {
            Some("") => true,
            Some(rest) => *below == NamedDepth::Recursive || !rest.contains('/'),
            None => false,
        })
    }

    /// `true` if a directory may have named entries.
    pub(super) fn reaches(&self, directory: &str) -> bool {
        self.paths.iter().any(|(named, below)| match rest(named, directory) {
            Some("") => true,
            Some(_) => *below == NamedDepth::Recursive,
            None => named.as_str().strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')),
        })
    }
}

/// Returns the part of a path below a named one; empty for the named path itself.
fn rest<'p>(named: &WsPath, path: &'p str) -> Option<&'p str> {
    if named.is_root() {
        return Some(path);
    }
    let rest = path.strip_prefix(named.as_str())?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}
