//! Paths that a command names as its targets. They are captured even if git ignores them, and the preview warns where
//! that is impossible.

use sayso_review::{CommandPreview, Effect, PathTarget, Subject, WsPath};
use sayso_workspace::{NamedDepth, NamedPaths};

use crate::engine::Engine;

/// Maximum number of entries that are counted below a named directory before a command runs.
const MAX_COUNTED_ENTRIES: usize = 20_000;

impl Engine {
    /// Returns the paths that a command names as its targets.
    pub(crate) fn paths_named_by(&self, subject: &Subject) -> NamedPaths {
        match subject {
            Subject::Command { preview, .. } => self.paths_changed_by(preview),
            Subject::Files | Subject::Tool { .. } => NamedPaths::default(),
        }
    }

    fn paths_changed_by(&self, preview: &CommandPreview) -> NamedPaths {
        let mut named = NamedPaths::default();
        for (place, below) in preview.effects.iter().filter_map(changed_target) {
            match place {
                PathTarget::Inside(path) => named.add(path.clone(), below),
                PathTarget::Unknown(text) => {
                    if let Some((directory, below)) = self.glob_directory(preview, text, below) {
                        named.add(directory, below);
                    }
                }
                PathTarget::Outside(_) => {}
            }
        }
        named
    }

    /// Returns the directory in which a pattern such as `build/*.o` matches, and how deep.
    fn glob_directory(&self, preview: &CommandPreview, text: &str, below: NamedDepth) -> Option<(WsPath, NamedDepth)> {
        let first = text.find(['*', '?', '[', '{'])?;
        if text.contains(['$', '`', '~', ' ']) {
            return None;
        }
        let directory = text[..first].rfind('/').map_or("", |slash| &text[..slash.max(1)]);
        let below = if text[first..].contains('/') { NamedDepth::Recursive } else { below };
        let directory = match directory {
            "" => preview.directory.clone(),
            absolute if absolute.starts_with('/') => self.workspace.locate(absolute).ok()?,
            relative if preview.directory.is_root() => self.workspace.locate(relative).ok()?,
            relative => self.workspace.locate(&format!("{}/{relative}", preview.directory)).ok()?,
        };
        Some((directory, below))
    }

    /// Adds warnings to a preview about changes that an undo could not restore.
    pub(crate) fn warn_of_uncaptured(&self, preview: &mut CommandPreview) {
        let mut warnings = Vec::new();
        for (place, below) in preview.effects.iter().filter_map(changed_target) {
            let (path, reason) = match place {
                PathTarget::Inside(path) => match self.over_limit_reason(path, below) {
                    Some(reason) => (path.to_string(), reason),
                    None => continue,
                },
                PathTarget::Unknown(text) if self.glob_directory(preview, text, below).is_none() => {
                    let reason = "which files these are is not known yet, and those that git ignores are not captured";
                    (text.clone(), reason.to_owned())
                }
                PathTarget::Unknown(_) | PathTarget::Outside(_) => continue,
            };
            let warning = Effect::NotCaptured { path, reason };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        preview.effects.extend(warnings);
        preview.effects.sort_by_key(|effect| std::cmp::Reverse(effect.severity()));
    }

    /// Returns the reason if the content of a path exceeds the capture limits.
    fn over_limit_reason(&self, path: &WsPath, below: NamedDepth) -> Option<String> {
        let largest = self.limits.max_file_bytes;
        let size = match below {
            NamedDepth::Children => self.workspace.signature(path)?.size(),
            NamedDepth::Recursive => self.workspace.bytes_below(path, MAX_COUNTED_ENTRIES)?,
        };
        let (limit, what) = match below {
            NamedDepth::Children => (largest, "a file of"),
            NamedDepth::Recursive => (self.limits.max_ignored_bytes(), "holds"),
        };
        (size > limit).then(|| {
            let (size, limit) = (megabytes(size), megabytes(limit));
            format!("{what} {size} MB, of which at most {limit} MB are kept")
        })
    }
}

/// Returns the path that an effect changes, and how much below it.
fn changed_target(effect: &Effect) -> Option<(&PathTarget, NamedDepth)> {
    match effect {
        Effect::Writes { path } | Effect::ChangesPermissions { path } | Effect::Deletes { path, recursive: false } => {
            Some((path, NamedDepth::Children))
        }
        Effect::Deletes { path, recursive: true } => Some((path, NamedDepth::Recursive)),
        _ => None,
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}
