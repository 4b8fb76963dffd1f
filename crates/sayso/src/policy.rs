//! `sayso policy explain`: what would happen, and why.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use sayso_gate::History;
use sayso_review::{
    Act, CommandPreview, Defaults, Layer, Part, Place, Policy, Ruled, Ruling, Script, Standing, ToolPreview, Touch,
    Who, WsPath,
};
use serde_json::{Value, json};

use crate::cli::{Asked, Explain, PolicyArguments, PolicyCommand};
use crate::config::{Config, show};
use crate::failure::Failure;
use crate::output::Output;
use crate::state::{REFUSED, State};
use crate::terminal::{Palette, Terminal};
use crate::visible::visible;

/// The column in which rules stand, beneath what they are about.
const BY: usize = 19;

pub(crate) fn run(arguments: &PolicyArguments) -> Result<ExitCode, Failure> {
    let PolicyCommand::Explain(arguments) = &arguments.command;
    let state = State::find(&arguments.place)?;
    let mut config = Config::load(&state)?;
    if let (Some(session), Some(reader)) = (&arguments.session, state.reader()?)
        && let Some(record) = History::new(&reader).session(session)?
    {
        // What was decided for the rest of the session counts there, as it does for the engine.
        let (file, rules) = (format!("session {session}"), record.rules);
        config.layers.push(Layer { file, standing: Standing::Full, defaults: Defaults::default(), rules });
    }
    let policy = config.policy()?;
    let (ruled, title) = judge(arguments, &policy, &state.root)?;
    let mut output = Output::stdout();
    if arguments.place.json {
        let mut object = json!(ruled);
        object["ignored_rules"] = json!(policy.ignored());
        object["workspace_file"] = json!(config.trust);
        output.json(&object)?;
    } else {
        let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
        let mut text = text(&ruled, &title, terminal);
        if !policy.ignored().is_empty() || matches!(config.trust, crate::config::Trust::Changed) {
            text.push_str(&format!("\n{}\n", show::standing(config.trust).unwrap_or_default()));
        }
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(if ruled.ruling == Ruling::Deny { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn judge(arguments: &Explain, policy: &Policy, root: &Path) -> Result<(Ruled, String), Failure> {
    let who = Who { agent: arguments.agent.as_deref(), session: arguments.session.as_deref() };
    let places = |paths: &[String]| paths.iter().flat_map(|path| places(root, path)).collect::<Vec<_>>();
    let explain = |act: &Act<'_>| policy.explain(act, &who);
    let run = |command: &str| {
        let preview = CommandPreview::of(command, &WsPath::root(), root.to_str().unwrap_or("/"));
        // The preview knows more reasons to doubt than the words alone give.
        let script = Script { doubts: preview.doubts.clone(), ..Script::parse(command) };
        let (reads, writes) = (preview.reads(), followed(root, preview.writes()));
        explain(&Act::Run { script: &script, reads: &reads, writes: &writes })
    };
    Ok(match &arguments.asked {
        Asked::Write { paths } => {
            (explain(&Act::Write { places: &places(paths) }), format!("write {}", paths.join(" ")))
        }
        Asked::Read { paths } => (explain(&Act::Read { places: &places(paths) }), format!("read {}", paths.join(" "))),
        Asked::Run { command } => (run(command), format!("run {command}")),
        Asked::Tool { name, args } => {
            let arguments: Value = serde_json::from_str(args).map_err(|error| {
                Failure::bad_input("the tool's arguments are not understood")
                    .why(&error)
                    .hint("give --args one JSON object")
            })?;
            let preview = ToolPreview::of(name, &arguments, None);
            let (mut reads, mut writes) = (Vec::new(), changed(&preview, root));
            let named = if preview.touch == Touch::Reads { &mut reads } else { &mut writes };
            for place in places(&preview.paths) {
                if !named.contains(&place) {
                    named.push(place);
                }
            }
            let mut ruled = explain(&Act::Tool { name, reads: &reads, writes: &writes });
            if let Some(command) = &preview.command {
                // A rule about a command holds, whoever hands it to a shell.
                let run = run(command);
                if run.ruling > ruled.ruling {
                    ruled = run;
                }
            }
            (ruled, format!("tool {name}"))
        }
        Asked::Delegate { to } => (explain(&Act::Delegate { agent: to, tools: &[] }), format!("delegate {to}")),
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
    // What is not there yet is in a directory that is.
    let real = named.ancestors().find_map(|path| {
        let rest = named.strip_prefix(path).ok()?;
        Some(path.canonicalize().ok()?.join(rest))
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

fn text(ruled: &Ruled, title: &str, terminal: Terminal) -> String {
    let mut text = format!("{}  {}\n", styled(ruled.ruling, 0, terminal), visible(title));
    text.push_str(&format!("by {}\n", visible(&ruled.by.to_string())));
    if let Some(reason) = &ruled.reason {
        text.push_str(&format!("reason: {}\n", visible(reason)));
    }
    let several = ruled.parts.len() > 1;
    if several {
        text.push_str("\nThe strictest of its parts counts:\n");
    }
    for part in &ruled.parts {
        if several {
            let Part { access, what, ruling, by, .. } = part;
            let word = styled(*ruling, 5, terminal);
            text.push_str(&format!("  {word}  {:<8}  {}\n", access.name(), visible(what)));
            text.push_str(&format!("{:BY$}{}\n", "", visible(&by.to_string())));
        } else if !part.others.is_empty() {
            text.push_str("\nOther rules about it:\n");
        }
        let indent = if several { format!("{:BY$}not ", "") } else { "  ".to_owned() };
        for other in &part.others {
            let line = format!("{} by {}: {}", other.then, other.rule, other.why);
            text.push_str(&format!("{indent}{}\n", visible(&line)));
        }
    }
    text
}

/// The word of a ruling, in its colour where there are colours.
fn styled(ruling: Ruling, width: usize, terminal: Terminal) -> String {
    let word = format!("{:<width$}", ruling.name());
    if terminal.palette == Palette::None {
        return word;
    }
    let colour = match ruling {
        Ruling::Allow => AnsiColor::Green,
        Ruling::Later => AnsiColor::Cyan,
        Ruling::Ask => AnsiColor::Yellow,
        Ruling::Deny => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{word}{style:#}")
}
