//! Computes a preview: applies the steps of a draft to a copy of the observed files and compares the result.

use std::collections::BTreeMap;

use sayso_base::{FileState, WsPath};
use sayso_diff::{Diff, SectionAction};

use super::edit::{self, Edited, NewModes};
use super::problem::Problem;
use super::{FilePreview, Operation, Preview, side};
use crate::draft::{Draft, DraftStep, Exists};
use crate::intent::NewContent;
use crate::note::{self, Note};
use crate::observed::{MAX_FILE_BYTES, Observation, ObservedFile, Obstacle};

impl Draft<'_> {
    /// Previews the steps in order on the observed files.
    pub fn preview(&self, observation: &Observation) -> Preview {
        self.preview_since(observation, &BTreeMap::new())
    }

    /// Previews steps whose author saw the files in the states of `bases`, by location. A whole-file write is merged
    /// with later edits of the file. Where both changed the same lines the step wins, and a note lists the overwritten
    /// lines.
    pub fn preview_since(&self, observation: &Observation, bases: &BTreeMap<WsPath, FileState>) -> Preview {
        let mut tree =
            Tree { observation, bases, cells: BTreeMap::new(), modes: NewModes { umask: observation.umask } };
        for step in &self.steps {
            tree.play(step);
        }
        tree.refuse_files_that_are_directories();
        tree.into_preview()
    }
}

/// The files that the steps affect, by location.
struct Tree<'s> {
    observation: &'s Observation,
    /// Known states of the files at the time when the author wrote the steps.
    bases: &'s BTreeMap<WsPath, FileState>,
    cells: BTreeMap<WsPath, Cell>,
    modes: NewModes,
}

struct Cell {
    asked: WsPath,
    before: FileState,
    now: FileState,
    /// Location before a rename.
    from: Option<WsPath>,
    facts: Vec<Note>,
    notes: Vec<Note>,
    problem: Option<Problem>,
    attempted: Option<Operation>,
    /// `true` if a file was renamed away from this location.
    left: bool,
    /// Position in the order in which files were first named.
    order: usize,
}

impl<'s> Tree<'s> {
    fn play(&mut self, step: &DraftStep<'_>) {
        let modes = self.modes;
        match step {
            DraftStep::Put { path, content, exists } => {
                let operation = if *exists == Exists::MustNot { Operation::Create } else { Operation::Update };
                let base = self.base(path);
                self.edit(path, operation, |now| edit::put(now, content, *exists, base, modes));
            }
            DraftStep::Edit { path, old, new, replace_all } => {
                self.edit(path, Operation::Update, |now| edit::replace(now, old, new, *replace_all, modes));
            }
            DraftStep::Delete { path } => self.remove(path),
            DraftStep::Rename { path, to } => {
                self.rename(path, to);
            }
            DraftStep::Unified { path, to, patch } => {
                if (path == to || self.rename(path, to)) && self.link_itself(to).is_none() {
                    self.edit(to, Operation::Update, |now| edit::unified(now, patch, modes));
                } else if self.link_itself(to).is_some() {
                    self.change(to.clone(), to, Operation::Update, |now| edit::unified(now, patch, modes));
                }
            }
            DraftStep::Sections { path, to, section } => match &section.action {
                SectionAction::Add { content } => {
                    let content = NewContent {
                        path: section.path.clone(),
                        new_content: content.clone(),
                        exact: false,
                        executable: None,
                        base_content: None,
                    };
                    let base = self.base(path);
                    self.edit(path, Operation::Create, |now| edit::put(now, &content, Exists::May, base, modes));
                }
                SectionAction::Delete => self.remove(path),
                SectionAction::Update { .. } => {
                    if path == to || self.rename(path, to) {
                        self.edit(to, Operation::Update, |now| edit::section(now, section));
                    }
                }
            },
        }
    }

