//! What a command names: captured even if git ignores it, and told before it runs where that is not possible.

use sayso_review::{CommandPreview, Effect, Place, Subject, WsPath};
use sayso_workspace::{Below, Named};

use crate::engine::Engine;

/// So many entries below a named directory are counted before a command runs, and no more.
const MOST_COUNTED: usize = 20_000;

impl Engine {
    /// The paths that a command names as those it changes.
    pub(crate) fn named_by(&self, subject: &Subject) -> Named {
        match subject {
            Subject::Command { preview, .. } => self.changed_by(preview),
            Subject::Files | Subject::Tool { .. } => Named::default(),
        }
    }

    fn changed_by(&self, preview: &CommandPreview) -> Named {
        let mut named = Named::default();
        for (place, below) in preview.effects.iter().filter_map(changed) {
            match place {
                Place::Inside(path) => named.add(path.clone(), below),
                Place::Unknown(text) => {
                    if let Some((directory, below)) = self.pattern(preview, text, below) {
                        named.add(directory, below);
                    }
                }
                Place::Outside(_) => {}
            }
        }
        named
    }

    /// The directory in which a pattern such as `build/*.o` matches, and how far down.
    fn pattern(&self, preview: &CommandPreview, text: &str, below: Below) -> Option<(WsPath, Below)> {
        let first = text.find(['*', '?', '[', '{'])?;
        if text.contains(['$', '`', '~', ' ']) {
            return None;
        }
        let directory = text[..first].rfind('/').map_or("", |slash| &text[..slash.max(1)]);
        let below = if text[first..].contains('/') { Below::Everything } else { below };
        let directory = match directory {
            "" => preview.directory.clone(),
            absolute if absolute.starts_with('/') => self.workspace.locate(absolute).ok()?,
            relative if preview.directory.is_root() => self.workspace.locate(relative).ok()?,
            relative => self.workspace.locate(&format!("{}/{relative}", preview.directory)).ok()?,
        };
        Some((directory, below))
    }

    /// Adds to a preview what the command appears to change and an undo could not bring back.
    pub(crate) fn warn_of_uncaptured(&self, preview: &mut CommandPreview) {
        let mut warnings = Vec::new();
        for (place, below) in preview.effects.iter().filter_map(changed) {
            let (path, reason) = match place {
                Place::Inside(path) => match self.too_much(path, below) {
                    Some(reason) => (path.to_string(), reason),
                    None => continue,
                },
                Place::Unknown(text) if self.pattern(preview, text, below).is_none() => {
                    let reason = "which files these are is not known yet, and those that git ignores are not captured";
                    (text.clone(), reason.to_owned())
                }
                Place::Unknown(_) | Place::Outside(_) => continue,
            };
            let warning = Effect::NotCaptured { path, reason };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        preview.effects.extend(warnings);
        preview.effects.sort_by_key(|effect| std::cmp::Reverse(effect.severity()));
    }

    /// Why what is at a path is more than is kept.
    fn too_much(&self, path: &WsPath, below: Below) -> Option<String> {
        let largest = self.limits.largest_file;
        let size = match below {
            Below::Files => self.workspace.signature(path)?.size(),
            Below::Everything => self.workspace.bytes_below(path, MOST_COUNTED)?,
        };
        let (limit, what) = match below {
            Below::Files => (largest, "a file of"),
            Below::Everything => (self.limits.for_ignored(), "holds"),
        };
        (size > limit).then(|| {
            let (size, limit) = (megabytes(size), megabytes(limit));
            format!("{what} {size} MB, of which at most {limit} MB are kept")
        })
    }
}

/// What an effect changes in the tree.
fn changed(effect: &Effect) -> Option<(&Place, Below)> {
    match effect {
        Effect::Writes { path } | Effect::ChangesPermissions { path } | Effect::Deletes { path, recursive: false } => {
            Some((path, Below::Files))
        }
        Effect::Deletes { path, recursive: true } => Some((path, Below::Everything)),
        _ => None,
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}
