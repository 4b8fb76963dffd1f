//! Paths of a command preview, as input for the policy.

use sayso_policy::{Effect, PathTarget};

use super::command::CommandPreview;

impl CommandPreview {
    /// Returns the paths that the command appears to write.
    pub fn writes(&self) -> Vec<PathTarget> {
        let written = self.effects.iter().filter_map(|effect| match effect {
            Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => Some(path),
            _ => None,
        });
        written.cloned().map(literal_or_unknown).collect()
    }

    /// Returns the outside paths that the command appears to reach without writing them.
    pub fn reads(&self) -> Vec<PathTarget> {
        let reached = self.effects.iter().filter_map(|effect| match effect {
            Effect::LeavesWorkspace { path } => Some(path),
            _ => None,
        });
        let written = |path: &String| self.writes().iter().any(|place| place.text() == *path);
        reached
            .filter(|path| !written(path))
            .map(|path| literal_or_unknown(PathTarget::Outside(path.clone())))
            .collect()
    }
}

/// Converts a path with a pattern or `~` to [`PathTarget::Unknown`], because the shell expands it at run time.
fn literal_or_unknown(place: PathTarget) -> PathTarget {
    match place {
        PathTarget::Outside(path) if !path.starts_with('/') || path.contains(['*', '?', '[', '{']) => {
            PathTarget::Unknown(path)
        }
        place => place,
    }
}
