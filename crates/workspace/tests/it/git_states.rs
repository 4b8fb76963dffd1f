//! What is recognised of a repository.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_workspace::Workspace;
use sayso_workspace::git::{
    BranchPlan, CheckedOut, Checkout, Deed, GitError, GitState, Head, Operation, Repository, WithoutRepository,
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
fn a_directory_that_is_no_repository() {
    let scene = Scene::empty();
    assert_eq!(state_at(&scene, &scene.root), GitState::NotARepository);
    // One further down is not the workspace's.
    scene.git(&["init", "--quiet", "below"]);
    assert_eq!(state_at(&scene, &scene.root), GitState::NotARepository);
}

#[test]
fn no_git_program() {
    let scene = Scene::new(&[("a", "1\n")]);
    let program = scene.program_on("/nowhere".as_ref(), Duration::from_mins(1));
    assert_eq!(program.state(&scene.workspace()).unwrap(), GitState::NoGit);
}

#[test]
fn a_git_program_in_the_workspace_is_not_run() {
    let scene = Scene::new(&[("git", "#!/bin/sh\necho true > ran\n")]);
    std::fs::set_permissions(scene.root.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = scene.program_on(".::relative".as_ref(), Duration::from_mins(1));
    assert_eq!(program.state(&scene.workspace()).unwrap(), GitState::NoGit);
    assert!(!scene.root.join("ran").exists());
}

#[test]
fn a_bare_repository_and_the_inside_of_any() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    let bare = scene.root.with_file_name("bare");
    assert_eq!(state_at(&scene, &bare), GitState::Bare { directory: bare.clone() });
    let own = scene.root.join(".git");
    assert_eq!(state_at(&scene, &own), GitState::Bare { directory: own.clone() });
}

#[test]
fn a_branch_its_upstream_and_a_directory_below() {
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
fn a_workspace_below_the_root_takes_up_a_branch_of_the_whole() {
    let scene = Scene::new(&[("a/b", "1\n"), ("c", "1\n")]);
    scene.write("c", "2\n");
    let below = Workspace::open(&scene.root.join("a")).unwrap();
    let program = scene.program();
    let plan = program.plan(&below, &name("task"), WithoutRepository::Initialise).unwrap();
    assert!(matches!(plan, BranchPlan::Create { .. }), "no second repository is made inside the first: {plan:?}");
    let done = program.perform(&below, &plan).unwrap();
    assert_eq!(done.uncommitted[0].path, Path::new("c"), "paths are the repository's");
    assert_eq!(scene.git(&["branch", "--show-current"]), "sayso/task\n");
}

#[test]
fn a_detached_head_is_recognised_and_a_branch_made_there() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.commit(&[("a", "2\n")]);
    scene.git(&["switch", "--quiet", "--detach", "HEAD~1"]);
    let commit = scene.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(repository(&scene).head, Head::Detached { commit: commit.clone() });
    scene.write("a", "mine\n");
    assert_eq!(scene.take_up("task").unwrap().deed, Deed::Created);
    assert_eq!(repository(&scene).head, Head::Branch { name: "sayso/task".into(), commit });
    assert_eq!(scene.read("a"), "mine\n");
}

#[test]
fn a_branch_called_detached_is_a_branch() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["switch", "--quiet", "-c", "(detached)"]);
    assert_eq!(repository(&scene).head.branch(), Some("(detached)"));
}

#[test]
fn an_unborn_branch() {
    assert_eq!(repository(&Scene::unborn()).head, Head::Unborn { name: "main".into() });
}

#[test]
fn linked_worktrees_know_each_other() {
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
    scene.program().perform(&workspace, &plan).unwrap();
    assert_eq!(repository_at(&scene, &linked).head.branch(), Some("sayso/task"));
    assert_eq!(std::fs::read_to_string(linked.join("a")).unwrap(), "mine\n");
    assert_eq!(repository(&scene).head.branch(), Some("main"), "the main one is where it was");
}

#[test]
fn a_submodule_knows_its_superproject_and_is_left_alone_by_it() {
    let scene = Scene::new(&[("a", "1\n")]);
    let library = Scene::new(&[("l", "1\n")]);
    let source = library.root.to_str().unwrap();
    scene.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "library"]);
    scene.commit(&[]);
    let inside = scene.root.join("library");
    assert_eq!(repository_at(&scene, &inside).superproject, Some(scene.root.clone()));
    assert_eq!(repository_at(&scene, &inside).checkout, Checkout::Main);
    assert_eq!(repository(&scene).superproject, None);

    // Another branch wants another commit of it, and the configuration says to follow.
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
    // And the submodule takes up branches of its own.
    let workspace = Workspace::open(&inside).unwrap();
    let plan = scene.program().plan(&workspace, &name("inner"), WithoutRepository::Refuse).unwrap();
    scene.program().perform(&workspace, &plan).unwrap();
    assert_eq!(repository_at(&scene, &inside).head.branch(), Some("sayso/inner"));
    assert_eq!(repository(&scene).head.branch(), Some("sayso/task"));
}

/// Two branches, `main` and `side`, whose two last commits each do not go together.
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

/// Every way to have something in progress.
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
fn what_is_in_progress_is_recognised() {
    for (expected, scene) in everything_in_progress() {
        assert_eq!(in_progress(&scene), Some(expected));
    }
    assert_eq!(in_progress(&diverged()), None);
}

#[test]
fn what_is_in_progress_is_recognised_where_references_are_no_files() {
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
    assert_eq!(scene.take_up("task").unwrap().deed, Deed::Created);
}

#[test]
fn in_progress_is_a_matter_of_each_worktree() {
    let scene = diverged();
    scene.git(&["worktree", "add", "--quiet", "-b", "third", "../linked"]);
    scene.git_stops(&["merge", "side"]);
    let linked = scene.root.with_file_name("linked");
    assert_eq!((in_progress(&scene), repository_at(&scene, &linked).in_progress), (Some(Operation::Merge), None));
}

#[test]
fn a_git_file_that_leads_nowhere_is_no_invitation_to_make_a_repository() {
    let scene = Scene::empty();
    scene.write(".git", "gitdir: /nowhere/at/all\n");
    let error = scene.program().state(&scene.workspace()).unwrap_err();
    assert!(matches!(&error, GitError::Failed { said, .. } if said.contains("/nowhere/at/all")), "{error}");
}

#[test]
fn configuration_does_not_change_what_is_seen() {
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
