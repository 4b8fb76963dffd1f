//! Policy decisions about hypothetical actions.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_review::{
    CommandPreview, FileAccess, PathTarget, Policy, PolicyDecision, PolicyQuery, Principal, Script, ToolPreview, WsPath,
};

use crate::failure::Failure;

/// Evaluates the action of a request.
pub(crate) fn explain(
    request: &proto::ExplainPolicyRequest,
    policy: &Policy,
    root: &Path,
) -> Result<PolicyDecision, Failure> {
    use proto::oneof::explain_policy_request::Action;
    let principal = Principal { agent: request.agent.as_deref(), session: request.session.as_deref() };
    let targets = |paths: &[String]| paths.iter().flat_map(|path| targets(root, path)).collect::<Vec<_>>();
    let explain = |query: &PolicyQuery<'_>| policy.explain(query, &principal);
    let run = |command: &str| {
        let preview = CommandPreview::of(command, &WsPath::root(), root.to_str().unwrap_or("/"));
        // The preview finds uncertainties that parsing alone does not, such as unknown programs.
        let script = Script { uncertainties: preview.uncertainties.clone(), ..CommandPreview::read(command) };
        let (reads, writes) = (preview.reads(), resolved(root, preview.writes()));
        explain(&PolicyQuery::Run { script: &script, reads: &reads, writes: &writes })
    };
    Ok(match &request.action {
        None => return Err(BadMessage::new("action", "it is missing").into()),
        Some(Action::Write(write)) => explain(&PolicyQuery::Write { targets: &targets(&write.paths) }),
        Some(Action::Read(read)) => explain(&PolicyQuery::Read { targets: &targets(&read.paths) }),
        Some(Action::Run(command)) => run(command),
        Some(Action::Delegate(agent)) => explain(&PolicyQuery::Delegate { agent, tools: &[] }),
        Some(Action::Tool(call)) => {
            let not_json = |error| BadMessage::new("tool.arguments_json", format!("cannot parse it as JSON: {error}"));
            let preview =
                ToolPreview::of(&call.name, &serde_json::from_str(&call.arguments_json).map_err(not_json)?, None);
            let (mut reads, mut writes) = (Vec::new(), inferred_writes(&preview, root));
            let named = if preview.access == FileAccess::Reads { &mut reads } else { &mut writes };
            for target in targets(&preview.paths) {
                if !named.contains(&target) {
                    named.push(target);
                }
            }
            let mut decision = explain(&PolicyQuery::Tool { name: &call.name, reads: &reads, writes: &writes });
            if let Some(command) = &preview.command {
                // Rules for commands also apply to a tool that runs one.
                let run = run(command);
                if run.ruling > decision.ruling {
                    decision = run;
                }
            }
            decision
        }
    })
}

/// Targets of a path: as written, and with symbolic links resolved if that differs.
fn targets(root: &Path, text: &str) -> Vec<PathTarget> {
    let mut named = PathBuf::new();
    for part in root.join(text).components() {
        match part {
            Component::ParentDir => _ = named.pop(),
            Component::CurDir => {}
            part => named.push(part),
        }
    }
    let target = |path: &Path| match path.strip_prefix(root).ok().and_then(Path::to_str) {
        Some("") => PathTarget::Inside(WsPath::root()),
        Some(inside) => WsPath::parse(inside).map_or_else(|_| PathTarget::Outside(text.to_owned()), PathTarget::Inside),
        None => PathTarget::Outside(path.display().to_string()),
    };
    // A missing file is resolved through its nearest existing directory. Paths outside are not accessed.
    let inside = named.starts_with(root).then_some(&named);
    let real = inside.and_then(|named| {
        named.ancestors().find_map(|path| {
            let (real, rest) = (path.canonicalize().ok()?, named.strip_prefix(path).ok()?);
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
    });
    let mut targets = vec![target(&named)];
    targets.extend(real.map(|real| target(&real)).filter(|real| *real != targets[0]));
    targets
}

/// Adds the resolved forms of targets inside the workspace.
fn resolved(root: &Path, found: Vec<PathTarget>) -> Vec<PathTarget> {
    let resolve = |target: PathTarget| match &target {
        PathTarget::Inside(path) => targets(root, path.as_str()),
        PathTarget::Outside(_) | PathTarget::Unknown(_) => vec![target],
    };
    found.into_iter().flat_map(resolve).collect()
}

/// Targets of the change of files that is inferred from a tool's arguments.
fn inferred_writes(preview: &ToolPreview, root: &Path) -> Vec<PathTarget> {
    let Some(changes) = &preview.changes else { return Vec::new() };
    let found = RefCell::new(Vec::new());
    let locate = |text: &str| {
        found.borrow_mut().extend(targets(root, text));
        // The draft is discarded, so a path outside may be replaced by any valid one.
        Ok(WsPath::parse(text).unwrap_or_else(|_| WsPath::root()))
    };
    if let Err(error) = changes.draft(locate) {
        found.borrow_mut().push(PathTarget::Unknown(error.to_string()));
    }
    let mut found = found.into_inner();
    found.dedup();
    found
}
