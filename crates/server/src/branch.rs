//! Git branches for tasks. Uncommitted work is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_api::proto;
use sayso_workspace::git::{
    BranchAction, BranchName, BranchOutcome, BranchPlan, BranchPrefix, Checkout, Counts, Git, GitError, GitState, Head,
    Refusal, Repository, WithoutRepository,
};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::host::Host;

/// Time limit for one git command, including hooks. Fits the status of a large tree on a slow disk.
const GIT_TIMEOUT: Duration = Duration::from_mins(2);

const WITHOUT_GIT: &str =
    "run `sayso branch TASK --init` to create a repository, or use `sayso propose`, which needs no git";

fn git(host: &Host) -> Git {
    Git::new(host.environment.clone(), GIT_TIMEOUT)
}

fn prefix(host: &Host, task: &proto::BranchTask) -> Result<BranchPrefix, Failure> {
    Ok(task.prefix.clone().unwrap_or_else(|| host.branch_prefix()).parse()?)
}

/// Reads the state of the repository.
pub(crate) fn state(host: &Host, task: &proto::BranchTask) -> Result<proto::GetBranchResponse, Failure> {
    host.refresh()?;
    let prefix = prefix(host, task)?;
    let found = git(host).state(&host.workspace)?;
    let line = |(name, text): (&str, String)| proto::StatusLine { name: name.to_owned(), text, ..Default::default() };
    let mut response = proto::GetBranchResponse {
        state: state_name(&found).to_owned(),
        lines: state_lines(&prefix, &found).into_iter().map(line).collect(),
        details_json: state_object(&host.root, &prefix, &found).to_string(),
        ..Default::default()
    };
    if let GitState::Repository(repository) = &found {
        let counts = repository.counts();
        (response.staged, response.unstaged) = (counts.staged as u64, counts.unstaged as u64);
        (response.untracked, response.conflicted) = (counts.untracked as u64, counts.conflicted as u64);
        response.branch = repository.head.branch().map(ToString::to_string);
        response.commit = match &repository.head {
            Head::Branch { commit, .. } | Head::Detached { commit } => Some(commit.clone()),
            Head::Unborn { .. } => None,
        };
        response.task_branch = on_task_branch(&prefix, repository);
        response.in_progress = repository.in_progress.map(|operation| operation.name().to_owned());
    }
    Ok(response)
}

fn planned(host: &Host, task: &proto::BranchTask) -> Result<(BranchPlan, Vec<String>), Failure> {
    host.refresh()?;
    let branch = BranchName::for_task(&prefix(host, task)?, &task.task)?;
    let without = if task.initialise { WithoutRepository::Initialise } else { WithoutRepository::Refuse };
    let git = git(host);
    let plan = git.plan(&host.workspace, &branch, without)?;
    if let BranchPlan::Refused { reason, .. } = plan {
        let hint = matches!(reason, Refusal::NotARepository).then_some(WITHOUT_GIT);
        let failure = Failure::from(GitError::from(reason));
        return Err(match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        });
    }
    let mut notes = Vec::new();
    if matches!(plan, BranchPlan::Switch { .. })
        && let GitState::Repository(repository) = git.state(&host.workspace)?
        && !repository.inside.as_os_str().is_empty()
    {
        notes.push(format!(
            "the branch covers the whole repository, so files outside the workspace change too: {}",
            repository.root.display()
        ));
    }
    Ok((plan, notes))
}

/// Returns the effect of [`check_out`].
pub(crate) fn plan(host: &Host, task: &proto::BranchTask) -> Result<proto::PlanBranchResponse, Failure> {
    let (plan, notes) = planned(host, task)?;
    let object = plan_object(&plan, "planned");
    Ok(proto::PlanBranchResponse {
        branch: plan.branch().as_str().to_owned(),
        plan: object["plan"].as_str().unwrap_or_default().to_owned(),
        text: plan_text(&plan),
        details_json: object.to_string(),
        notes,
        ..Default::default()
    })
}