    fn observed(&self, path: &WsPath) -> ObservedFile {
        self.observation.files.get(path).cloned().unwrap_or_else(|| ObservedFile {
            location: path.clone(),
            found: Err(Obstacle::Unreadable { reason: "it was not observed".to_owned() }),
            link: None,
            facts: Vec::new(),
        })
    }

    /// Returns the state that the author saw, unless an earlier step changed the file.
    fn base(&self, path: &WsPath) -> Option<&'s FileState> {
        let location = self.observed(path).location;
        let untouched = self.cells.get(&location).is_none_or(|cell| cell.now == cell.before);
        self.bases.get(&location).filter(|_| untouched)
    }

    /// Returns the target of a path that is a symbolic link at this step.
    fn link_itself(&self, path: &WsPath) -> Option<String> {
        match self.cells.get(path) {
            Some(cell) => {
                if let FileState::Link { target } = &cell.now {
                    Some(target.clone())
                } else {
                    None
                }
            }
            None => self.observation.files.get(path).and_then(|observed| observed.link.clone()),
        }
    }

    /// Changes the content of a file, following a symbolic link.
    fn edit(&mut self, path: &WsPath, attempted: Operation, change: impl FnOnce(&FileState) -> Edited) {
        let is_link = self.link_itself(path).is_some();
        let observed = self.observed(path);
        if let (true, Err(obstacle)) = (is_link, observed.found) {
            // The problem concerns the target of the link; the link itself could be deleted.
            let cell = self.cell(path.clone(), path);
            cell.problem.get_or_insert(Problem::Blocked(obstacle));
            cell.attempted.get_or_insert(attempted);
            return;
        }
        let through_link = is_link || !self.cells.contains_key(path);
        let location = if through_link { observed.location } else { path.clone() };
        self.change(location, path, attempted, change);
    }

    fn remove(&mut self, path: &WsPath) {
        let location = self.entry_of(path);
        self.change(location, path, Operation::Delete, |now| match now {
            FileState::Absent => Err(Problem::Missing),
            _ => Ok((FileState::Absent, Vec::new())),
        });
    }

    /// Renames a file or a link itself. Returns `true` on success.
    fn rename(&mut self, path: &WsPath, to: &WsPath) -> bool {
        let (source, target) = (self.entry_of(path), self.entry_of(to));
        if source == target {
            return true;
        }
        let moved = self.cell(source.clone(), path).now.clone();
        let attempted = Operation::Rename { from: source.clone() };
        self.change(target.clone(), to, attempted.clone(), |now| match (now, &moved) {
            (_, FileState::Absent) => Err(Problem::Missing),
            (FileState::Absent, _) => Ok((moved.clone(), Vec::new())),
            _ => Err(Problem::Exists),
        });
        let source_problem = self.cells.get(&source).and_then(|cell| cell.problem.clone());
        let Some(cell) = self.cells.get_mut(&target) else { return false };
        cell.problem = cell.problem.take().or(source_problem);
        if cell.problem.is_some() {
            cell.attempted.get_or_insert(attempted);
            return false;
        }
        // A file that was renamed twice keeps its first location.
        let first = self.cells.get_mut(&source).and_then(|cell| {
            cell.left = true;
            cell.from.take()
        });
        if let Some(cell) = self.cells.get_mut(&target) {
            cell.from = Some(first.unwrap_or_else(|| source.clone()));
        }
        self.change(source, path, Operation::Delete, |_| Ok((FileState::Absent, Vec::new())));
        true
    }

    /// Returns the location of the directory entry; for a symbolic link, the link itself.
    fn entry_of(&self, path: &WsPath) -> WsPath {
        let observed = self.observed(path);
        if observed.link.is_some() || self.cells.contains_key(path) { path.clone() } else { observed.location }
    }

    fn cell(&mut self, location: WsPath, asked: &WsPath) -> &mut Cell {
        let order = self.cells.len();
        let observed = self.observed(asked);
        self.cells.entry(location).or_insert_with_key(|location| {
            let (before, problem, facts) = match observed {
                // Use the link itself instead of its target.
                ObservedFile { link: Some(target), .. } if location == asked => {
                    (FileState::Link { target }, None, Vec::new())
                }
                ObservedFile { found: Ok(state), facts, .. } => (state, None, facts),
                ObservedFile { found: Err(obstacle), .. } => {
                    (FileState::Absent, Some(Problem::Blocked(obstacle)), Vec::new())
                }
            };
            let (asked, now) = (asked.clone(), before.clone());
            Cell {
                asked,
                before,
                now,
                from: None,
                facts,
                notes: Vec::new(),
                problem,
                attempted: None,
                left: false,
                order,
            }
        })
    }

    fn change(
        &mut self,
        location: WsPath,
        asked: &WsPath,
        attempted: Operation,
        change: impl FnOnce(&FileState) -> Edited,
    ) {
        let cell = self.cell(location, asked);
        if cell.problem.is_some() {
            cell.attempted.get_or_insert(attempted);
            return;
        }
        match change(&cell.now) {
            Ok((state, _)) if state.bytes().is_some_and(|bytes| bytes.len() as u64 > MAX_FILE_BYTES) => {
                cell.problem = Some(Problem::Blocked(Obstacle::TooLarge { limit: MAX_FILE_BYTES }));
                cell.attempted = Some(attempted);
            }
            Ok((state, notes)) => {
                cell.now = state;
                cell.notes.extend(notes);
            }
            Err(problem) => {
                cell.problem = Some(problem);
                cell.attempted = Some(attempted);
            }
        }
    }

    fn refuse_files_that_are_directories(&mut self) {
        let mut taken = Vec::new();
        for (below, _) in self.cells.iter().filter(|(_, cell)| cell.now != FileState::Absent) {
            let mut above = below.parent();
            while let Some(path) = above {
                if self.cells.get(&path).is_some_and(|cell| cell.now != FileState::Absent) {
                    taken.push((path.clone(), below.clone()));
                }
                above = path.parent();
            }
        }
        for (path, below) in taken {
            if let Some(cell) = self.cells.get_mut(&path) {
                cell.problem.get_or_insert(Problem::IsAlsoADirectory { below });
            }
        }
    }

    fn into_preview(self) -> Preview {
        let (mut cells, bases) = (self.cells, self.bases);
        // A location that a rename left, and that no other file took, is shown as part of the rename.
        let mut left: BTreeMap<WsPath, FileState> = BTreeMap::new();
        // A rename over another file is shown as two changes; as a rename it would hide the loss of that file.
        let arrived = |cell: &&Cell| cell.before == FileState::Absent && cell.now != FileState::Absent;
        let origins: Vec<WsPath> = cells.values().filter(arrived).filter_map(|cell| cell.from.clone()).collect();
        for from in origins {
            if cells.get(&from).is_some_and(|cell| cell.now == FileState::Absent && cell.problem.is_none()) {
                left.extend(cells.remove(&from).map(|cell| (from, cell.before)));
            }
        }
        // Drop locations used only temporarily, for example while two files swap their names.
        cells.retain(|_, cell| {
            let idle = cell.before == FileState::Absent && cell.now == FileState::Absent;
            !idle || cell.problem.is_some() || !(cell.left || cell.from.is_some())
        });
        let mut folded: BTreeMap<String, Vec<WsPath>> = BTreeMap::new();
        for (path, _) in cells.iter().filter(|(_, cell)| cell.now != FileState::Absent) {
            folded.entry(path.as_str().to_lowercase()).or_default().push(path.clone());
        }
        for twins in folded.values().filter(|twins| twins.len() > 1) {
            for (path, other) in twins.iter().zip(twins.iter().cycle().skip(1)) {
                if let Some(cell) = cells.get_mut(path) {
                    cell.notes.push(Note::CaseTwin { other: other.clone() });
                }
            }
        }
        // A verdict names a file by one path. If two requested paths share a name, such as a link and its target, use
        // the locations.
        let mut asked: BTreeMap<WsPath, usize> = BTreeMap::new();
        for cell in cells.values() {
            *asked.entry(cell.asked.clone()).or_default() += 1;
        }
        for (location, cell) in &mut cells {
            if asked.get(&cell.asked).is_some_and(|count| *count > 1) {
                cell.asked = location.clone();
            }
        }
        let mut files: Vec<(usize, FilePreview)> = cells
            .into_iter()
            .map(|(location, cell)| (cell.order, cell.into_file(location, &mut left, bases)))
            .collect();
        files.sort_by_key(|(order, _)| *order);
        Preview::new(files.into_iter().map(|(_, file)| file).collect())
    }
}

