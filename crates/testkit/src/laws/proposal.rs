//! Laws of proposals from untrusted input.

use std::collections::BTreeSet;

use sayso_review::{
    Answer, Decider, FileMode, FileState, Observation, ObservedFile, Preview, Proposal, Verdict, WsPath,
};

/// Checks parsing, preview and decision of a proposal on a tree whose files have this content.
pub fn proposal_laws(input: &[u8], content: &[u8]) {
    let Ok(proposal) = Proposal::parse(input) else { return };
    let text = serde_json::to_vec(&proposal).expect("it has a JSON form");
    assert_eq!(Proposal::parse(&text).expect("it can be read again"), proposal);
    let Ok(draft) = proposal.draft(WsPath::parse) else { return };
    let paths = draft.paths();
    assert!(paths.iter().all(|path| !path.is_root()), "the workspace itself is no file");
    for sight in
        [sight(&paths, |_| None), sight(&paths, |_| Some(content)), sight(&paths, |path| alternate(path, content))]
    {
        preview_laws(&draft.preview(&sight), &sight);
    }
}

fn alternate<'c>(path: &WsPath, content: &'c [u8]) -> Option<&'c [u8]> {
    path.as_str().len().is_multiple_of(2).then_some(content)
}

fn sight<'c>(paths: &BTreeSet<WsPath>, content: impl Fn(&WsPath) -> Option<&'c [u8]>) -> Observation {
    let seen = |path: &WsPath| {
        let state = content(path).map_or(FileState::Absent, |content| FileState::file(content, FileMode::PLAIN));
        ObservedFile { location: path.clone(), found: Ok(state), link: None, facts: Vec::new() }
    };
    Observation { files: paths.iter().map(|path| (path.clone(), seen(path))).collect(), umask: 0o022 }
}

fn preview_laws(preview: &Preview, sight: &Observation) {
    serde_json::to_vec(&preview.object()).expect("it has a JSON form");
    for file in preview.files() {
        assert!(file.problem.is_some() || !file.unified().is_empty(), "every file has a problem or a diff");
    }
    let decide = |answer| {
        let verdict =
            Verdict { preview: preview.hash(), answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        preview.decide(&verdict)
    };
    let denied = decide(Answer::Deny { reason: None }).expect("anything can be denied");
    assert!(
        denied.plan.is_empty() && denied.agent_message.starts_with(sayso_review::DENIED),
        "{}",
        denied.agent_message
    );
    let approved = decide(Answer::Approve);
    if preview.problems().next().is_some() {
        assert!(approved.is_err(), "an approval fails if a file has a problem");
        return;
    }
    let plan = approved.expect("a change without problems can be approved").plan;
    let mut paths = BTreeSet::new();
    for step in plan.steps() {
        assert!(paths.insert(&step.path), "one step a path");
        assert!(step.before != step.after, "a step has an effect");
        let seen = sight.files.get(&step.path).expect("only observed files change");
        assert_eq!(seen.found.as_ref(), Ok(&step.before), "a step starts from what was seen");
    }
    for step in plan.steps().iter().filter(|step| step.after != FileState::Absent) {
        assert!(!paths.iter().any(|path| **path != step.path && path.is_within(&step.path) && plan_makes(&plan, path)));
    }
}

/// `true` if a plan creates or keeps a file at the path.
fn plan_makes(plan: &sayso_review::Plan, path: &WsPath) -> bool {
    plan.steps().iter().any(|step| step.path == *path && step.after != FileState::Absent)
}
