//! States of a repository.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_workspace::Workspace;
use sayso_workspace::git::{
    BranchAction, BranchPlan, CheckedOut, Checkout, GitError, GitState, Head, Operation, Repository, WithoutRepository,
};

use crate::git::{Scene, git_in, name};

fn state_at(scene: &Scene, directory: &Path) -> GitState {
    scene.program().state(&Workspace::open(directory).unwrap()).unwrap()
}

fn repository_at(scene: &Scene, directory: &Path) -> Repository {
    match state_at(scene, directory) {
        GitState::Repository(repository) => *repository,
        other => panic!("{other:?}"),
    }
}

fn repository(scene: &Scene) -> Repository {
    repository_at(scene, &scene.root)
}

fn in_progress(scene: &Scene) -> Option<Operation> {
    repository(scene).in_progress
}

#[test]
fn directory_without_repository_is_reported() {
    let scene = Scene::empty();
    assert_eq!(state_at(&scene, &scene.root), GitState::NotARepository);
    // A nested repository is not the workspace's.
    scene.git(&["init", "--quiet", "below"]);
    assert_eq!(state_at(&scene, &scene.root), GitState::NotARepository);
}

#[test]
fn missing_git_program_is_reported() {
    let scene = Scene::new(&[("a", "1\n")]);
    let program = scene.program_on("/nowhere".as_ref(), Duration::from_mins(1));
    assert_eq!(program.state(&scene.workspace()).unwrap(), GitState::NoGit);
}

#[test]
fn git_program_inside_workspace_is_ignored() {
    let scene = Scene::new(&[("git", "#!/bin/sh\necho true > ran\n")]);
    std::fs::set_permissions(scene.root.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = scene.program_on(".::relative".as_ref(), Duration::from_mins(1));
    assert_eq!(program.state(&scene.workspace()).unwrap(), GitState::NoGit);
    assert!(!scene.root.join("ran").exists());
}

#[test]
fn bare_repository_is_reported() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    let bare = scene.root.with_file_name("bare");
    assert_eq!(state_at(&scene, &bare), GitState::Bare { directory: bare.clone() });
    let own = scene.root.join(".git");
    assert_eq!(state_at(&scene, &own), GitState::Bare { directory: own.clone() });
}

#[test]
fn state_reports_branch_upstream_and_subdirectory() {
    let scene = Scene::new(&[("a/b/c", "1\n")]);
    scene.git(&["clone", "--quiet", ".", "../clone"]);
    let clone = scene.root.with_file_name("clone");
    let found = repository_at(&scene, &clone.join("a/b"));
    let commit = scene.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(found.head, Head::Branch { name: "main".into(), commit });
    assert_eq!((found.root, found.inside), (clone, PathBuf::from("a/b")));
    assert_eq!(found.upstream.as_deref(), Some("origin/main"));
    assert_eq!((found.checkout, found.superproject, found.in_progress), (Checkout::Main, None, None));
    assert_eq!((found.uncommitted, found.elsewhere), (vec![], vec![]));
}

#[test]
fn workspace_below_root_switches_whole_repository() {
    let scene = Scene::new(&[("a/b", "1\n"), ("c", "1\n")]);
    scene.write("c", "2\n");
    let below = Workspace::open(&scene.root.join("a")).unwrap();
    let program = scene.program();
    let plan = program.plan(&below, &name("task"), WithoutRepository::Initialise).unwrap();
    assert!(matches!(plan, BranchPlan::Create { .. }), "no second repository is made inside the first: {plan:?}");
    let done = program.execute(&below, &plan).unwrap();
    assert_eq!(done.uncommitted[0].path, Path::new("c"), "paths are the repository's");
    assert_eq!(scene.git(&["branch", "--show-current"]), "sayso/task\n");
}

#[test]
fn branch_is_created_from_detached_head() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.commit(&[("a", "2\n")]);
    scene.git(&["switch", "--quiet", "--detach", "HEAD~1"]);
    let commit = scene.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(repository(&scene).head, Head::Detached { commit: commit.clone() });
    scene.write("a", "mine\n");
    assert_eq!(scene.take_up("task").unwrap().action, BranchAction::Created);
    assert_eq!(repository(&scene).head, Head::Branch { name: "sayso/task".into(), commit });
    assert_eq!(scene.read("a"), "mine\n");
}