impl Cell {
    fn into_file(
        self,
        location: WsPath,
        left: &mut BTreeMap<WsPath, FileState>,
        bases: &BTreeMap<WsPath, FileState>,
    ) -> FilePreview {
        let origin = self.from.and_then(|from| left.remove(&from).map(|before| (from, before)));
        let attempted = self.attempted.filter(|_| self.problem.is_some());
        let (operation, before) = match origin {
            // A file that was created and renamed within this change has no old name.
            Some((from, before)) if before != FileState::Absent => (Operation::Rename { from }, before),
            _ => (Operation::between(&self.before, &self.now), self.before),
        };
        let mut file = FilePreview {
            path: self.asked,
            location,
            operation: attempted.unwrap_or(operation),
            before,
            after: self.now,
            notes: self.notes,
            problem: self.problem,
        };
        let seen_at = if let Operation::Rename { from } = &file.operation { from } else { &file.location };
        if let Some(note) = bases.get(seen_at).and_then(|base| overwrites(base, &file)) {
            file.notes.push(note);
        }
        file.find_notes(self.facts);
        file
    }
}

/// Returns a note about lines edited after `base` that the change would remove. These lines were inserted between
/// `base` and the current file, and are deleted between the current and the proposed file.
fn overwrites(base: &FileState, file: &FilePreview) -> Option<Note> {
    if *base == file.before || file.before == file.after {
        return None;
    }
    let (since, goes) = (Diff::new(side(base), side(&file.before)), file.diff());
    if since.is_binary() || goes.is_binary() {
        return (file.after != *base || file.operation == Operation::Delete)
            .then(|| Note::Overwrites { lines: Vec::new() });
    }
    let mut lines = Vec::new();
    for edited in since.changes().iter().map(|change| change.new) {
        for removed in goes.changes().iter().map(|change| change.old) {
            let (start, end) = (edited.start.line.max(removed.start.line), edited.end.line.min(removed.end.line));
            lines.extend((start..end).map(|line| line + 1));
        }
    }
    (!lines.is_empty()).then_some(Note::Overwrites { lines })
}

impl Operation {
    /// Returns the operation that leads from one state to another.
    pub(super) fn between(before: &FileState, after: &FileState) -> Self {
        match (before, after) {
            (FileState::Absent, _) => Self::Create,
            (_, FileState::Absent) => Self::Delete,
            _ => Self::Update,
        }
    }
}

impl FilePreview {
    /// Collects the notes about the change itself and adds the facts that the file system provided.
    pub(super) fn find_notes(&mut self, facts: Vec<Note>) {
        if self.problem.is_some() {
            // Notes about an applied edit do not apply if the edit failed.
            self.notes.clear();
        }
        if self.problem.is_some() || self.is_unchanged() {
            return;
        }
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(facts);
        notes.extend(note::notes(&self.location, &self.before, &self.after, &self.diff()));
        notes.sort_by_key(|note| std::cmp::Reverse(note.severity()));
        self.notes = notes;
    }
}
