//! Two directories, compared in parallel and printed in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use sayso_diff::{Counts, Diff, Side, path_label};
use sayso_present::diff::{DiffTitle, DiffTotals, title_line};
use sayso_tools::diff_object;
use serde_json::{Value, json};

use super::{DiffFormat, DiffOptions, notes, patch, patch_notes, say_notes};
use crate::ansi::paint;
use crate::error::CliError;
use crate::output::{Output, say};

/// An entry of a tree that has content.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File { executable: bool },
    Symlink,
}

/// Nodes below a directory by relative path.
type Nodes = BTreeMap<PathBuf, Node>;

/// A path of one tree or both.
struct Task {
    path: PathBuf,
    old: Option<Node>,
    new: Option<Node>,
}

/// Result of a comparison.
enum Comparison {
    Same,
    Different { rendered: Rendered, counts: Counts, notes: Vec<String> },
    Problem(String),
}

enum Rendered {
    Text(Vec<u8>),
    Value(Value),
}

pub(super) fn run(old: Option<&Path>, new: Option<&Path>, options: &DiffOptions) -> Result<ExitCode, CliError> {
    let mut problems = Vec::new();
    let mut nodes_of = |root: Option<&Path>| root.map_or_else(Nodes::new, |root| nodes(root, &mut problems));
    let (old_nodes, new_nodes) = (nodes_of(old), nodes_of(new));
    // An absent tree has no nodes, so that its path is never used.
    let (old, new) = (old.unwrap_or(Path::new("")), new.unwrap_or(Path::new("")));
    let paths: BTreeSet<&PathBuf> = old_nodes.keys().chain(new_nodes.keys()).collect();
    let tasks: Vec<Task> = paths
        .into_iter()
        .map(|path| Task { path: path.clone(), old: old_nodes.get(path).cloned(), new: new_nodes.get(path).cloned() })
        .collect();

    let mut output = Output::stdout();
    let mut totals = DiffTotals::default();
    let mut values = Vec::new();
    let mut notes = Vec::new();
    in_order(
        &tasks,
        |task| compare(old, new, task, options),
        |comparison| {
            match comparison {
                Comparison::Same => {}
                Comparison::Problem(problem) => problems.push(problem),
                Comparison::Different { rendered, counts, notes: of_file } => {
                    if options.terminal.draws() && totals.files > 0 {
                        output.write(b"\n")?;
                    }
                    totals.add(counts);
                    notes.extend(of_file);
                    match rendered {
                        Rendered::Text(text) => output.write(&text)?,
                        Rendered::Value(value) => values.push(value),
                    }
                }
            }
            Ok(())
        },
    )?;

    if matches!(options.format, DiffFormat::Json | DiffFormat::JsonCard(_)) {
        let Counts { added, removed } = totals.counts;
        output.json(&json!({
            "identical": totals.files == 0,
            "files": values,
            "summary": { "files": totals.files, "added": added, "removed": removed },
            "problems": problems,
        }))?;
    } else if totals.files > 0 && options.terminal.draws() {
        output.write(format!("\n{}\n", totals.text()).as_bytes())?;
    } else if totals.files > 0 {
        // On standard error, because in the output it would break the patch.
        say(&totals.text());
    }
    output.finish()?;
    say_notes(&notes);
    for problem in &problems {
        say(&format!("Error: {problem}"));
    }
    Ok(ExitCode::from(if problems.is_empty() { u8::from(totals.files > 0) } else { 2 }))
}

/// Lists the files and symbolic links below a directory.
fn nodes(root: &Path, problems: &mut Vec<String>) -> Nodes {
    let mut nodes = Nodes::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let entries = match std::fs::read_dir(root.join(&directory)) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(format!("cannot list `{}`: {error}", root.join(&directory).display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = directory.join(entry.file_name());
            match std::fs::symlink_metadata(root.join(&path)) {
                Ok(metadata) if metadata.is_dir() => waiting.push(path),
                Ok(metadata) => match Node::of(&metadata) {
                    Some(node) => drop(nodes.insert(path, node)),
                    None => say(&format!("note: `{}` is not a regular file, left out", root.join(&path).display())),
                },
                Err(error) => problems.push(format!("cannot inspect `{}`: {error}", root.join(&path).display())),
            }
        }
    }
    nodes
}

