//! What happens to requests to models, in one line each.

use sayso_api::proto::oneof::request_event::Step;
use sayso_api::proto::oneof::request_look::Looked;
use sayso_api::proto::{OverridesSet, RequestEditKind, RequestEvent, RequestLook, RequestModeSet, Resumer};
use sayso_review::RequestMode;

use crate::request::turned_away;
use crate::visible::visible;

/// What happened to a request.
pub(super) fn step(event: &RequestEvent) -> String {
    let Some(step) = &event.step else { return "did something that this version does not know".to_owned() };
    match step {
        Step::Seen(seen) => {
            let agent = seen.origin.as_option().and_then(|origin| origin.agent.as_deref()).unwrap_or("an agent");
            let to = seen.model.as_deref().unwrap_or(&seen.upstream);
            let size = seen.body.as_option().map_or(0, |body| body.size);
            format!("by {} to {}: {size} bytes", visible(agent), visible(to))
        }
        Step::Paused(_) => format!("waits: `sayso request show {}`", event.request),
        Step::Edited(edited) => {
            let what = match edited.edit.as_known().unwrap_or_default() {
                RequestEditKind::Set | RequestEditKind::Patch | RequestEditKind::Unspecified => "edited",
                RequestEditKind::Delete => "without something",
                RequestEditKind::Restore => "restored",
                RequestEditKind::Append => "has another message",
                RequestEditKind::Shrink => "shrunk",
                RequestEditKind::Repair => "mended",
                RequestEditKind::Pin => "pinned or unpinned",
                RequestEditKind::Undo => "the last edit taken back",
                RequestEditKind::Redo => "an edit made again",
                RequestEditKind::Reset => "is as it came",
            };
            // What is about all of it has no path.
            let place = if edited.path.is_empty() { String::new() } else { format!(": {}", visible(&edited.path)) };
            format!("{what}{place}")
        }
        Step::Resumed(resumed) if resumed.by.as_known() == Some(Resumer::Retry) => "goes on, as before".to_owned(),
        Step::Resumed(_) => "goes on".to_owned(),
        Step::Sent(sent) => {
            let applied = sent.saved.as_option().map_or(0, |saved| saved.applied.len());
            let drifted = sent.saved.as_option().map_or(0, |saved| saved.drifted.len());
            let edited = if sent.body.is_set() { "sent with edits" } else { "sent as it came" };
            let saved = if applied > 0 { format!(", {applied} of them saved ones") } else { String::new() };
            let missed = if drifted > 0 { format!(", {drifted} saved ones did not fit") } else { String::new() };
            let turn = sent.saved.as_option().and_then(|saved| saved.turn.as_option()).map(|turn| {
                let dropped = turn
                    .dropped
                    .iter()
                    .map(|path| format!("; edit of request {} dropped: {}", turn.from, visible(path)));
                let made =
                    if turn.applied.is_empty() { String::new() } else { format!(", those of request {}", turn.from) };
                format!("{made}{}", dropped.collect::<String>())
            });
            format!("{edited}{saved}{}{missed}", turn.unwrap_or_default())
        }
        Step::TurnedAway(by) => format!("turned away: {}", turned_away(by)),
        Step::Answered(answer) => {
            let problem =
                answer.problem.as_deref().or(answer.error.as_deref()).map(|problem| format!(": {}", visible(problem)));
            format!("answered with {} after {} ms{}", answer.status, answer.total_ms, problem.unwrap_or_default())
        }
        Step::Ended(end) => format!("ended: {}", visible(&end.message)),
    }
}

/// How requests are treated from here on.
pub(super) fn mode(set: &RequestModeSet) -> String {
    let of = set.session.as_deref().map_or("all sessions".to_owned(), |of| format!("session {}", visible(of)));
    let mode = set.mode.as_known().and_then(Option::<RequestMode>::from);
    let label = mode.map_or("no mode of its own", RequestMode::label);
    let next = match (set.pause_next, set.capture_next) {
        (_, true) => ", captures the next turn",
        (true, false) => ", pauses the next turn",
        (false, false) => "",
    };
    format!("requests of {of}: {label}{next}")
}

/// What became of saved edits.
pub(super) fn overrides(set: &OverridesSet) -> String {
    let of = set.session.as_deref().map(|of| format!(" {}", visible(of))).unwrap_or_default();
    format!("saved edits of the {}{of}: {}", visible(&set.scope), set.count)
}

/// What somebody looked at.
pub(super) fn look(look: &RequestLook) -> String {
    match &look.looked {
        Some(Looked::Diff(diff)) => format!("the diff of request {} was looked at", diff.request),
        Some(Looked::Monitor(monitor)) => {
            format!("what subagents sent was looked at, up to request {}", monitor.through)
        }
        Some(Looked::Trimmed(trimmed)) => {
            let what = if trimmed.runs == 1 { "run of a subagent is" } else { "runs of subagents are" };
            format!("{} earlier {what} no longer in the monitor", trimmed.runs)
        }
        None => "something was looked at that this version does not know".to_owned(),
    }
}
