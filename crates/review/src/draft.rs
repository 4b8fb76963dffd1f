//! Drafts: proposals resolved to workspace paths, as steps over single files.

use std::collections::BTreeSet;

use sayso_base::{WsPath, WsPathError};
use sayso_diff::{FilePatch, NO_FILE, Patch, Section, SectionAction, SectionPatch};

use crate::intent::{FileIntent, NewContent, Proposal, ProposalError};

/// Suffixes that [`FilePreview::labels`](crate::FilePreview::labels) appends to names.
const LABELS: [&str; 3] = [" (current)", " (proposed)", " (new file)"];

/// A resolved proposal, which can be previewed once its paths have been observed.
#[derive(Debug)]
pub struct Draft<'p> {
    pub(crate) steps: Vec<DraftStep<'p>>,
}

/// A step over one file.
#[derive(Debug)]
pub(crate) enum DraftStep<'p> {
    Put { path: WsPath, content: &'p NewContent, exists: Exists },
    Edit { path: WsPath, old: &'p str, new: &'p str, replace_all: bool },
    Delete { path: WsPath },
    Rename { path: WsPath, to: WsPath },
    Unified { path: WsPath, to: WsPath, patch: FilePatch<'p> },
    Sections { path: WsPath, to: WsPath, section: Section },
}

/// The requirement of a write on the existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exists {
    Must,
    MustNot,
    May,
}

impl Proposal {
    /// Resolves the paths of the proposal. `locate` maps a path as the agent wrote it to a workspace path.
    pub fn draft(&self, locate: impl Fn(&str) -> Result<WsPath, WsPathError>) -> Result<Draft<'_>, ProposalError> {
        let mut steps = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            let number = index + 1;
            let at = |text: &str| place(text, number, &locate);
            match change {
                FileIntent::Create(content) => {
                    steps.push(DraftStep::Put { path: at(&content.path)?, content, exists: Exists::MustNot });
                }
                FileIntent::Update(content) => {
                    steps.push(DraftStep::Put { path: at(&content.path)?, content, exists: Exists::Must });
                }
                FileIntent::Write(content) => {
                    steps.push(DraftStep::Put { path: at(&content.path)?, content, exists: Exists::May });
                }
                FileIntent::Edit { path, old_string, new_string, replace_all } => {
                    let (old, new) = (old_string.as_str(), new_string.as_str());
                    steps.push(DraftStep::Edit { path: at(path)?, old, new, replace_all: *replace_all });
                }
                FileIntent::Delete { path } => steps.push(DraftStep::Delete { path: at(path)? }),
                FileIntent::Rename { path, to } => steps.push(DraftStep::Rename { path: at(path)?, to: at(to)? }),
                FileIntent::Patch { patch } => steps.extend(patch_steps(patch.as_bytes(), number, &at)?),
            }
        }
        Ok(Draft { steps })
    }
}

fn place(
    text: &str,
    number: usize,
    locate: &impl Fn(&str) -> Result<WsPath, WsPathError>,
) -> Result<WsPath, ProposalError> {
    let bad = |reason: String| ProposalError::BadPath { change: format!("entry {number} of the proposal"), reason };
    let path = locate(text).map_err(|error| bad(error.to_string()))?;
    if path.is_root() { Err(bad("the workspace itself is not a file".to_owned())) } else { Ok(path) }
}