impl Node {
    /// `None` for a pipe, a device or a socket.
    fn of(metadata: &Metadata) -> Option<Self> {
        if metadata.is_symlink() {
            Some(Self::Symlink)
        } else if metadata.is_file() {
            Some(Self::File { executable: metadata.mode() & 0o111 != 0 })
        } else {
            None
        }
    }

    /// The mode as git writes it.
    fn mode(&self) -> &'static str {
        match self {
            Self::File { executable: false } => "100644",
            Self::File { executable: true } => "100755",
            Self::Symlink => "120000",
        }
    }

    fn content(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self {
            Self::File { .. } => std::fs::read(path),
            Self::Symlink => Ok(std::fs::read_link(path)?.into_os_string().as_bytes().to_vec()),
        }
    }
}

/// Runs `work` on all tasks on all cores, and `take` on the results in the order of the tasks.
fn in_order(
    tasks: &[Task],
    work: impl Fn(&Task) -> Comparison + Sync,
    mut take: impl FnMut(Comparison) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(tasks.len().max(1));
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    // Bounded, so that workers wait for a slow reader of the output instead of filling memory.
    let (sender, receiver) = mpsc::sync_channel::<(usize, Comparison)>(4 * threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, stop, work) = (sender.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(at) else { break };
                    if sender.send((at, work(task))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut expected = 0;
        let mut result = Ok(());
        for (at, comparison) in &receiver {
            early.insert(at, comparison);
            while let Some(comparison) = early.remove(&expected) {
                result = take(comparison);
                expected += 1;
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            if result.is_err() {
                break;
            }
        }
        // Wakes workers that are blocked in `send`.
        drop(receiver);
        result
    })
}

fn compare(old: &Path, new: &Path, task: &Task, options: &DiffOptions) -> Comparison {
    let read = |root: &Path, node: &Option<Node>| match node {
        None => Ok(None),
        Some(node) => node.content(&root.join(&task.path)).map(Some),
    };
    let (old_content, new_content) = match (read(old, &task.old), read(new, &task.new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) => return problem(old, task, &error),
        (_, Err(error)) => return problem(new, task, &error),
    };
    let same_kind = match (&task.old, &task.new) {
        (Some(old), Some(new)) => old.mode() == new.mode(),
        _ => false,
    };
    if same_kind && old_content == new_content {
        return Comparison::Same;
    }
    let diff = Diff::new(old_content.as_deref(), new_content.as_deref());
    let file = DifferingFile { task, diff: &diff, path: task.path.to_string_lossy().into_owned() };
    Comparison::Different { rendered: file.render(options), counts: diff.counts(), notes: file.notes(options) }
}

fn problem(root: &Path, task: &Task, error: &std::io::Error) -> Comparison {
    Comparison::Problem(format!("cannot read `{}`: {error}", root.join(&task.path).display()))
}

/// A file that differs.
struct DifferingFile<'t> {
    task: &'t Task,
    diff: &'t Diff<'t>,
    path: String,
}