#[test]
fn branch_named_detached_is_branch() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["switch", "--quiet", "-c", "(detached)"]);
    assert_eq!(repository(&scene).head.branch(), Some("(detached)"));
}

#[test]
fn unborn_branch_is_reported() {
    assert_eq!(repository(&Scene::unborn()).head, Head::Unborn { name: "main".into() });
}

#[test]
fn linked_worktrees_are_reported() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["worktree", "add", "--quiet", "-b", "side", "../linked\none"]);
    let linked = scene.root.with_file_name("linked\none");
    let found = repository_at(&scene, &linked);
    assert_eq!(found.checkout, Checkout::Linked { main: scene.root.clone() });
    assert_eq!((found.root, found.head.branch()), (linked.clone(), Some("side")));
    assert_eq!(found.elsewhere, [CheckedOut { branch: "main".into(), worktree: scene.root.clone() }]);
    assert_eq!(repository(&scene).elsewhere, [CheckedOut { branch: "side".into(), worktree: linked.clone() }]);

    let workspace = Workspace::open(&linked).unwrap();
    let plan = scene.program().plan(&workspace, &name("task"), WithoutRepository::Refuse).unwrap();
    std::fs::write(linked.join("a"), "mine\n").unwrap();
    scene.program().execute(&workspace, &plan).unwrap();
    assert_eq!(repository_at(&scene, &linked).head.branch(), Some("sayso/task"));
    assert_eq!(std::fs::read_to_string(linked.join("a")).unwrap(), "mine\n");
    assert_eq!(repository(&scene).head.branch(), Some("main"), "the main one is where it was");
}

#[test]
fn submodule_state_names_superproject() {
    let scene = Scene::new(&[("a", "1\n")]);
    let library = Scene::new(&[("l", "1\n")]);
    let source = library.root.to_str().unwrap();
    scene.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "library"]);
    scene.commit(&[]);
    let inside = scene.root.join("library");
    assert_eq!(repository_at(&scene, &inside).superproject, Some(scene.root.clone()));
    assert_eq!(repository_at(&scene, &inside).checkout, Checkout::Main);
    assert_eq!(repository(&scene).superproject, None);

    // The other branch has another commit of the submodule, and the configuration would follow it.
    scene.git(&["switch", "--quiet", "-c", "sayso/task"]);
    git_in(&inside, &["commit", "--quiet", "--allow-empty", "--message", "more"]);
    scene.commit(&[]);
    scene.git(&["-c", "submodule.recurse=true", "switch", "--quiet", "main"]);
    scene.git(&["config", "submodule.recurse", "true"]);
    let before = git_in(&inside, &["rev-parse", "HEAD"]);
    std::fs::write(inside.join("l"), "mine\n").unwrap();
    scene.take_up("task").unwrap();
    assert_eq!(git_in(&inside, &["rev-parse", "HEAD"]), before);
    assert_eq!(std::fs::read_to_string(inside.join("l")).unwrap(), "mine\n");
    // The submodule switches branches of its own.
    let workspace = Workspace::open(&inside).unwrap();
    let plan = scene.program().plan(&workspace, &name("inner"), WithoutRepository::Refuse).unwrap();
    scene.program().execute(&workspace, &plan).unwrap();
    assert_eq!(repository_at(&scene, &inside).head.branch(), Some("sayso/inner"));
    assert_eq!(repository(&scene).head.branch(), Some("sayso/task"));
}

/// Creates two branches, `main` and `side`, with two conflicting commits each.
pub(crate) fn diverged() -> Scene {
    let scene = Scene::new(&[("a", "0\n"), ("b", "0\n")]);
    scene.git(&["branch", "side"]);
    scene.commit(&[("a", "main\n")]);
    scene.commit(&[("b", "main\n")]);
    scene.git(&["switch", "--quiet", "side"]);
    scene.commit(&[("a", "side\n")]);
    scene.commit(&[("b", "side\n")]);
    scene.git(&["switch", "--quiet", "main"]);
    scene
}

