//! What a command's preview means for policy.

use crate::action::{CommandPreview, Effect, Place};

impl CommandPreview {
    /// The places that it appears to write, for [`Act::Run`](crate::Act::Run).
    pub fn writes(&self) -> Vec<Place> {
        let written = self.effects.iter().filter_map(|effect| match effect {
            Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => Some(path),
            _ => None,
        });
        written.cloned().map(scratch_is_asked_about).collect()
    }

    /// The places outside that it appears to reach, for [`Act::Run`](crate::Act::Run).
    pub fn reads(&self) -> Vec<Place> {
        let reached = self.effects.iter().filter_map(|effect| match effect {
            // No shell is confined, and looking elsewhere is common: it is asked about, not refused.
            Effect::LeavesWorkspace { path } => Some(path),
            _ => None,
        });
        let written = |path: &String| self.writes().iter().any(|place| name(place) == *path);
        reached.filter(|path| !written(path)).map(|path| Place::Unknown(path.clone())).collect()
    }
}

/// Scratch space is everybody's: a command that uses it is asked about, not refused.
fn scratch_is_asked_about(place: Place) -> Place {
    match place {
        Place::Outside(path) if ["/tmp/", "/var/tmp/"].iter().any(|scratch| path.starts_with(scratch)) => {
            Place::Unknown(path)
        }
        place => place,
    }
}

/// A place as a part names it.
pub(super) fn name(place: &Place) -> String {
    match place {
        Place::Inside(path) => path.to_string(),
        Place::Outside(text) | Place::Unknown(text) => text.clone(),
    }
}