impl DifferingFile<'_> {
    /// Notes for standard error. A drawn diff and JSON contain them.
    fn notes(&self, options: &DiffOptions) -> Vec<String> {
        let path = &self.path;
        let notes = match options.format {
            DiffFormat::Json | DiffFormat::JsonCard(_) => Vec::new(),
            DiffFormat::Unified if options.terminal.draws() => Vec::new(),
            DiffFormat::Unified if options.names_only(self.diff) => {
                return vec![format!("{path} is binary and not in the patch; --text puts it in")];
            }
            DiffFormat::Unified => patch_notes(self.diff),
            DiffFormat::Card(_) => notes(self.diff),
        };
        notes.into_iter().map(|note| format!("{path}: {note}")).collect()
    }

    fn render(&self, options: &DiffOptions) -> Rendered {
        let binary = options.names_only(self.diff);
        match options.format {
            DiffFormat::Json => {
                let mut value =
                    diff_object(self.diff, &self.label_a(), &self.label_b(), options.context, options.binary());
                value["path"] = json!(self.path);
                value["status"] = json!(self.status());
                Rendered::Value(value)
            }
            DiffFormat::JsonCard(lines) => {
                let mut value = options.card_value(self.diff, lines);
                value["path"] = json!(self.path);
                value["status"] = json!(self.status());
                Rendered::Value(value)
            }
            DiffFormat::Card(lines) => {
                let event = if binary { format!("{}, binary", self.status()) } else { self.status().to_owned() };
                let mut text = title_line(&self.path, &event);
                if !binary {
                    text.append(options.render_card(self.diff, lines));
                }
                Rendered::Text(paint(&text, options.terminal).into_bytes())
            }
            DiffFormat::Unified if options.terminal.draws() => Rendered::Text(self.drawn(binary, options).into_bytes()),
            DiffFormat::Unified => Rendered::Text(self.patch(binary, options)),
        }
    }

    /// The path in the bytes of the file system.
    fn name(&self) -> &[u8] {
        self.task.path.as_os_str().as_bytes()
    }

    fn label_a(&self) -> String {
        if self.task.old.is_none() { sayso_diff::NO_FILE.to_owned() } else { format!("a/{}", self.path) }
    }

    fn label_b(&self) -> String {
        if self.task.new.is_none() { sayso_diff::NO_FILE.to_owned() } else { format!("b/{}", self.path) }
    }

    fn status(&self) -> &'static str {
        match (&self.task.old, &self.task.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            (Some(Node::File { .. }), Some(Node::File { .. })) if self.diff.is_unchanged() => "mode changed",
            (Some(Node::File { .. }), Some(Node::File { .. })) | (Some(Node::Symlink), Some(Node::Symlink)) => {
                "modified"
            }
            _ => "type changed",
        }
    }

    fn drawn(&self, binary: bool, options: &DiffOptions) -> String {
        if binary {
            let title = title_line(&self.path, &format!("{}, binary", self.status()));
            return paint(&title, options.terminal);
        }
        let title = DiffTitle::Tree { path: &self.path, event: self.status() };
        paint(&options.render(self.diff, &title, &self.path), options.terminal)
    }

    /// Formats the diff as git does. A change of type is a deletion and a creation.
    fn patch(&self, binary: bool, options: &DiffOptions) -> Vec<u8> {
        let (Some(old), Some(new)) = (&self.task.old, &self.task.new) else {
            return self.patch_of(self.diff, binary, options);
        };
        if matches!(old, Node::Symlink) == matches!(new, Node::Symlink) {
            return self.patch_of(self.diff, binary, options);
        }
        let deleted = Diff::new(self.diff.old_side(), Side::Absent);
        let created = Diff::new(Side::Absent, self.diff.new_side());
        [self.patch_of(&deleted, binary, options), self.patch_of(&created, binary, options)].concat()
    }

    fn patch_of(&self, diff: &Diff<'_>, binary: bool, options: &DiffOptions) -> Vec<u8> {
        let git = |prefix: &str| path_label(prefix, self.name()).trim_end_matches('\t').to_owned();
        let mut header = format!("diff --git {} {}\n", git("a/"), git("b/"));
        let mode = |node: &Option<Node>| node.as_ref().map_or("100644", Node::mode);
        let (old_mode, new_mode) = (mode(&self.task.old), mode(&self.task.new));
        match (diff.old_side(), diff.new_side()) {
            (Side::Absent, _) => header.push_str(&format!("new file mode {new_mode}\n")),
            (_, Side::Absent) => header.push_str(&format!("deleted file mode {old_mode}\n")),
            _ if old_mode != new_mode => header.push_str(&format!("old mode {old_mode}\nnew mode {new_mode}\n")),
            // git reads the type of the file from this line, and needs one after a header without hunks. It uses the hashes for
            // its index only, so that zeros do.
            _ if old_mode == "120000" || binary => header.push_str(&format!("index 0000000..0000000 {old_mode}\n")),
            _ => {}
        }
        let mut text = header.into_bytes();
        if binary && !diff.is_unchanged() {
            let name = |side, prefix| if side == Side::Absent { sayso_diff::NO_FILE.to_owned() } else { git(prefix) };
            let names = (name(diff.old_side(), "a/"), name(diff.new_side(), "b/"));
            text.extend(format!("Binary files {} and {} differ\n", names.0, names.1).into_bytes());
        } else {
            text.extend(patch::of_tree_file(diff, self.name(), options.context));
        }
        text
    }
}
