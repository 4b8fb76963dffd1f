//! Two directories, compared in parallel and shown in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use sayso_diff::{Counts, Diff, Side, path_label};
use sayso_tools::diff_object;
use serde_json::{Value, json};

use super::summary::Summary;
use super::{Form, Show, beside, card, draw, notes, patch, say_all};
use crate::failure::Failure;
use crate::output::{Output, say};

/// What a name stands for in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File { executable: bool },
    Symlink,
}

/// The nodes below a directory by their relative paths.
type Nodes = BTreeMap<PathBuf, Node>;

/// A path that one tree or both have.
struct Task {
    path: PathBuf,
    old: Option<Node>,
    new: Option<Node>,
}

/// What became of a task.
enum Finding {
    Same,
    Different { shown: Shown, counts: Counts, beside: Vec<String> },
    Problem(String),
}

enum Shown {
    Text(Vec<u8>),
    Value(Value),
}

pub(crate) fn run(old: Option<&Path>, new: Option<&Path>, show: &Show) -> Result<ExitCode, Failure> {
    let mut problems = Vec::new();
    let mut nodes_of = |root: Option<&Path>| root.map_or_else(Nodes::new, |root| nodes(root, &mut problems));
    let (old_nodes, new_nodes) = (nodes_of(old), nodes_of(new));
    // No node is in a tree that is not there.
    let (old, new) = (old.unwrap_or(Path::new("")), new.unwrap_or(Path::new("")));
    let paths: BTreeSet<&PathBuf> = old_nodes.keys().chain(new_nodes.keys()).collect();
    let tasks: Vec<Task> = paths
        .into_iter()
        .map(|path| Task { path: path.clone(), old: old_nodes.get(path).cloned(), new: new_nodes.get(path).cloned() })
        .collect();

    let mut output = Output::stdout();
    let mut summary = Summary::default();
    let mut values = Vec::new();
    let mut beside = Vec::new();
    in_order(
        &tasks,
        |task| compare(old, new, task, show),
        |finding| {
            match finding {
                Finding::Same => {}
                Finding::Problem(problem) => problems.push(problem),
                Finding::Different { shown, counts, beside: notes } => {
                    if show.terminal.draws() && summary.files > 0 {
                        output.write(b"\n")?;
                    }
                    summary.add(counts);
                    beside.extend(notes);
                    match shown {
                        Shown::Text(text) => output.write(&text)?,
                        Shown::Value(value) => values.push(value),
                    }
                }
            }
            Ok(())
        },
    )?;

    if matches!(show.form, Form::Json | Form::JsonCard(_)) {
        let Counts { added, removed } = summary.counts;
        output.json(&json!({
            "identical": summary.files == 0,
            "files": values,
            "summary": { "files": summary.files, "added": added, "removed": removed },
            "problems": problems,
        }))?;
    } else if summary.files > 0 && show.terminal.draws() {
        output.write(format!("\n{}\n", summary.text()).as_bytes())?;
    } else if summary.files > 0 {
        // Beside the patch, so that the patch stays one.
        say(&summary.text());
    }
    output.finish()?;
    say_all(&beside);
    for problem in &problems {
        say(&format!("Error: {problem}"));
    }
    Ok(ExitCode::from(if problems.is_empty() { u8::from(summary.files > 0) } else { 2 }))
}

/// Everything below a directory but the directories themselves.
fn nodes(root: &Path, problems: &mut Vec<String>) -> Nodes {
    let mut nodes = Nodes::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let entries = match std::fs::read_dir(root.join(&directory)) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(format!("`{}` cannot be listed: {error}", root.join(&directory).display()));
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
                Err(error) => problems.push(format!("`{}` cannot be looked at: {error}", root.join(&path).display())),
            }
        }
    }
    nodes
}

impl Node {
    /// A pipe, a device or a socket has no content to compare.
    fn of(metadata: &Metadata) -> Option<Self> {
        if metadata.is_symlink() {
            Some(Self::Symlink)
        } else if metadata.is_file() {
            Some(Self::File { executable: metadata.mode() & 0o111 != 0 })
        } else {
            None
        }
    }

    /// As git writes it.
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

/// Runs `work` on all tasks with as many threads as there are cores, and `take` on the results in the tasks' order.
fn in_order(
    tasks: &[Task],
    work: impl Fn(&Task) -> Finding + Sync,
    mut take: impl FnMut(Finding) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(tasks.len().max(1));
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    // Bounded, so that fast workers wait for a slow reader of our output instead of filling memory.
    let (sender, receiver) = mpsc::sync_channel::<(usize, Finding)>(4 * threads);
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
        for (at, finding) in &receiver {
            early.insert(at, finding);
            while let Some(finding) = early.remove(&expected) {
                result = take(finding);
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
        // Wakes workers that wait to send.
        drop(receiver);
        result
    })
}

fn compare(old: &Path, new: &Path, task: &Task, show: &Show) -> Finding {
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
        return Finding::Same;
    }
    let diff = Diff::new(old_content.as_deref(), new_content.as_deref());
    let file = File { task, diff: &diff, path: task.path.to_string_lossy().into_owned() };
    Finding::Different { shown: file.show(show), counts: diff.counts(), beside: file.beside(show) }
}

