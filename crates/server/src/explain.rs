//! What policy says to something that nobody has asked for yet, and why.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_review::{Act, CommandPreview, Place, Policy, Ruled, Script, ToolPreview, Touch, Who, WsPath};

use crate::failure::Failure;

/// Says what policy makes of an act.
pub(crate) fn explain(request: &proto::ExplainPolicyRequest, policy: &Policy, root: &Path) -> Result<Ruled, Failure> {
    use proto::oneof::explain_policy_request::Act as Asked;
    let who = Who { agent: request.agent.as_deref(), session: request.session.as_deref() };
    let places = |paths: &[String]| paths.iter().flat_map(|path| places(root, path)).collect::<Vec<_>>();
    let explain = |act: &Act<'_>| policy.explain(act, &who);
    let run = |command: &str| {
        let preview = CommandPreview::of(command, &WsPath::root(), root.to_str().unwrap_or("/"));
        // The preview knows more reasons to doubt than the words alone give.
        let script = Script { doubts: preview.doubts.clone(), ..CommandPreview::read(command) };
        let (reads, writes) = (preview.reads(), followed(root, preview.writes()));
        explain(&Act::Run { script: &script, reads: &reads, writes: &writes })
    };
    Ok(match &request.act {
        None => return Err(BadMessage::new("act", "it is missing").into()),
        Some(Asked::Write(paths_)) => explain(&Act::Write { places: &places(&paths_.paths) }),
        Some(Asked::Read(paths_)) => explain(&Act::Read { places: &places(&paths_.paths) }),
        Some(Asked::Run(command)) => run(command),
        Some(Asked::Delegate(to)) => explain(&Act::Delegate { agent: to, tools: &[] }),
        Some(Asked::Tool(call)) => {
            let not_json = |error| BadMessage::new("tool.arguments_json", format!("it is not JSON: {error}"));
            let preview =
                ToolPreview::of(&call.name, &serde_json::from_str(&call.arguments_json).map_err(not_json)?, None);
            let (mut reads, mut writes) = (Vec::new(), changed(&preview, root));
            let named = if preview.touch == Touch::Reads { &mut reads } else { &mut writes };
            for place in places(&preview.paths) {
                if !named.contains(&place) {
                    named.push(place);
                }
            }
            let mut ruled = explain(&Act::Tool { name: &call.name, reads: &reads, writes: &writes });
            if let Some(command) = &preview.command {
                // A rule about a command holds, whoever hands it to a shell.
                let run = run(command);
                if run.ruling > ruled.ruling {
                    ruled = run;
                }
            }
            ruled
        }
    })
}

/// Where a path is as it is named, and where it really is if links lead elsewhere.
fn places(root: &Path, text: &str) -> Vec<Place> {
    let mut named = PathBuf::new();
    for part in root.join(text).components() {
        match part {
            Component::ParentDir => _ = named.pop(),
            Component::CurDir => {}
            part => named.push(part),
        }
    }
    let place = |path: &Path| match path.strip_prefix(root).ok().and_then(Path::to_str) {
        Some("") => Place::Inside(WsPath::root()),
        Some(inside) => WsPath::parse(inside).map_or_else(|_| Place::Outside(text.to_owned()), Place::Inside),
        None => Place::Outside(path.display().to_string()),
    };
    // What is not there yet is in a directory that is. What is outside is not looked at.
    let inside = named.starts_with(root).then_some(&named);
    let real = inside.and_then(|named| {
        named.ancestors().find_map(|path| {
            let (real, rest) = (path.canonicalize().ok()?, named.strip_prefix(path).ok()?);
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
    });
    let mut places = vec![place(&named)];
    places.extend(real.map(|real| place(&real)).filter(|real| *real != places[0]));
    places
}

/// Places as they are named, and where they really are if links lead elsewhere.
fn followed(root: &Path, found: Vec<Place>) -> Vec<Place> {
    let follow = |place: Place| match &place {
        Place::Inside(path) => places(root, path.as_str()),
        Place::Outside(_) | Place::Unknown(_) => vec![place],
    };
    found.into_iter().flat_map(follow).collect()
}

/// The files that a tool's arguments look like changing.
fn changed(preview: &ToolPreview, root: &Path) -> Vec<Place> {
    let Some(changes) = &preview.changes else { return Vec::new() };
    let found = RefCell::new(Vec::new());
    let locate = |text: &str| {
        found.borrow_mut().extend(places(root, text));
        // What is outside has been noted, and no other use is made of the path.
        Ok(WsPath::parse(text).unwrap_or_else(|_| WsPath::root()))
    };
    if let Err(error) = changes.draft(locate) {
        found.borrow_mut().push(Place::Unknown(error.to_string()));
    }
    let mut found = found.into_inner();
    found.dedup();
    found
}
