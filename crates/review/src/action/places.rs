//! What a command's preview means for policy.

use sayso_policy::{Effect, Place};

use super::command::CommandPreview;

impl CommandPreview {
    /// The places that it appears to write, for [`Act::Run`](crate::Act::Run).
    pub fn writes(&self) -> Vec<Place> {
        let written = self.effects.iter().filter_map(|effect| match effect {
            Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => Some(path),
            _ => None,
        });
        written.cloned().map(literal_or_unknown).collect()
    }

    /// The places outside that it appears to reach, for [`Act::Run`](crate::Act::Run).
    pub fn reads(&self) -> Vec<Place> {
        let reached = self.effects.iter().filter_map(|effect| match effect {
            Effect::LeavesWorkspace { path } => Some(path),
            _ => None,
        });
        let written = |path: &String| self.writes().iter().any(|place| place.name() == *path);
        reached.filter(|path| !written(path)).map(|path| literal_or_unknown(Place::Outside(path.clone()))).collect()
    }
}

/// A place outside by which a shell means exactly that path. What a pattern or `~` stands for is not known before it runs.
fn literal_or_unknown(place: Place) -> Place {
    match place {
        Place::Outside(path) if !path.starts_with('/') || path.contains(['*', '?', '[', '{']) => Place::Unknown(path),
        place => place,
    }
}
