//! `sayso request show`: what a request says.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::pause_reason::Kind as Why;
use sayso_api::proto::section::NodeType;
use sayso_api::proto::{RequestStatus, RequestSummary, ShowRequestResponse};
use sayso_wire::{Head, ModelRequest};

use super::draw::{self, Extent, tokens};
use super::width::{self, percent};
use super::{Asking, mode, print};
use crate::diff::style::Styles;
use crate::failure::Failure;
use crate::history::ago;
use crate::state::now;
use crate::visible::visible;

pub(super) fn show(asking: &Asking<'_>, id: u64, full: bool, section: Option<&str>) -> Result<ExitCode, Failure> {
    let all = full || section.is_some();
    let request = proto::ShowRequestRequest {
        request: id,
        content_limit: all.then_some(u32::MAX),
        path: section.map(str::to_owned),
        values: true,
        ..Default::default()
    };
    let shown = asking.connected.block(asking.connected.client().show_request(request))?;
    if let (Some(path), true) = (section, shown.sections.is_empty()) {
        return Err(Failure::bad_input(format!("there is no section at `{}` in request {id}", visible(path)))
            .hint(format!("`sayso request show {id}` lists the paths")));
    }
    if asking.json(&shown)? {
        return Ok(ExitCode::SUCCESS);
    }
    let styles = asking.styles();
    let width = width::window();
    let mut text = heading(&shown, &styles);
    text.push('\n');
    let extent = if all { Extent::All } else { Extent::Some };
    let pinned: Vec<proto::Section> = shown.sections.iter().filter(|section| section.pinned && !all).cloned().collect();
    if !pinned.is_empty() {
        let total = shown.tokens.as_option().map_or(0, |tokens| tokens.count);
        let own = shown.pinned_tokens.as_option();
        let share = ratio(own.map_or(0, |tokens| tokens.count), total);
        styles.paint(&mut text, styles.hunk, &format!("Pinned · {} tokens · {}\n", tokens(own), percent(share)));
        text.push_str(&draw::sections(&pinned, extent, width, &styles).0);
        text.push('\n');
    }
    let count = shown.sections.len();
    let first = shown.captured_sections.filter(|_| !all).map_or(count, |first| count.min(first as usize));
    let (drawn, cut) = draw::sections(&shown.sections[..first], extent, width, &styles);
    text.push_str(&drawn);
    if first < count {
        let note = format!("\nThe first {first} of {count} sections, whose edits are saved: --full shows all.\n");
        styles.paint(&mut text, styles.note, &note);
    }
    if cut && !all {
        styles.paint(&mut text, styles.note, "\nSome is not shown: --full shows all, --section PATH one.\n");
    }
    if let (Some(_), [tool]) = (section, shown.sections.as_slice()) {
        text.push_str(&declaration(asking, id, tool)?);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All that a request says of a tool, of which a section shows the description; nothing of another section.
fn declaration(asking: &Asking<'_>, id: u64, tool: &proto::Section) -> Result<String, Failure> {
    if tool.node.as_known() != Some(NodeType::ToolSchema) {
        return Ok(String::new());
    }
    let body = asking.connected.block(asking.connected.client().request_body(id, proto::RequestBody::AsSent))?;
    let request = ModelRequest::new(id.to_string(), Head::new(""), body);
    let (Ok(target), Some(document)) = (request.at(&tool.raw_path), request.document()) else {
        return Ok(String::new());
    };
    let value: serde_json::Value = serde_json::from_slice(&document.value_bytes(target)).unwrap_or_default();
    let drawn = serde_json::to_string_pretty(&value).unwrap_or_default();
    Ok(drawn.lines().map(|line| format!("  │ {}\n", visible(line))).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a share is shown in percent")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Whether its upstream has turned it away, and nothing came of it since.
pub(super) fn is_turned_away(summary: &RequestSummary) -> bool {
    summary.turned_away.is_set() && summary.status.as_known() == Some(RequestStatus::Sent)
}

/// How a request stands, in a word.
pub(super) fn status(summary: &RequestSummary) -> String {
    match summary.status.as_known().unwrap_or_default() {
        RequestStatus::Unspecified => "unknown".to_owned(),
        RequestStatus::Seen => "seen".to_owned(),
        RequestStatus::Paused if summary.waiting => "paused".to_owned(),
        RequestStatus::Paused => "left behind".to_owned(),
        RequestStatus::Sent if is_turned_away(summary) => "turned away".to_owned(),
        RequestStatus::Sent => "sent".to_owned(),
        RequestStatus::Answered => {
            let status = summary.answer.as_option().map_or(0, |answer| answer.status);
            format!("answered {status}")
        }
        RequestStatus::Ended => "ended".to_owned(),
    }
}

/// Why a request waits, or waited.
pub(super) fn reason(why: &proto::PauseReason) -> String {
    match why.kind.as_known().unwrap_or_default() {
        Why::EveryTurn => "every turn is paused".to_owned(),
        Why::NextTurn => "the next turn was to be paused".to_owned(),
        Why::Capture => "its edits are saved when it is resumed".to_owned(),
        Why::Rule => format!("the rule `{}` says so", visible(why.rule.as_deref().unwrap_or_default())),
        Why::Retry => "an earlier one waited, and the agent sent it again".to_owned(),
        Why::Unspecified => "for a reason that this version does not know".to_owned(),
    }
}

/// Why a request has not been taken yet, and when it is sent again.
pub(crate) fn turned_away(by: &proto::RequestTurnedAway) -> String {
    let left = by.again_ms - now();
    // What is left of a second is one, too.
    let again = if left > 0 { format!("again in {}", ago(left + 999)) } else { "and being tried again".to_owned() };
    format!("{}; tried {}, {again}", visible(&by.message), times(by.tried))
}

pub(super) fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

/// All that is said of a request as a whole.
fn heading(shown: &ShowRequestResponse, styles: &Styles) -> String {
    let mut text = String::new();
    let Some(summary) = shown.summary.as_option() else { return text };
    styles.paint(&mut text, styles.title, &format!("Request {}", summary.request));
    styles.paint(&mut text, styles.note, &format!("  {}", status(summary)));
    styles.paint(&mut text, styles.number, &format!("  {} ago\n", ago(now() - summary.time_ms)));
    let seen = summary.seen.as_option();
    let endpoint = seen.map(|seen| format!("{} {} {}", seen.upstream, seen.method, seen.path)).unwrap_or_default();
    text.push_str(&format!("{}  {}\n", visible(&summary.conversation), visible(&endpoint)));
    let session = seen.and_then(|seen| seen.origin.as_option()).and_then(|origin| origin.session.as_deref());
    let model = seen.and_then(|seen| seen.model.as_deref());
    for (name, value) in [("model", model), ("session", session)] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", visible(value)));
        }
    }
    text.push_str(&format!("tokens: {}\n", budget(shown)));
    if let Some(redacted) = redacted(&shown.redacted) {
        text.push_str(&format!("redacted: {redacted}\n"));
    }
    if let Some(why) = summary.paused.as_option().filter(|_| summary.waiting) {
        text.push_str(&format!("waits: {}\n", reason(why)));
    }
    match summary.deadline_ms.filter(|_| summary.waiting) {
        Some(at) => text.push_str(&format!("deadline: {}\n", deadline(at))),
        // Nothing can be said to its agent before there is an answer.
        None if summary.waiting && !shown.streams => {
            text.push_str("deadline: not known; its agent wants the answer in one piece, and may give up\n");
        }
        None => {}
    }
    if let Some(turn) = summary.saved.as_option().and_then(|saved| saved.turn.as_option()) {
        for path in &turn.applied {
            text.push_str(&format!("edit of request {}, made again: {}\n", turn.from, visible(path)));
        }
        for dropped in &turn.dropped {
            text.push_str(&format!("edit of request {}, dropped: {}\n", turn.from, visible(dropped)));
        }
    }
    if let Some(by) = summary.turned_away.as_option().filter(|_| is_turned_away(summary)) {
        let cancel = format!("`sayso request cancel {}` ends it", summary.request);
        text.push_str(&format!("turned away: {}; {cancel}\n", turned_away(by)));
    }
    if let Some(first) = seen.and_then(|seen| seen.replay_of) {
        text.push_str(&format!("replay of: request {first}\n"));
    }
    if let Some(why) = shown.not_paused_because.as_ref().filter(|_| is_paused_by_mode(shown)) {
        text.push_str(&format!("not paused: {}\n", visible(why)));
    }
    if let Some(earlier) = summary.inherits {
        text.push_str(&format!("goes on with: your edits of request {earlier}\n"));
    }
    if summary.edited || summary.revision > 0 {
        let word = if summary.edited { "edited" } else { "as it came" };
        text.push_str(&format!("revision: {} ({word})\n", summary.revision));
    }
    if let Some(state) = shown.mode.as_option().filter(|_| summary.waiting) {
        text.push_str(&format!("mode: {}\n", mode::state_text(state, None)));
    }
    for note in [&shown.not_understood, &shown.fixed_because].into_iter().flatten() {
        styles.paint(&mut text, styles.note, &format!("note: {}\n", visible(note)));
    }
    text.push_str(&outcome(summary));
    text.push_str(&meaning(shown.consequences.as_option()));
    text.push_str(&problems(summary.request, &shown.problems));
    text
}

/// The credentials that are masked in what is shown; `None` if there are none.
pub(super) fn redacted(paths: &[String]) -> Option<String> {
    let count = match paths.len() {
        0 => return None,
        1 => "1 value".to_owned(),
        count => format!("{count} values"),
    };
    let paths: Vec<String> = paths.iter().map(|path| visible(path).into_owned()).collect();
    Some(format!("{count}: {}", paths.join(", ")))
}

/// When the agent of a request that waits gives up.
pub(super) fn deadline(at: i64) -> String {
    match at - now() {
        left @ 0.. => format!("its agent gives up in {}", ago(left)),
        over => format!("its agent should have given up {} ago", ago(-over)),
    }
}

/// Whether a turn would be paused where this request was sent.
fn is_paused_by_mode(shown: &ShowRequestResponse) -> bool {
    let mode = shown.mode.as_option().and_then(|state| state.mode.as_known());
    mode.is_some_and(|mode| mode != proto::RequestMode::Off)
}

/// The tokens, and how much of what the model reads they are.
fn budget(shown: &ShowRequestResponse) -> String {
    let own = shown.tokens.as_option();
    let most = shown.most_tokens.map(|most| {
        let share = ratio(own.map_or(0, |tokens| tokens.count), most);
        format!(" · {} of {}", percent(share), sayso_wire::tokens::Tokens::exact(most))
    });
    let answer = shown.most_answer_tokens.map(|most| format!(" · at most {most} in the answer"));
    format!("{}{}{}", tokens(own), most.unwrap_or_default(), answer.unwrap_or_default())
}

/// What became of saved edits, and of the request.
fn outcome(summary: &RequestSummary) -> String {
    let mut text = String::new();
    if let Some(saved) = summary.saved.as_option() {
        for path in &saved.applied {
            text.push_str(&format!("saved edit applied: {}\n", visible(path)));
        }
        for path in &saved.drifted {
            // A reason comes after where it is; without one, something else is there by now.
            let why = if path.contains(": ") {
                "saved edit not applied"
            } else {
                "saved edit not applied, as something else is there"
            };
            text.push_str(&format!("{why}: {}\n", visible(path)));
        }
    }
    if let Some(by) = summary.turned_away.as_option().filter(|_| !is_turned_away(summary)) {
        text.push_str(&format!("turned away before: {}, the last time as {}\n", times(by.tried), visible(&by.message)));
    }
    if let Some(answer) = summary.answer.as_option() {
        let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
        let usage = answer.usage.as_option().cloned().unwrap_or_default();
        let (input, output) = (count(usage.input), count(usage.output));
        text.push_str(&format!("answer: status {}, {input} tokens in, {output} out", answer.status));
        text.push_str(&format!(", first byte after {} ms, all after {} ms\n", answer.first_byte_ms, answer.total_ms));
        if let Some(error) = &answer.error {
            text.push_str(&format!("answer says: {}\n", visible(error)));
        }
        if let Some(problem) = &answer.problem {
            text.push_str(&format!("answer's problem: {}\n", visible(problem)));
        }
    }
    if let Some(end) = summary.ended.as_option() {
        text.push_str(&format!("ended: {}\n", visible(&end.message)));
    }
    text
}

/// What edits mean for the server.
pub(super) fn meaning(found: Option<&proto::RequestConsequences>) -> String {
    let Some(found) = found else { return String::new() };
    let mut text = String::new();
    let count = |tokens: Option<&proto::Tokens>| tokens.map_or(0, |tokens| tokens.count);
    let (before, after) = (count(found.before.as_option()), count(found.after.as_option()));
    if before != after {
        let fewer = before.cast_signed() - after.cast_signed();
        text.push_str(&format!("edits: {} than what came\n", change(fewer)));
    }
    if count(found.reread.as_option()) > 0 {
        let lost = found.breakpoints_lost.len();
        let kept = match lost {
            0 => String::new(),
            1 => "; 1 breakpoint of the cache is lost".to_owned(),
            lost => format!("; {lost} breakpoints of the cache are lost"),
        };
        let reread = tokens(found.reread.as_option());
        text.push_str(&format!("cache cost: {reread} tokens are read anew{kept}\n"));
    }
    for path in &found.sealed_after {
        text.push_str(&format!("may be refused: what is signed comes after an edit: {}\n", visible(path)));
    }
    if let Some(alternative) = &found.alternative {
        text.push_str(&format!("instead: {}\n", visible(alternative)));
    }
    text
}

/// How many tokens fewer something is.
pub(super) fn change(fewer: i64) -> String {
    let (count, word) = (fewer.unsigned_abs(), if fewer < 0 { "more" } else { "fewer" });
    let tokens = if count == 1 { "token" } else { "tokens" };
    format!("{count} {tokens} {word}")
}

/// What would be refused, and how to mend it. Repairs are counted over all problems.
pub(super) fn problems(request: u64, problems: &[proto::RequestProblem]) -> String {
    let mut text = String::new();
    let mut number = 0;
    for problem in problems {
        let word = if problem.blocks { "problem" } else { "note: it came like this" };
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", visible(&problem.path)) };
        text.push_str(&format!("{word}: {place}{}\n", visible(&problem.message)));
        for repair in &problem.repairs {
            number += 1;
            let (name, path) = (visible(&repair.name), visible(&repair.path));
            text.push_str(&format!("  repair {number}: {name} ({path}): `sayso request repair {request} {number}`\n"));
        }
    }
    text
}
