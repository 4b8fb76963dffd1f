//! `sayso branch`: a git branch for a task, with uncommitted work left as it is.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sayso_workspace::git::{
    BranchName, BranchNameError, BranchPlan, BranchPrefix, Checkout, Counts, Deed, Environment, Git, GitError,
    GitState, Head, Performed, Refusal, Repository, WithoutRepository,
};
use serde_json::{Value, json};

use crate::cli::BranchArguments;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::state::State;
use crate::visible::visible;

/// Long enough for the status of a large tree on a slow disk; hooks count too.
const LIMIT: Duration = Duration::from_mins(2);

const WITHOUT_GIT: &str =
    "run `sayso branch TASK --init` to make a repository here, or go on without: `sayso propose` needs no git";

pub(crate) fn run(arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let prefix: BranchPrefix = match &arguments.prefix {
        Some(prefix) => prefix.parse()?,
        None => Config::load(&state)?.branch_prefix.value.parse()?,
    };
    if arguments.task.is_empty() { show(&state, &prefix, arguments) } else { take_up(&state, &prefix, arguments) }
}

fn git() -> Git {
    let variable = |name: &str| std::env::var_os(name);
    let path = variable("PATH").unwrap_or_default();
    Git::new(Environment { path, home: variable("HOME"), config_home: variable("XDG_CONFIG_HOME") }, LIMIT)
}

fn show(state: &State, prefix: &BranchPrefix, arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let found = git().state(&state.workspace()?)?;
    let mut output = Output::stdout();
    if arguments.place.json {
        output.json(&state_object(&state.root, prefix, &found))?;
    } else {
        let mut text = String::new();
        for (name, value) in state_lines(prefix, &found) {
            text.push_str(&format!("{name:<12} {}\n", visible(&value)));
        }
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn take_up(state: &State, prefix: &BranchPrefix, arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let branch = BranchName::for_task(prefix, &arguments.task.join(" "))?;
    let (git, workspace) = (git(), state.workspace()?);
    let without = if arguments.init { WithoutRepository::Initialise } else { WithoutRepository::Refuse };
    let plan = git.plan(&workspace, &branch, without)?;
    if let BranchPlan::Refused { reason, .. } = plan {
        return Err(GitError::from(reason).into());
    }
    state.tell_where();
    if matches!(plan, BranchPlan::Switch { .. })
        && let GitState::Repository(repository) = git.state(&workspace)?
        && !repository.inside.as_os_str().is_empty()
    {
        say(&format!(
            "note: a branch is the whole repository's, so files beside the workspace change too: {}",
            repository.root.display()
        ));
    }
    let mut output = Output::stdout();
    if arguments.dry_run {
        if arguments.place.json {
            output.json(&plan_object(&plan, "planned"))?;
        } else {
            output.write(format!("{}\nNothing was done: --dry-run.\n", would(&plan)).as_bytes())?;
        }
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    // Switching changes files: not while a change is carried out, and not before one that was interrupted is settled.
    let switches = matches!(plan, BranchPlan::Switch { .. }) && state.has_history();
    let engine = switches.then(|| state.engine()).transpose()?;
    let done = git.perform(&workspace, &plan)?;
    drop(engine);
    if arguments.place.json {
        let mut object = plan_object(&plan, deed_name(done.deed));
        object["uncommitted"] = counts_object(Counts::of(&done.uncommitted));
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        object["settled"] = json!(paths(&done.settled));
        object["appeared"] = json!(paths(&done.appeared));
        output.json(&object)?;
    } else {
        output.write(done_text(&plan, &done, &state.root).as_bytes())?;
    }
    output.finish()?;
    for path in &done.settled {
        say(&format!("note: `{}` was uncommitted before, and is not any more or in another way", path.display()));
    }
    for path in &done.appeared {
        say(&format!("note: `{}` is uncommitted now and was not before", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a plan would do, for a person.
fn would(plan: &BranchPlan) -> String {
    let text = match plan {
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
    };
    visible(&text).into_owned()
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
    format!("{first}\n{work}\n{back}").lines().map(|line| format!("{}\n", visible(line))).collect()
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

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let failure = Self::of(error.kind(), error.to_string());
        match (&error, error.hint()) {
            (GitError::Refused(Refusal::NotARepository), _) => failure.hint(WITHOUT_GIT),
            (_, Some(hint)) => failure.hint(hint),
            (_, None) => failure,
        }
    }
}

impl From<BranchNameError> for Failure {
    fn from(error: BranchNameError) -> Self {
        Self::of(error.kind(), error.to_string()).hint(error.hint())
    }
}
