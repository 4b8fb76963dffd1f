//! A git branch for a task, with uncommitted work left as it is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sayso_api::proto;
use sayso_workspace::git::{
    BranchName, BranchPlan, BranchPrefix, Checkout, Counts, Deed, Git, GitError, GitState, Head, Performed, Refusal,
    Repository, WithoutRepository,
};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::host::Host;

/// Long enough for the status of a large tree on a slow disk; hooks count too.
const LIMIT: Duration = Duration::from_mins(2);

const WITHOUT_GIT: &str =
    "run `sayso branch TASK --init` to make a repository here, or go on without: `sayso propose` needs no git";

fn git(host: &Host) -> Git {
    Git::new(host.environment.clone(), LIMIT)
}

fn prefix(host: &Host, task: &proto::BranchTask) -> Result<BranchPrefix, Failure> {
    Ok(task.prefix.clone().unwrap_or_else(|| host.branch_prefix()).parse()?)
}

/// How the repository stands.
pub(crate) fn state(host: &Host, task: &proto::BranchTask) -> Result<proto::GetBranchResponse, Failure> {
    host.refresh()?;
    let prefix = prefix(host, task)?;
    let found = git(host).state(&host.workspace)?;
    let line = |(name, text): (&str, String)| proto::Line { name: name.to_owned(), text, ..Default::default() };
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
            "a branch is the whole repository's, so files beside the workspace change too: {}",
            repository.root.display()
        ));
    }
    Ok((plan, notes))
}

/// What taking up a branch would do.
pub(crate) fn plan(host: &Host, task: &proto::BranchTask) -> Result<proto::PlanBranchResponse, Failure> {
    let (plan, notes) = planned(host, task)?;
    let object = plan_object(&plan, "planned");
    Ok(proto::PlanBranchResponse {
        branch: plan.branch().as_str().to_owned(),
        plan: object["plan"].as_str().unwrap_or_default().to_owned(),
        text: would(&plan),
        details_json: object.to_string(),
        notes,
        ..Default::default()
    })
}

/// Makes a branch, or goes to it. Nothing else happens to the tree meanwhile.
pub(crate) fn take_up(host: &Host, task: &proto::BranchTask) -> Result<proto::TakeUpBranchResponse, Failure> {
    let (plan, mut notes) = planned(host, task)?;
    let done = host.gate.holding(|workspace| git(host).perform(workspace, &plan))?;
    let paths =
        |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(|path| path.to_string_lossy().into_owned()).collect() };
    let mut object = plan_object(&plan, deed_name(done.deed));
    object["uncommitted"] = counts_object(Counts::of(&done.uncommitted));
    object["settled"] = json!(paths(&done.settled));
    object["appeared"] = json!(paths(&done.appeared));
    for path in &done.settled {
        notes.push(format!("`{}` was uncommitted before, and is not any more or in another way", path.display()));
    }
    for path in &done.appeared {
        notes.push(format!("`{}` is uncommitted now and was not before", path.display()));
    }
    Ok(proto::TakeUpBranchResponse {
        branch: plan.branch().as_str().to_owned(),
        deed: deed_name(done.deed).to_owned(),
        text: done_text(&plan, &done, &host.root),
        notes,
        details_json: object.to_string(),
        ..Default::default()
    })
}

/// What a plan would do, for a person.
fn would(plan: &BranchPlan) -> String {
    match plan {
        BranchPlan::AlreadyThere { branch } => format!("Already on {branch}."),
        BranchPlan::Create { branch, from } => {
            format!("Would make the branch {branch} from {from}; no file would be touched.")
        }
        BranchPlan::Switch { branch, from } => {
            format!(
                "Would switch from {from} to {branch}, unless uncommitted work is in the way, which git then names."
            )
        }
        BranchPlan::Initialise { branch } => format!("Would make a git repository here, on the branch {branch}."),
        BranchPlan::Refused { reason, .. } => reason.to_string(),
    }
}

