//! A proposal whose paths are known to lie in the workspace, as steps over single files.

use std::collections::BTreeSet;

use sayso_base::{WsPath, WsPathError};
use sayso_diff::{FilePatch, NO_FILE, Patch, Section, SectionAction, SectionPatch};

use crate::intent::{FileIntent, NewContent, Proposal, ProposalError};

/// What [`FilePreview::labels`](crate::FilePreview::labels) puts behind a name.
const LABELS: [&str; 3] = [" (current)", " (proposed)", " (new file)"];

/// A proposal that can be previewed as soon as its paths were looked at.
#[derive(Debug)]
pub struct Draft<'p> {
    pub(crate) steps: Vec<DraftStep<'p>>,
}

/// One step over one file.
#[derive(Debug)]
pub(crate) enum DraftStep<'p> {
    Put { path: WsPath, content: &'p NewContent, exists: Exists },
    Edit { path: WsPath, old: &'p str, new: &'p str, replace_all: bool },
    Delete { path: WsPath },
    Rename { path: WsPath, to: WsPath },
    Unified { path: WsPath, to: WsPath, patch: FilePatch<'p> },
    Sections { path: WsPath, to: WsPath, section: Section },
}

/// What a write says about the file before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exists {
    Must,
    MustNot,
    May,
}

impl Proposal {
    /// Finds the files that the proposal is about. `locate` reads a path as the agent wrote it.
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
        // A part that was not understood would be missing from what is approved, so nothing of it is taken.
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
        // A hunk with fewer lines than it promises may have been cut off, so a wrong count is not overlooked either.
        if let Some(problem) = patch.problems.first() {
            return Err(bad(problem.to_string()));
        }
        let strips = strips_prefixes(&patch);
        for file in patch.files {
            // Read as a rename it would remove the original, and read as an edit it would miss the content.
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
                // Without a git header, two names are the same file before and after.
                None if new == none || old == none => path.clone(),
                None => name(new)?,
            };
            // `diff -u old new` of two versions that lie side by side is about the file that is to change.
            let path = if is_git(&file) { path } else { to.clone() };
            steps.push(DraftStep::Unified { path, to, patch: file });
        }
    }
    if steps.is_empty() { Err(bad("it changes no file".to_owned())) } else { Ok(steps) }
}

fn is_git(file: &FilePatch<'_>) -> bool {
    !file.extended.is_empty()
}

/// Whether the two names are one behind `a/` and `b/`.
fn is_prefixed(file: &FilePatch<'_>) -> bool {
    let cut = |path: &[u8]| match path {
        [letter, b'/', rest @ ..] if GIT_LETTERS.contains(letter) => Some((*letter, rest.to_vec())),
        _ => None,
    };
    let (old, new) = (cut(&file.old_path), cut(&file.new_path));
    old.zip(new).is_some_and(|((old_letter, old), (new_letter, new))| old_letter != new_letter && old == new)
}

/// What git puts before names: `a` and `b`, or with `diff.mnemonicPrefix` the commit, the index, an object and the work tree.
const GIT_LETTERS: &[u8] = b"abciow";

/// Whether all names begin with `a/` and `b/`, as git writes them.
fn strips_prefixes(patch: &Patch<'_>) -> bool {
    let prefixed = |path: &[u8], prefix: &[u8]| path == NO_FILE.as_bytes() || path.starts_with(prefix);
    patch.files.iter().all(|file| prefixed(&file.old_path, b"a/") && prefixed(&file.new_path, b"b/"))
}

/// The name of a file without what diff tools, ours among them, put around it.
fn file_name(bytes: &[u8], prefixes: &[u8]) -> String {
    let name = String::from_utf8_lossy(bytes);
    // Under our own labels a name is whole: `b/x (new file)` lies in `b`.
    if let Some(name) = LABELS.iter().find_map(|label| name.strip_suffix(label)) {
        return name.to_owned();
    }
    match bytes {
        [letter, b'/', ..] if prefixes.contains(letter) => name[2..].to_owned(),
        _ => name.into_owned(),
    }
}

impl Draft<'_> {
    /// The paths that have to be looked at.
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
