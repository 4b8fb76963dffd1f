//! Branch switches with the real git. Uncommitted work stays the same, byte for byte.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use sayso_testkit::programs;
use sayso_workspace::Workspace;
use sayso_workspace::git::{
    BranchAction, BranchName, BranchOutcome, BranchPlan, BranchPrefix, Counts, Environment, Git, GitError, Head,
    WithoutRepository,
};
use tempfile::TempDir;

/// Temporary repository at `repository`, with room beside it.
pub(crate) struct Scene {
    pub(crate) room: TempDir,
    pub(crate) root: PathBuf,
}

const WHO: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_AUTHOR_EMAIL", "a@example.org"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@example.org"),
];

impl Scene {
    /// Creates a directory without a repository.
    pub(crate) fn empty() -> Self {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap().join("repository");
        std::fs::create_dir(&root).unwrap();
        Self { room, root }
    }

    /// Creates a repository without a commit.
    pub(crate) fn unborn() -> Self {
        let scene = Self::empty();
        scene.git(&["init", "--quiet", "--initial-branch=main"]);
        scene
    }

    /// Creates a repository with one commit of these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self::unborn();
        scene.commit(files);
        scene
    }

    /// Creates a repository with two commits, on `main` and on `sayso/task`, with `main` checked out.
    pub(crate) fn with_task_branch(files: &[(&str, &str)], on_the_branch: &[(&str, &str)]) -> Self {
        let scene = Self::new(files);
        scene.git(&["switch", "--quiet", "-c", "sayso/task"]);
        scene.commit(on_the_branch);
        scene.git(&["switch", "--quiet", "main"]);
        scene
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write(path, text);
        }
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--message", "a commit", "--allow-empty"]);
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Runs git in the repository. Panics on failure.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root, arguments)
    }

    /// Runs git in the repository. Panics unless it stops half way.
    pub(crate) fn git_stops(&self, arguments: &[&str]) {
        let output = programs::run_with(&self.root, "git", arguments, &WHO, b"");
        assert!(!output.status.success(), "git {arguments:?}: {output:?}");
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::open(&self.root).unwrap()
    }

    /// Returns git as sayso runs it.
    pub(crate) fn program(&self) -> Git {
        self.program_on(&std::env::var_os("PATH").unwrap(), Duration::from_mins(1))
    }

    pub(crate) fn program_on(&self, path: &std::ffi::OsStr, limit: Duration) -> Git {
        let home = Some(self.room.path().as_os_str().to_owned());
        Git::new(Environment { path: path.to_owned(), home, config_home: None, mark: None }, limit)
    }

    pub(crate) fn plan(&self, task: &str) -> BranchPlan {
        self.program().plan(&self.workspace(), &name(task), WithoutRepository::Refuse).unwrap()
    }

    /// Plans a switch and executes it.
    pub(crate) fn take_up(&self, task: &str) -> Result<BranchOutcome, GitError> {
        self.program().execute(&self.workspace(), &self.plan(task))
    }

    /// Returns all files below the root, including `.git`, with modes and bytes.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        listing(&self.root, &mut found);
        found
    }

    /// Returns all files outside `.git`.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let git = self.root.join(".git");
        self.everything().into_iter().filter(|(path, _)| !path.starts_with(&git)).collect()
    }

    /// Returns the uncommitted work, as git reports it.
    fn work(&self) -> [String; 3] {
        [
            self.git(&["diff", "--binary"]),
            self.git(&["diff", "--cached", "--binary"]),
            self.git(&["status", "--porcelain=v2", "-z", "--ignored", "--untracked-files=all"]),
        ]
    }
}

/// Runs git in a directory. Panics on failure.
pub(crate) fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = programs::run_with(directory, "git", arguments, &WHO, b"");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn name(task: &str) -> BranchName {
    BranchName::for_task(&BranchPrefix::default(), task).unwrap()
}

fn listing(directory: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            listing(&path, found);
            Vec::new()
        } else if metadata.is_symlink() {
            path.read_link().unwrap().into_os_string().into_encoded_bytes()
        } else {
            std::fs::read(&path).unwrap()
        };
        found.insert(path, (metadata.permissions().mode(), content));
    }
}

