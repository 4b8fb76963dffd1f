//! The ignored paths that a scan looks at all the same, since a command names them.

use sayso_review::WsPath;

/// Paths that a command is about to change. A scan captures them even if git ignores them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    paths: Vec<(WsPath, Below)>,
}

/// How much below a named path counts as named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// The files that lie in it directly.
    Files,
    /// Everything.
    Everything,
}

impl Named {
    /// Adds a path with what is below it.
    pub fn add(&mut self, path: WsPath, below: Below) {
        self.paths.push((path, below));
    }

    /// The named paths.
    pub fn paths(&self) -> impl Iterator<Item = (&WsPath, Below)> {
        self.paths.iter().map(|(path, below)| (path, *below))
    }

    /// Whether a file or link is named.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.paths.iter().any(|(named, below)| match rest(named, path) {
            Some("") => true,
            Some(rest) => *below == Below::Everything || !rest.contains('/'),
            None => false,
        })
    }

    /// Whether a directory may hold something that is named.
    pub(super) fn reaches(&self, directory: &str) -> bool {
        self.paths.iter().any(|(named, below)| match rest(named, directory) {
            Some("") => true,
            Some(_) => *below == Below::Everything,
            None => named.as_str().strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')),
        })
    }
}

/// What of a path lies below a named one; empty for that itself.
fn rest<'p>(named: &WsPath, path: &'p str) -> Option<&'p str> {
    if named.is_root() {
        return Some(path);
    }
    let rest = path.strip_prefix(named.as_str())?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}
