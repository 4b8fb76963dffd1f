//! File names that match a pattern.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::fields::Field;
use crate::files;
use crate::pattern::Pattern;

/// Paths that a pattern may match.
const MAX_MATCHES: usize = 1 << 20;

/// Paths that match the field below `directory`, sorted by bytes; empty if there is none.
pub(crate) fn matching(field: &Field, directory: &Path) -> Vec<Vec<u8>> {
    let components = field.components();
    let mut found = Vec::new();
    search(&components, Vec::new(), directory, &mut found);
    found.sort_unstable();
    found
}

/// Follows the components behind `prefix`, which ends with a slash or is empty.
fn search(components: &[Field], prefix: Vec<u8>, directory: &Path, found: &mut Vec<Vec<u8>>) {
    let Some((component, rest)) = components.split_first() else { return };
    if found.len() >= MAX_MATCHES {
        return;
    }
    if !component.is_pattern() {
        let mut path = prefix;
        path.extend_from_slice(&unescaped(component));
        step(path, rest, directory, found);
        return;
    }
    let pattern = Pattern::new(component);
    let folder = directory.join(Path::new(OsStr::from_bytes(&prefix)));
    for name in files::names(&folder) {
        let is_hidden = name.starts_with(b".") && !pattern.begins_with(b'.');
        if !is_hidden && pattern.matches(&name) {
            step([prefix.as_slice(), &name].concat(), rest, directory, found);
        }
    }
}

/// Takes one path on to the next component, or keeps it if there is none.
fn step(mut path: Vec<u8>, rest: &[Field], directory: &Path, found: &mut Vec<Vec<u8>>) {
    let whole = directory.join(Path::new(OsStr::from_bytes(&path)));
    if rest.is_empty() {
        if path.ends_with(b"/") || files::link_metadata(&whole).is_some() {
            found.push(path);
        }
        return;
    }
    if path.is_empty() || path.ends_with(b"/") || files::is_directory(&whole) {
        path.push(b'/');
        search(rest, path, directory, found);
    }
}

/// Text of a component without signs; a backslash from a variable quotes the character behind it.
fn unescaped(component: &Field) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = 0;
    while at < component.bytes.len() {
        let is_escape = component.bytes[at] == b'\\' && component.active[at] && at + 1 < component.bytes.len();
        at += usize::from(is_escape);
        text.push(component.bytes[at]);
        at += 1;
    }
    text
}