const FILES: [(&str, &str); 9] = [
    (".gitignore", "*.log\nbuild/\n"),
    ("unstaged", "1\n"),
    ("staged", "1\n"),
    ("partly", "1\n2\n3\n"),
    ("mode", "1\n"),
    ("deleted", "1\n"),
    ("deleted staged", "1\n"),
    ("forgotten", "1\n"),
    ("clean", "1\n"),
];

/// Creates uncommitted work of every kind.
fn make_work(scene: &Scene) {
    scene.write("staged", "2\n");
    scene.write("partly", "staged\n2\n3\n");
    scene.write("new", "new\n");
    scene.git(&["add", "staged", "partly", "new"]);
    scene.write("partly", "staged\n2\nunstaged\n");
    scene.write("unstaged", "2\r\n");
    std::fs::set_permissions(scene.root.join("mode"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::remove_file(scene.root.join("deleted")).unwrap();
    scene.git(&["rm", "--quiet", "deleted staged"]);
    scene.git(&["rm", "--quiet", "--cached", "forgotten"]);
    scene.write("intended", "later\n");
    scene.git(&["add", "--intent-to-add", "intended"]);
    scene.write("untracked", "mine\n");
    std::fs::write(scene.root.join("unt\nracked \u{fc}"), b"\xff\0mine").unwrap();
    scene.write("notes/a", "mine\n");
    scene.write("x.log", "ignored\n");
    scene.write("build/out", "ignored\n");
    std::os::unix::fs::symlink("nowhere", scene.root.join("link")).unwrap();
}

const WORK: Counts = Counts { staged: 5, unstaged: 5, untracked: 5, conflicted: 0 };

#[test]
fn new_branch_keeps_uncommitted_work() {
    let scene = Scene::new(&FILES);
    make_work(&scene);
    let (tree, work, index) = (scene.tree(), scene.work(), std::fs::read(scene.root.join(".git/index")).unwrap());
    assert!(matches!(scene.plan("Add a thing"), BranchPlan::Create { from: Head::Branch { .. }, .. }));
    let done = scene.take_up("Add a thing").unwrap();
    assert_eq!((done.action, done.branch.as_str()), (BranchAction::Created, "sayso/add-a-thing"));
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/sayso/add-a-thing\n");
    assert_eq!((scene.tree(), scene.work()), (tree, work));
    assert_eq!(std::fs::read(scene.root.join(".git/index")).unwrap(), index, "the index is the same to the byte");
    assert_eq!((Counts::of(&done.uncommitted), &done.settled[..], &done.appeared[..]), (WORK, &[][..], &[][..]));
    assert_eq!(scene.git(&["rev-parse", "main"]), scene.git(&["rev-parse", "HEAD"]));
}

#[test]
fn switch_keeps_uncommitted_work() {
    let scene = Scene::with_task_branch(&FILES, &[("clean", "the branch's\n"), ("more", "the branch's\n")]);
    make_work(&scene);
    let (mut tree, work) = (scene.tree(), scene.work());
    let done = scene.take_up("task").unwrap();
    assert_eq!(done.action, BranchAction::Switched);
    assert_eq!(scene.work(), work);
    assert_eq!((Counts::of(&done.uncommitted), &done.settled[..], &done.appeared[..]), (WORK, &[][..], &[][..]));
    let mut now = scene.tree();
    for path in ["clean", "more"] {
        assert_eq!(scene.read(path), "the branch's\n");
        now.remove(&scene.root.join(path));
        tree.remove(&scene.root.join(path));
    }
    assert_eq!(now, tree);
}

#[test]
fn checked_out_branch_is_left_unchanged() {
    let scene = Scene::new(&FILES);
    scene.take_up("task").unwrap();
    make_work(&scene);
    let before = scene.everything();
    assert!(matches!(scene.plan("task"), BranchPlan::AlreadyThere { .. }));
    let done = scene.take_up("task").unwrap();
    assert_eq!((done.action, Counts::of(&done.uncommitted)), (BranchAction::AlreadyThere, WORK));
    assert_eq!(scene.everything(), before);
}

#[test]
fn inspection_and_planning_change_nothing() {
    let scene = Scene::with_task_branch(&FILES, &[("clean", "the branch's\n")]);
    make_work(&scene);
    // `git status` refreshes the index for a touched file, unless it may not.
    let file = std::fs::File::options().append(true).open(scene.root.join("clean")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    let before = scene.everything();
    scene.program().state(&scene.workspace()).unwrap();
    for task in ["task", "another"] {
        scene.plan(task);
    }
    assert_eq!(scene.everything(), before);
}

#[test]
fn unborn_head_is_renamed() {
    let scene = Scene::unborn();
    scene.write("staged", "1\n");
    scene.git(&["add", "staged"]);
    scene.write("untracked", "1\n");
    let (tree, work) = (scene.tree(), [scene.git(&["diff", "--cached"]), scene.git(&["ls-files", "--stage"])]);
    assert!(matches!(scene.plan("task"), BranchPlan::Create { from: Head::Unborn { .. }, .. }));
    scene.take_up("task").unwrap();
    assert_eq!((scene.tree(), [scene.git(&["diff", "--cached"]), scene.git(&["ls-files", "--stage"])]), (tree, work));
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/sayso/task\n");
    assert_eq!(scene.git(&["branch", "--list"]), "");
    scene.commit(&[]);
    assert_eq!(scene.git(&["branch", "--list"]), "* sayso/task\n");
}

#[test]
fn repository_is_created_only_on_request() {
    let scene = Scene::empty();
    scene.write("mine", "1\n");
    let tree = scene.everything();
    assert!(matches!(scene.plan("task"), BranchPlan::Refused { .. }));
    assert!(matches!(scene.take_up("task"), Err(GitError::Refused(_))));
    assert_eq!(scene.everything(), tree);

    let plan = scene.program().plan(&scene.workspace(), &name("task"), WithoutRepository::Initialise).unwrap();
    assert_eq!(plan, BranchPlan::Initialise { branch: name("task") });
    assert_eq!(scene.everything(), tree);
    let done = scene.program().execute(&scene.workspace(), &plan).unwrap();
    assert_eq!((done.action, Counts::of(&done.uncommitted).untracked), (BranchAction::Initialised, 1));
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/sayso/task\n");
    assert_eq!(scene.tree(), tree);
    // The plan was made before the repository existed.
    assert!(matches!(scene.program().execute(&scene.workspace(), &plan), Err(GitError::Changed)));
}

#[test]
fn plan_for_changed_repository_is_rejected() {
    let scene = Scene::new(&[("a", "1\n")]);
    let plan = scene.plan("task");
    scene.commit(&[("a", "2\n")]);
    let before = scene.everything();
    assert!(matches!(scene.program().execute(&scene.workspace(), &plan), Err(GitError::Changed)));
    assert_eq!(scene.everything(), before);
}

#[test]
fn user_hooks_run_and_effects_are_reported() {
    let scene = Scene::new(&[("a", "1\n")]);
    let hook = scene.root.join(".git/hooks/post-checkout");
    std::fs::write(&hook, "#!/bin/sh\necho hooked > hooked\n").unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(scene.take_up("task").unwrap().appeared, [Path::new("hooked")]);
    scene.write("a", "2\n");
    scene.git(&["add", "a"]);
    std::fs::write(&hook, "#!/bin/sh\necho 3 > a; exec git add a\n").unwrap();
    let done = scene.take_up("staged").unwrap();
    assert_eq!((done.settled, done.appeared), (vec!["a".into()], vec!["a".into()]), "staged, but something else");
    std::fs::write(&hook, "#!/bin/sh\nexec git symbolic-ref HEAD refs/heads/main\n").unwrap();
    let error = scene.take_up("another").unwrap_err();
    assert!(matches!(&error, GitError::NotThere { head, .. } if head == "main"), "{error}");
}

#[test]
fn work_equal_to_branch_is_settled() {
    let scene = Scene::with_task_branch(&[("a", "1\n"), ("b", "1\n")], &[("a", "2\n")]);
    scene.write("a", "2\n");
    scene.git(&["add", "a"]);
    scene.write("b", "2\n");
    let done = scene.take_up("task").unwrap();
    assert_eq!((done.settled, done.uncommitted.len()), (vec![PathBuf::from("a")], 1));
    assert_eq!((scene.read("a"), scene.read("b")), ("2\n".into(), "2\n".into()));
}

/// An uncommitted edit.
#[derive(Clone, Copy, Debug)]
enum Deal {
    Write { file: usize, text: u8 },
    Remove { file: usize },
    Add { file: usize },
    Forget { file: usize },
    Unstage { file: usize },
}

const NAMES: [&str; 6] = ["a", "b", "c.log", "d/e", "d/f.log", "g"];

fn deals() -> impl Strategy<Value = Vec<Deal>> {
    let deal = prop_oneof![
        4 => (0..NAMES.len(), 0..4_u8).prop_map(|(file, text)| Deal::Write { file, text }),
        1 => (0..NAMES.len()).prop_map(|file| Deal::Remove { file }),
        2 => (0..NAMES.len()).prop_map(|file| Deal::Add { file }),
        1 => (0..NAMES.len()).prop_map(|file| Deal::Forget { file }),
        1 => (0..NAMES.len()).prop_map(|file| Deal::Unstage { file }),
    ];
    proptest::collection::vec(deal, 0..8)
}

fn do_deals(scene: &Scene, deals: &[Deal]) {
    let git = |arguments: &[&str]| drop(programs::run_with(&scene.root, "git", arguments, &WHO, b""));
    for deal in deals {
        match *deal {
            Deal::Write { file, text } => scene.write(NAMES[file], &format!("{text}\n")),
            Deal::Remove { file } => drop(std::fs::remove_file(scene.root.join(NAMES[file]))),
            Deal::Add { file } => git(&["add", "--force", NAMES[file]]),
            Deal::Forget { file } => git(&["rm", "--quiet", "--cached", NAMES[file]]),
            Deal::Unstage { file } => git(&["restore", "--staged", NAMES[file]]),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A switch keeps uncommitted work, or fails without a change.
    #[test]
    fn uncommitted_work_is_never_lost(on_main in deals(), on_task in deals(), work in deals()) {
        let scene = Scene::new(&[(".gitignore", "*.log\n"), ("a", "0\n"), ("d/e", "0\n")]);
        do_deals(&scene, &on_main);
        scene.commit(&[]);
        scene.git(&["switch", "--quiet", "-c", "sayso/task"]);
        do_deals(&scene, &on_task);
        scene.commit(&[]);
        scene.git(&["switch", "--quiet", "main"]);
        do_deals(&scene, &work);

        let staged = |scene: &Scene| scene.git(&["diff", "--cached", "--name-only", "-z"]);
        let entry = |path: &str| scene.git(&["ls-files", "--stage", "--", path]);
        let (tree, index, head) = (scene.tree(), scene.git(&["ls-files", "--stage"]), scene.git(&["rev-parse", "HEAD"]));
        let staged: Vec<(String, String)> =
            staged(&scene).split_terminator('\0').map(|path| (path.to_owned(), entry(path))).collect();
        let committed = |path: &str| {
            let output = programs::run_with(&scene.root, "git", &["show", &format!("main:{path}")], &WHO, b"");
            output.status.success().then_some(output.stdout)
        };
        match scene.take_up("task") {
            Ok(done) => {
                prop_assert_eq!(done.action, BranchAction::Switched);
                for path in NAMES {
                    let before = tree.get(&scene.root.join(path)).map(|(_, bytes)| bytes.clone());
                    if before.is_some() && before != committed(path) {
                        prop_assert_eq!(std::fs::read(scene.root.join(path)).ok(), before, "{}", path);
                    }
                }
                for (path, before) in staged {
                    prop_assert_eq!(entry(&path), before, "{} is staged as it was", path);
                }
            }
            Err(GitError::WouldOverwrite { files, .. }) => {
                prop_assert!(!files.is_empty());
                prop_assert_eq!(scene.tree(), tree);
                prop_assert_eq!(scene.git(&["ls-files", "--stage"]), index);
                prop_assert_eq!(scene.git(&["rev-parse", "HEAD"]), head);
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    /// Generated names are valid for git.
    #[test]
    fn generated_branch_names_are_valid(task in "\\PC{0,80}", prefix in "[a-zä./@+=#_-]{0,8}") {
        let directory = tempfile::tempdir().unwrap();
        let prefix = prefix.parse().unwrap_or_else(|_| BranchPrefix::default());
        let Ok(name) = BranchName::for_task(&prefix, &task) else {
            prop_assert!(task.trim().is_empty());
            return Ok(());
        };
        let output = programs::run(directory.path(), "git", &["check-ref-format", "--branch", name.as_str()], b"");
        prop_assert!(output.status.success(), "{}: {:?}", name, output);
        let slug = name.as_str().strip_prefix(prefix.as_str()).unwrap();
        prop_assert!(slug.len() <= 50 && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')));
    }
}
