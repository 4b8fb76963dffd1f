//! Helpers: the engine's steps from a proposal to the tree, and trees to compare.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use sayso_review::{Answer, ContentHash, Decider, Plan, Preview, Proposal, Transition, Verdict};
use sayso_workspace::{Applied, ApplyError, Backend, Prepared, ReadLimit, Swap, Workspace, WsPath};
use serde_json::{Value, json};

pub(crate) const LIMIT: ReadLimit = ReadLimit(1 << 24);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Directory,
    File { bytes: Vec<u8>, mode: u32 },
    Link(String),
    Pipe,
    Other,
}

/// All entries below a directory, by path.
pub(crate) type Tree = BTreeMap<String, Thing>;

pub(crate) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(root, "", &mut tree);
    tree
}

fn collect(directory: &Path, prefix: &str, tree: &mut Tree) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        let meta = entry.path().symlink_metadata().unwrap();
        let thing = if meta.is_dir() {
            collect(&entry.path(), &format!("{name}/"), tree);
            Thing::Directory
        } else if meta.is_symlink() {
            Thing::Link(entry.path().read_link().unwrap().into_os_string().into_string().unwrap())
        } else if meta.is_file() {
            Thing::File { bytes: std::fs::read(entry.path()).unwrap(), mode: meta.permissions().mode() & 0o7777 }
        } else if meta.file_type().is_fifo() {
            Thing::Pipe
        } else {
            Thing::Other
        };
        tree.insert(name, thing);
    }
}

/// Removes the directories, which exist only for their files.
pub(crate) fn files(root: &Path) -> Tree {
    tree(root).into_iter().filter(|(_, thing)| *thing != Thing::Directory).collect()
}

pub(crate) fn at(path: &str) -> WsPath {
    WsPath::parse(path).unwrap()
}

/// Changes with exact bytes.
pub(crate) fn write(path: &str, text: &str) -> Value {
    json!({"operation": "write", "path": path, "new_content": text, "exact": true})
}

pub(crate) fn delete(path: &str) -> Value {
    json!({"operation": "delete", "path": path})
}

pub(crate) fn preview(workspace: &Workspace, changes: &Value) -> Preview {
    let proposal = Proposal::parse(changes.to_string().as_bytes()).unwrap();
    let draft = proposal.draft(|text| workspace.locate(text)).unwrap();
    draft.preview(&workspace.observe(draft.paths(), LIMIT))
}

/// Returns the plan of a full approval, or the error.
pub(crate) fn approve(preview: &Preview) -> Result<Plan, String> {
    let verdict = Verdict {
        preview: preview.hash(),
        answer: Answer::Approve,
        comments: Vec::new(),
        message: None,
        by: Decider::PERSON,
    };
    preview.decide(&verdict).map(|decision| decision.plan).map_err(|error| error.to_string())
}

pub(crate) fn plan(workspace: &Workspace, changes: &Value) -> Plan {
    approve(&preview(workspace, changes)).unwrap()
}

pub(crate) fn prepare<'w>(workspace: &'w Workspace, changes: &Value) -> Prepared<'w> {
    workspace.prepare(plan(workspace, changes), Vec::new()).unwrap()
}

pub(crate) fn change(workspace: &Workspace, changes: &Value) -> Result<Applied, ApplyError> {
    workspace.prepare(plan(workspace, changes), Vec::new())?.apply()
}

/// Returns the plan that undoes a plan.
pub(crate) fn undo(workspace: &Workspace, plan: &Plan) -> Plan {
    let back = |step: &sayso_review::PlanStep| Transition {
        change: 1,
        path: step.path.clone(),
        from: Some(step.after.clone()),
        to: Some(step.before.clone()),
    };
    let transitions: Vec<Transition> = plan.steps().iter().map(back).collect();
    let sight = workspace.observe(plan.steps().iter().map(|step| step.path.clone()), LIMIT);
    approve(&sayso_review::reverse(&transitions, &sight.files, sayso_review::IfChanged::Refuse)).unwrap()
}

/// Returns the contents of a plan, as a journal stores them.
pub(crate) fn contents(plan: &Plan) -> BTreeMap<ContentHash, Vec<u8>> {
    let states = plan.steps().iter().flat_map(|step| [&step.before, &step.after]);
    states.filter_map(|state| state.content()).map(|content| (content.hash(), content.bytes().to_vec())).collect()
}

/// Runs a test with both backends and both ways to replace a file. `outer/ws` is the workspace. Files beside it must
/// not change, and no temporary file may remain.
pub(crate) fn in_every_way(test: impl Fn(&Workspace, &Path)) {
    for backend in [Backend::OpenAt2, Backend::Stepwise] {
        for swap in [Swap::Exchange, Swap::Replace] {
            let outer = tempfile::tempdir().unwrap();
            let root = outer.path().join("ws");
            std::fs::create_dir(&root).unwrap();
            std::fs::create_dir(outer.path().join("outside")).unwrap();
            std::fs::write(outer.path().join("outside/secret"), "secret").unwrap();
            test(&Workspace::open_with(&root, backend).unwrap().with_swap(swap), &root);
            let all = tree(outer.path());
            let outside: Vec<&String> = all.keys().filter(|path| !path.starts_with("ws")).collect();
            assert_eq!(outside, ["outside", "outside/secret"], "{backend:?} {swap:?}");
            assert_eq!(std::fs::read(outer.path().join("outside/secret")).unwrap(), b"secret", "{backend:?} {swap:?}");
            let left: Vec<&String> = all.keys().filter(|path| path.contains(".sayso-")).collect();
            assert!(left.is_empty(), "{backend:?} {swap:?}: {left:?}");
        }
    }
}

pub(crate) fn put(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
