//! What a command's preview means for policy.

use crate::action::{CommandPreview, Effect, Place};

impl CommandPreview {
    /// The places that it appears to write, for [`Act::Run`](crate::Act::Run).
    pub fn writes(&self) -> Vec<Place> {
        let written = self.effects.iter().filter_map(|effect| match effect {
            Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => Some(path),
            _ => None,
        });
        written.cloned().collect()
    }

    /// The places outside that it appears to reach, for [`Act::Run`](crate::Act::Run).
    pub fn reads(&self) -> Vec<Place> {
        let reached = self.effects.iter().filter_map(|effect| match effect {
            Effect::LeavesWorkspace { path } => Some(Place::Outside(path.clone())),
            _ => None,
        });
        let writes = self.writes();
        reached.filter(|place| !writes.contains(place)).collect()
    }
}

/// A place as a part names it.
pub(super) fn name(place: &Place) -> String {
    match place {
        Place::Inside(path) => path.to_string(),
        Place::Outside(text) | Place::Unknown(text) => text.clone(),
    }
}