fn problem(root: &Path, task: &Task, error: &std::io::Error) -> Finding {
    Finding::Problem(format!("`{}` cannot be read: {error}", root.join(&task.path).display()))
}

/// A file that differs.
struct File<'t> {
    task: &'t Task,
    diff: &'t Diff<'t>,
    path: String,
}

impl File<'_> {
    /// What to tell beside the output: all that a patch cannot say. What is drawn or JSON has it inside.
    fn beside(&self, show: &Show) -> Vec<String> {
        let path = &self.path;
        let notes = match show.form {
            Form::Json | Form::JsonCard(_) => Vec::new(),
            Form::Unified if show.terminal.draws() => Vec::new(),
            Form::Unified if show.names_only(self.diff) => {
                return vec![format!("{path} is binary and not in the patch; --text puts it in")];
            }
            Form::Unified => beside(self.diff),
            Form::Card(_) => notes(self.diff),
        };
        notes.into_iter().map(|note| format!("{path}: {note}")).collect()
    }

    fn show(&self, show: &Show) -> Shown {
        let binary = show.names_only(self.diff);
        match show.form {
            Form::Json => {
                let mut value = diff_object(self.diff, &self.label_a(), &self.label_b(), show.context, show.binary());
                value["path"] = json!(self.path);
                value["status"] = json!(self.status());
                Shown::Value(value)
            }
            Form::JsonCard(lines) => {
                let mut value = card::value(self.diff, lines, show.binary());
                value["path"] = json!(self.path);
                value["status"] = json!(self.status());
                Shown::Value(value)
            }
            Form::Card(lines) => {
                let event = if binary { format!("{}, binary", self.status()) } else { self.status().to_owned() };
                let mut text = draw::title_only(show.terminal, &self.path, &event);
                if !binary {
                    text.push_str(&card::text(self.diff, lines, show.terminal));
                }
                Shown::Text(text.into_bytes())
            }
            Form::Unified if show.terminal.draws() => Shown::Text(self.drawn(binary, show).into_bytes()),
            Form::Unified => Shown::Text(self.patch(binary, show)),
        }
    }

    /// Its path as the file system has it.
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

    fn drawn(&self, binary: bool, show: &Show) -> String {
        if binary {
            return draw::title_only(show.terminal, &self.path, &format!("{}, binary", self.status()));
        }
        let title = draw::Title::Tree { path: &self.path, event: self.status() };
        draw::diff(self.diff, &title, &self.path, show)
    }

    /// In git's form. A change of type is a deletion and a creation, as git has it.
    fn patch(&self, binary: bool, show: &Show) -> Vec<u8> {
        let (Some(old), Some(new)) = (&self.task.old, &self.task.new) else {
            return self.patch_of(self.diff, binary, show);
        };
        if matches!(old, Node::Symlink) == matches!(new, Node::Symlink) {
            return self.patch_of(self.diff, binary, show);
        }
        let deleted = Diff::new(self.diff.old_side(), Side::Absent);
        let created = Diff::new(Side::Absent, self.diff.new_side());
        [self.patch_of(&deleted, binary, show), self.patch_of(&created, binary, show)].concat()
    }

    fn patch_of(&self, diff: &Diff<'_>, binary: bool, show: &Show) -> Vec<u8> {
        let git = |prefix: &str| path_label(prefix, self.name()).trim_end_matches('\t').to_owned();
        let mut header = format!("diff --git {} {}\n", git("a/"), git("b/"));
        let mode = |node: &Option<Node>| node.as_ref().map_or("100644", Node::mode);
        let (old_mode, new_mode) = (mode(&self.task.old), mode(&self.task.new));
        match (diff.old_side(), diff.new_side()) {
            (Side::Absent, _) => header.push_str(&format!("new file mode {new_mode}\n")),
            (_, Side::Absent) => header.push_str(&format!("deleted file mode {old_mode}\n")),
            _ if old_mode != new_mode => header.push_str(&format!("old mode {old_mode}\nnew mode {new_mode}\n")),
            // Where git looks for the type of what it changes, and what ends a header without hunks. The hashes matter to
            // nobody but its index, and we have none.
            _ if old_mode == "120000" || binary => header.push_str(&format!("index 0000000..0000000 {old_mode}\n")),
            _ => {}
        }
        let mut text = header.into_bytes();
        if binary && !diff.is_unchanged() {
            let name = |side, prefix| if side == Side::Absent { sayso_diff::NO_FILE.to_owned() } else { git(prefix) };
            let names = (name(diff.old_side(), "a/"), name(diff.new_side(), "b/"));
            text.extend(format!("Binary files {} and {} differ\n", names.0, names.1).into_bytes());
        } else {
            text.extend(patch::of_tree_file(diff, self.name(), show.context));
        }
        text
    }
}