/// Every operation in progress.
pub(crate) fn everything_in_progress() -> Vec<(Operation, Scene)> {
    let begun = |arguments: &[&str]| {
        let scene = diverged();
        scene.git_stops(arguments);
        scene
    };
    let am = diverged();
    let patch = am.git(&["format-patch", "--stdout", "-1", "side~1"]);
    std::fs::write(am.root.with_file_name("patch"), patch).unwrap();
    am.git_stops(&["am", "--3way", "../patch"]);
    let bisect = diverged();
    bisect.git(&["bisect", "start", "HEAD", "HEAD~2"]);
    let between = begun(&["cherry-pick", "side~1", "side"]);
    between.write("a", "settled\n");
    between.commit(&[]);
    assert!(!between.root.join(".git/CHERRY_PICK_HEAD").exists(), "one is done and one is to come");
    let reverting = diverged();
    reverting.commit(&[("a", "later\n"), ("b", "later\n")]);
    reverting.git_stops(&["revert", "--no-edit", "HEAD~1"]);
    vec![
        (Operation::Rebase, begun(&["rebase", "side"])),
        (Operation::Rebase, begun(&["rebase", "--apply", "side"])),
        (Operation::Merge, begun(&["merge", "side"])),
        (Operation::CherryPick, begun(&["cherry-pick", "side~1"])),
        (Operation::CherryPick, between),
        (Operation::Revert, reverting),
        (Operation::Am, am),
        (Operation::Bisect, bisect),
    ]
}

#[test]
fn operations_in_progress_are_reported() {
    for (expected, scene) in everything_in_progress() {
        assert_eq!(in_progress(&scene), Some(expected));
    }
    assert_eq!(in_progress(&diverged()), None);
}

#[test]
fn operation_in_progress_is_reported_with_reftable() {
    let scene = Scene::empty();
    scene.git(&["init", "--quiet", "--initial-branch=main", "--ref-format=reftable"]);
    scene.commit(&[("a", "0\n")]);
    scene.git(&["branch", "side"]);
    scene.commit(&[("a", "main\n")]);
    scene.git(&["switch", "--quiet", "side"]);
    scene.commit(&[("a", "side\n")]);
    assert_eq!(in_progress(&scene), None);
    scene.git_stops(&["cherry-pick", "main"]);
    assert_eq!(in_progress(&scene), Some(Operation::CherryPick));
    scene.git(&["cherry-pick", "--abort"]);
    assert_eq!(scene.take_up("task").unwrap().action, BranchAction::Created);
}

#[test]
fn operation_in_progress_is_per_worktree() {
    let scene = diverged();
    scene.git(&["worktree", "add", "--quiet", "-b", "third", "../linked"]);
    scene.git_stops(&["merge", "side"]);
    let linked = scene.root.with_file_name("linked");
    assert_eq!((in_progress(&scene), repository_at(&scene, &linked).in_progress), (Some(Operation::Merge), None));
}

#[test]
fn dangling_git_file_prevents_initialization() {
    let scene = Scene::empty();
    scene.write(".git", "gitdir: /nowhere/at/all\n");
    let error = scene.program().state(&scene.workspace()).unwrap_err();
    assert!(matches!(&error, GitError::Failed { said, .. } if said.contains("/nowhere/at/all")), "{error}");
}

#[test]
fn user_configuration_does_not_change_status() {
    let scene = Scene::new(&[("old", "1\n2\n3\n4\n")]);
    for (key, value) in [
        ("status.showUntrackedFiles", "no"),
        ("status.renames", "copies"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
    ] {
        scene.git(&["config", key, value]);
    }
    scene.git(&["mv", "old", "new"]);
    scene.write("größe", "1\n");
    let paths: Vec<PathBuf> = repository(&scene).uncommitted.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["new", "old", "größe"].map(PathBuf::from));
}