/// What was done, for a person.
fn done_text(plan: &BranchPlan, done: &Performed, root: &Path) -> String {
    let branch = &done.branch;
    let first = match plan {
        BranchPlan::Create { from: Head::Unborn { .. }, .. } => {
            format!("On the new branch {branch}. Nothing is committed yet.")
        }
        BranchPlan::Create { from, .. } => format!("On the new branch {branch}, made from {from}."),
        BranchPlan::Switch { from, .. } => format!("Switched from {from} to {branch}."),
        BranchPlan::Initialise { .. } => {
            format!("Made a git repository in {}, on the branch {branch}. Nothing is committed yet.", root.display())
        }
        BranchPlan::AlreadyThere { .. } | BranchPlan::Refused { .. } => format!("Already on {branch}."),
    };
    let counts = counts_text(Counts::of(&done.uncommitted));
    let work = if !done.settled.is_empty() || !done.appeared.is_empty() {
        format!("Uncommitted now: {counts}.")
    } else if counts == NOTHING {
        "Nothing is uncommitted.".to_owned()
    } else {
        format!("Uncommitted work is as it was: {counts}.")
    };
    let back = match plan {
        BranchPlan::Create { from, .. } | BranchPlan::Switch { from, .. } => match from {
            Head::Branch { name, .. } => format!("`git switch {name}` goes back.\n"),
            Head::Detached { commit } => format!("`git switch --detach {commit}` goes back.\n"),
            Head::Unborn { .. } => String::new(),
        },
        _ => String::new(),
    };
    format!("{first}\n{work}\n{back}")
}

/// What there is to say of a state, line by line, the last one being what to do next.
fn state_lines(prefix: &BranchPrefix, state: &GitState) -> Vec<(&'static str, String)> {
    match state {
        GitState::NoGit => vec![
            ("Git", "the program `git` was not found".into()),
            ("Next", "install git, or go on without: `sayso propose` needs no git".into()),
        ],
        GitState::NotARepository => {
            vec![("Repository", "none: this directory is in no git repository".into()), ("Next", WITHOUT_GIT.into())]
        }
        GitState::Bare { directory } => vec![
            ("Repository", format!("{}, without a working tree here", directory.display())),
            ("Next", "go to a working tree; `git worktree add` makes one".into()),
        ],
        GitState::Repository(repository) => repository_lines(prefix, repository),
    }
}

fn repository_lines(prefix: &BranchPrefix, repository: &Repository) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Repository", repository.root.display().to_string())];
    if !repository.inside.as_os_str().is_empty() {
        lines.push((
            "Workspace",
            format!("its directory {}; a branch is the whole repository's", repository.inside.display()),
        ));
    }
    if let Checkout::Linked { main } = &repository.checkout {
        lines.push(("Worktree", format!("linked to {}", main.display())));
    }
    if let Some(superproject) = &repository.superproject {
        lines.push(("Submodule", format!("of {}", superproject.display())));
    }
    let upstream = repository.upstream.as_ref().map_or_else(String::new, |upstream| format!(", follows {upstream}"));
    lines.push((
        "Branch",
        match &repository.head {
            Head::Branch { name, .. } => format!("{name}{upstream}"),
            Head::Unborn { name } => format!("{name}, without a commit yet"),
            Head::Detached { .. } => format!("none: at commit {}, detached", repository.head),
        },
    ));
    lines.push(("Uncommitted", counts_text(repository.counts())));
    if let Some(operation) = repository.in_progress {
        lines.push(("In progress", operation.to_string()));
        lines.push(("Next", format!("{}; then `sayso branch TASK`", operation.ways_out())));
    } else if repository.counts().conflicted > 0 {
        lines.push(("Next", "settle the conflicted files and `git add` them; then `sayso branch TASK`".into()));
    } else if on_task_branch(prefix, repository) {
        lines.push(("Next", "this is a task's branch: `git diff` and `git commit`, as on any".into()));
    } else {
        let next =
            format!("`sayso branch TASK` makes {}TASK from here; uncommitted work stays as it is", prefix.as_str());
        lines.push(("Next", next));
    }
    lines
}

fn on_task_branch(prefix: &BranchPrefix, repository: &Repository) -> bool {
    repository.head.branch().is_some_and(|branch| branch.starts_with(prefix.as_str()))
}

const NOTHING: &str = "nothing";

fn counts_text(counts: Counts) -> String {
    let Counts { staged, unstaged, untracked, conflicted } = counts;
    let named = [(staged, "staged"), (unstaged, "unstaged"), (untracked, "untracked"), (conflicted, "conflicted")];
    let parts: Vec<String> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if parts.is_empty() { NOTHING.to_owned() } else { parts.join(", ") }
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

fn deed_name(deed: Deed) -> &'static str {
    match deed {
        Deed::AlreadyThere => "already_there",
        Deed::Created => "created",
        Deed::Switched => "switched",
        Deed::Initialised => "initialised",
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