/// Creates a branch or switches to it. The gate changes no files meanwhile.
pub(crate) fn check_out(host: &Host, task: &proto::BranchTask) -> Result<proto::CheckOutBranchResponse, Failure> {
    let (plan, mut notes) = planned(host, task)?;
    let done = host.gate.with_workspace(|workspace| git(host).execute(workspace, &plan))?;
    let paths =
        |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(|path| path.to_string_lossy().into_owned()).collect() };
    let mut object = plan_object(&plan, action_name(done.action));
    object["uncommitted"] = counts_object(Counts::of(&done.uncommitted));
    object["settled"] = json!(paths(&done.settled));
    object["appeared"] = json!(paths(&done.appeared));
    for path in &done.settled {
        notes.push(format!("the checkout altered the uncommitted changes of `{}`", path.display()));
    }
    for path in &done.appeared {
        notes.push(format!("the checkout left uncommitted changes in `{}`", path.display()));
    }
    Ok(proto::CheckOutBranchResponse {
        branch: plan.branch().as_str().to_owned(),
        action: action_name(done.action).to_owned(),
        text: done_text(&plan, &done, &host.root),
        notes,
        details_json: object.to_string(),
        ..Default::default()
    })
}

/// The effect of a plan, for display.
fn plan_text(plan: &BranchPlan) -> String {
    match plan {
        BranchPlan::AlreadyThere { branch } => format!("Already on {branch}."),
        BranchPlan::Create { branch, from } => {
            format!("Would create branch {branch} from {from}; no file would change.")
        }
        BranchPlan::Switch { branch, from } => {
            format!(
                "Would switch from {from} to {branch}, unless uncommitted work conflicts; git then names the files."
            )
        }
        BranchPlan::Initialise { branch } => format!("Would create a git repository here, on branch {branch}."),
        BranchPlan::Refused { reason, .. } => reason.to_string(),
    }
}

/// The result of a checkout, for display.
fn done_text(plan: &BranchPlan, done: &BranchOutcome, root: &Path) -> String {
    let branch = &done.branch;
    let first = match plan {
        BranchPlan::Create { from: Head::Unborn { .. }, .. } => {
            format!("On new branch {branch}. No commits yet.")
        }
        BranchPlan::Create { from, .. } => format!("On new branch {branch}, created from {from}."),
        BranchPlan::Switch { from, .. } => format!("Switched from {from} to {branch}."),
        BranchPlan::Initialise { .. } => {
            format!("Created a git repository in {}, on branch {branch}. No commits yet.", root.display())
        }
        BranchPlan::AlreadyThere { .. } | BranchPlan::Refused { .. } => format!("Already on {branch}."),
    };
    let counts = counts_text(Counts::of(&done.uncommitted));
    let work = if !done.settled.is_empty() || !done.appeared.is_empty() {
        format!("Uncommitted now: {counts}.")
    } else if counts == NO_FILES {
        "No uncommitted work.".to_owned()
    } else {
        format!("Uncommitted work is unchanged: {counts}.")
    };
    let back = match plan {
        BranchPlan::Create { from, .. } | BranchPlan::Switch { from, .. } => match from {
            Head::Branch { name, .. } => format!("To go back, run `git switch {name}`.\n"),
            Head::Detached { commit } => format!("To go back, run `git switch --detach {commit}`.\n"),
            Head::Unborn { .. } => String::new(),
        },
        _ => String::new(),
    };
    format!("{first}\n{work}\n{back}")
}

/// Labelled lines for display. The last one names the next step.
fn state_lines(prefix: &BranchPrefix, state: &GitState) -> Vec<(&'static str, String)> {
    match state {
        GitState::NoGit => vec![
            ("Git", "program `git` not found".into()),
            ("Next", "install git, or use `sayso propose`, which needs no git".into()),
        ],
        GitState::NotARepository => {
            vec![("Repository", "none: this directory is not in a git repository".into()), ("Next", WITHOUT_GIT.into())]
        }
        GitState::Bare { directory } => vec![
            ("Repository", format!("{}, without a working tree", directory.display())),
            ("Next", "go to a working tree, or create one with `git worktree add`".into()),
        ],
        GitState::Repository(repository) => repository_lines(prefix, repository),
    }
}

fn repository_lines(prefix: &BranchPrefix, repository: &Repository) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Repository", repository.root.display().to_string())];
    if !repository.inside.as_os_str().is_empty() {
        lines.push((
            "Workspace",
            format!("directory {} of the repository; a branch covers all of it", repository.inside.display()),
        ));
    }
    if let Checkout::Linked { main } = &repository.checkout {
        lines.push(("Worktree", format!("linked to {}", main.display())));
    }
    if let Some(superproject) = &repository.superproject {
        lines.push(("Submodule", format!("of {}", superproject.display())));
    }
    let upstream = repository.upstream.as_ref().map_or_else(String::new, |upstream| format!(", tracks {upstream}"));
    lines.push((
        "Branch",
        match &repository.head {
            Head::Branch { name, .. } => format!("{name}{upstream}"),
            Head::Unborn { name } => format!("{name}, without commits"),
            Head::Detached { .. } => format!("none: at commit {}, detached", repository.head),
        },
    ));
    lines.push(("Uncommitted", counts_text(repository.counts())));
    if let Some(operation) = repository.in_progress {
        lines.push(("In progress", operation.to_string()));
        lines.push(("Next", format!("{}; then run `sayso branch TASK`", operation.ways_out())));
    } else if repository.counts().conflicted > 0 {
        lines.push(("Next", "resolve the conflicts and `git add` the files; then run `sayso branch TASK`".into()));
    } else if on_task_branch(prefix, repository) {
        lines.push(("Next", "review and commit with `git diff` and `git commit`".into()));
    } else {
        let next =
            format!("run `sayso branch TASK` to create {}TASK from here; uncommitted work is kept", prefix.as_str());
        lines.push(("Next", next));
    }
    lines
}