fn patch_steps<'p>(
    bytes: &'p [u8],
    number: usize,
    at: &impl Fn(&str) -> Result<WsPath, ProposalError>,
) -> Result<Vec<DraftStep<'p>>, ProposalError> {
    let bad = |reason: String| ProposalError::BadPatch { change: format!("entry {number} of the proposal"), reason };
    let mut steps = Vec::new();
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| sayso_diff::is_begin_patch(text)) {
        let SectionPatch { sections, problems } = SectionPatch::parse(text);
        // A section that was not understood would silently be missing from the approved change. Reject the whole patch.
        if let Some(problem) = problems.first() {
            return Err(bad(problem.to_string()));
        }
        for section in sections {
            let path = at(&section.path)?;
            let to = match &section.action {
                SectionAction::Update { move_to: Some(to), .. } => at(to)?,
                _ => path.clone(),
            };
            steps.push(DraftStep::Sections { path, to, section });
        }
    } else {
        let patch = Patch::parse(bytes);
        // A hunk with fewer lines than its header promises may be truncated. Reject wrong counts too.
        if let Some(problem) = patch.problems.first() {
            return Err(bad(problem.to_string()));
        }
        let strips = strips_prefixes(&patch);
        for file in patch.files {
            // Applied as a rename, a copy would remove the original. Applied as an edit, it would lack the content.
            if file.extended.iter().any(|line| line.starts_with(b"copy from ")) {
                return Err(bad("it copies a file; give the content of the new file instead".to_owned()));
            }
            let prefixes: &[u8] = match () {
                () if is_prefixed(&file) => GIT_LETTERS,
                () if strips || is_git(&file) => b"ab",
                () => b"",
            };
            let name = |bytes: &[u8]| at(&file_name(bytes, prefixes));
            let renamed = |words| file.header(words).map(|name| at(&String::from_utf8_lossy(&name)));
            let (old, new) = (&file.old_path, &file.new_path);
            let none = NO_FILE.as_bytes();
            let path = match renamed("rename from ") {
                Some(path) => path?,
                None => name(if old == none { new } else { old })?,
            };
            let to = match renamed("rename to ") {
                Some(path) => path?,
                // Without a git header, two names denote the same file before and after.
                None if new == none || old == none => path.clone(),
                None => name(new)?,
            };
            // `diff -u old new` compares two versions side by side; the patch applies to the second one.
            let path = if is_git(&file) { path } else { to.clone() };
            steps.push(DraftStep::Unified { path, to, patch: file });
        }
    }
    if steps.is_empty() { Err(bad("it changes no file".to_owned())) } else { Ok(steps) }
}

fn is_git(file: &FilePatch<'_>) -> bool {
    !file.extended.is_empty()
}

/// `true` if both names are the same path after prefixes such as `a/` and `b/`.
fn is_prefixed(file: &FilePatch<'_>) -> bool {
    let cut = |path: &[u8]| match path {
        [letter, b'/', rest @ ..] if GIT_LETTERS.contains(letter) => Some((*letter, rest.to_vec())),
        _ => None,
    };
    let (old, new) = (cut(&file.old_path), cut(&file.new_path));
    old.zip(new).is_some_and(|((old_letter, old), (new_letter, new))| old_letter != new_letter && old == new)
}

/// Prefix letters of git: `a` and `b`, or with `diff.mnemonicPrefix` commit, index, object, tree and others.
const GIT_LETTERS: &[u8] = b"abciow";

/// `true` if all names begin with `a/` and `b/`, as in git's format.
fn strips_prefixes(patch: &Patch<'_>) -> bool {
    let prefixed = |path: &[u8], prefix: &[u8]| path == NO_FILE.as_bytes() || path.starts_with(prefix);
    patch.files.iter().all(|file| prefixed(&file.old_path, b"a/") && prefixed(&file.new_path, b"b/"))
}

/// Removes the prefixes and labels that diff tools, including sayso, add to a file name.
fn file_name(bytes: &[u8], prefixes: &[u8]) -> String {
    let name = String::from_utf8_lossy(bytes);
    // Names with our own labels have no prefix: `b/x (new file)` is the file `x` in directory `b`.
    if let Some(name) = LABELS.iter().find_map(|label| name.strip_suffix(label)) {
        return name.to_owned();
    }
    match bytes {
        [letter, b'/', ..] if prefixes.contains(letter) => name[2..].to_owned(),
        _ => name.into_owned(),
    }
}

impl Draft<'_> {
    /// Returns the paths to observe for the preview.
    pub fn paths(&self) -> BTreeSet<WsPath> {
        let mut paths = BTreeSet::new();
        for step in &self.steps {
            match step {
                DraftStep::Put { path, .. } | DraftStep::Edit { path, .. } | DraftStep::Delete { path } => {
                    paths.insert(path.clone());
                }
                DraftStep::Rename { path, to }
                | DraftStep::Unified { path, to, .. }
                | DraftStep::Sections { path, to, .. } => paths.extend([path.clone(), to.clone()]),
            }
        }
        paths
    }
}