fn on_task_branch(prefix: &BranchPrefix, repository: &Repository) -> bool {
    repository.head.branch().is_some_and(|branch| branch.starts_with(prefix.as_str()))
}

const NO_FILES: &str = "none";

fn counts_text(counts: Counts) -> String {
    let Counts { staged, unstaged, untracked, conflicted } = counts;
    let named = [(staged, "staged"), (unstaged, "unstaged"), (untracked, "untracked"), (conflicted, "conflicted")];
    let parts: Vec<String> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if parts.is_empty() { NO_FILES.to_owned() } else { parts.join(", ") }
}

fn counts_object(counts: Counts) -> Value {
    let Counts { staged, unstaged, untracked, conflicted } = counts;
    json!({ "staged": staged, "unstaged": unstaged, "untracked": untracked, "conflicted": conflicted })
}

fn head_object(head: &Head) -> Value {
    match head {
        Head::Branch { name, commit } => json!({ "kind": "branch", "branch": name, "commit": commit }),
        Head::Unborn { name } => json!({ "kind": "unborn", "branch": name, "commit": null }),
        Head::Detached { commit } => json!({ "kind": "detached", "branch": null, "commit": commit }),
    }
}

fn state_object(root: &Path, prefix: &BranchPrefix, state: &GitState) -> Value {
    let workspace = root.to_string_lossy();
    match state {
        GitState::NoGit => json!({ "workspace": workspace, "state": "no_git" }),
        GitState::NotARepository => json!({ "workspace": workspace, "state": "not_a_repository" }),
        GitState::Bare { directory } => {
            json!({ "workspace": workspace, "state": "bare", "directory": directory.to_string_lossy() })
        }
        GitState::Repository(repository) => {
            let elsewhere = repository
                .elsewhere
                .iter()
                .map(|other| json!({ "branch": other.branch, "worktree": other.worktree.to_string_lossy() }));
            let main = match &repository.checkout {
                Checkout::Main => None,
                Checkout::Linked { main } => Some(main.to_string_lossy()),
            };
            json!({
                "workspace": workspace,
                "state": "repository",
                "root": repository.root.to_string_lossy(),
                "inside": repository.inside.to_string_lossy(),
                "head": head_object(&repository.head),
                "upstream": repository.upstream,
                "task_branch": on_task_branch(prefix, repository),
                "uncommitted": counts_object(repository.counts()),
                "in_progress": repository.in_progress.map(sayso_workspace::git::Operation::name),
                "linked_to": main,
                "superproject": repository.superproject.as_ref().map(|path| path.to_string_lossy()),
                "elsewhere": elsewhere.collect::<Vec<_>>(),
            })
        }
    }
}

fn plan_object(plan: &BranchPlan, outcome: &str) -> Value {
    let (name, from) = match plan {
        BranchPlan::AlreadyThere { .. } => ("already_there", None),
        BranchPlan::Create { from, .. } => ("create", Some(from)),
        BranchPlan::Switch { from, .. } => ("switch", Some(from)),
        BranchPlan::Initialise { .. } => ("initialise", None),
        BranchPlan::Refused { .. } => ("refused", None),
    };
    json!({ "branch": plan.branch().as_str(), "plan": name, "outcome": outcome, "from": from.map(head_object) })
}

fn action_name(action: BranchAction) -> &'static str {
    match action {
        BranchAction::AlreadyThere => "already_there",
        BranchAction::Created => "created",
        BranchAction::Switched => "switched",
        BranchAction::Initialised => "initialised",
    }
}

fn state_name(state: &GitState) -> &'static str {
    match state {
        GitState::NoGit => "no_git",
        GitState::NotARepository => "not_a_repository",
        GitState::Bare { .. } => "bare",
        GitState::Repository(_) => "repository",
    }
}
