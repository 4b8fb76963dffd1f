//! `sayso request list` and `sayso request monitor`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::RequestSummary;

use super::draw::{self, Extent, tokens};
use super::show::{deadline, is_turned_away, reason, status, times, turned_away};
use super::width;
use super::{Asking, print};
use crate::failure::Failure;
use crate::history::ago;
use crate::output::say;
use crate::state::now;
use crate::visible::visible;
use crate::watch::clock;

/// Requests that are asked for in one call.
const SOME: usize = 1_000;

pub(super) fn list(
    asking: &Asking<'_>,
    waiting: bool,
    session: Option<&str>,
    number: usize,
) -> Result<ExitCode, Failure> {
    let session = asking.session(session)?;
    let client = asking.connected.client();
    let mut requests: Vec<RequestSummary> = Vec::new();
    while requests.len() < number {
        let request = proto::ListRequestsRequest {
            waiting,
            session: session.clone(),
            before: requests.last().map(|request| request.request).filter(|_| !waiting),
            limit: u32::try_from((number - requests.len()).min(SOME)).unwrap_or(u32::MAX),
            ..Default::default()
        };
        let more = asking.connected.block(client.list_requests(request))?.requests;
        let over = more.is_empty() || waiting;
        requests.extend(more);
        if over {
            break;
        }
    }
    requests.truncate(number);
    if asking.json(&proto::ListRequestsResponse { requests: requests.clone(), ..Default::default() })? {
        return Ok(ExitCode::SUCCESS);
    }
    if requests.is_empty() && number > 0 {
        say(if waiting {
            "No request waits. `sayso request mode pause-next` has the next turn wait."
        } else {
            "Waiting for a request. Run an agent with `sayso run -- AGENT`, and what it sends is listed here."
        });
        return Ok(ExitCode::SUCCESS);
    }
    let styles = asking.styles();
    let digits = requests.iter().map(|request| request.request.to_string().len()).max().unwrap_or(1);
    let words = requests.iter().map(|request| status(request).len()).max().unwrap_or(0);
    let names = requests.iter().map(|request| visible(&request.conversation).chars().count()).max().unwrap_or(0);
    let before = digits + words + 6 + 4;
    let widest = requests.iter().map(|request| about(request).chars().count()).max().unwrap_or(0);
    // Where there is too little room for one line, what there is to say comes beneath.
    let narrow = width::known().is_some_and(|window| before + 2 + names + 2 + widest > window);
    let mut text = String::new();
    for request in &requests {
        styles.paint(&mut text, styles.title, &format!("{:>digits$}", request.request));
        let style = if request.waiting { styles.note } else { styles.hunk };
        styles.paint(&mut text, style, &format!("  {:<words$}", status(request)));
        styles.paint(&mut text, styles.number, &format!("  {:>6}", ago(now() - request.time_ms)));
        let name = visible(&request.conversation);
        if narrow {
            let (room, indent) = (width::window().saturating_sub(before + 2), " ".repeat(digits));
            text.push_str(&format!("  {}\n{indent}  {}\n", width::short(&name, room), about(request)));
        } else {
            text.push_str(&format!("  {name:<names$}  {}\n", about(request)));
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What there is to say of a request besides whose it is.
fn about(request: &RequestSummary) -> String {
    // What was sent; of a request that was sent as it came, or not at all, what came.
    let came = request.seen.as_option().and_then(|seen| seen.body.as_option());
    let size = request.sent.as_option().or(came).map_or(0, |body| body.size);
    let mut parts = vec![format!("{} kB", size.div_ceil(1000))];
    if let Some(first) = request.seen.as_option().and_then(|seen| seen.replay_of) {
        parts.push(format!("replay of {first}"));
    }
    if request.edited {
        let inherited = request.inherits.map(|earlier| format!("edited, as request {earlier}"));
        parts.push(inherited.unwrap_or_else(|| "edited".to_owned()));
    }
    if let Some(why) = request.paused.as_option().filter(|_| request.waiting) {
        parts.push(reason(why));
    }
    if let Some(at) = request.deadline_ms.filter(|_| request.waiting) {
        parts.push(deadline(at));
    }
    if let Some(by) = request.turned_away.as_option() {
        parts.push(if is_turned_away(request) { turned_away(by) } else { format!("turned away {}", times(by.tried)) });
    }
    if let Some(usage) = request.answer.as_option().and_then(|answer| answer.usage.as_option()) {
        let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
        parts.push(format!("{} tokens in, {} out", count(usage.input), count(usage.output)));
    }
    if let Some(problem) =
        request.answer.as_option().and_then(|answer| answer.problem.as_deref().or(answer.error.as_deref()))
    {
        parts.push(visible(problem).into_owned());
    }
    if let Some(end) = request.ended.as_option() {
        parts.push(visible(&end.message).into_owned());
    }
    parts.join(", ")
}

pub(super) fn monitor(asking: &Asking<'_>, id: Option<u64>) -> Result<ExitCode, Failure> {
    let request =
        proto::ListSubagentsRequest { request: id, content_limit: id.is_none().then_some(0), ..Default::default() };
    let listed = asking.connected.block(asking.connected.client().list_subagents(request))?;
    if let (Some(id), true) = (id, listed.runs.is_empty()) {
        return Err(Failure::bad_input(format!("request {id} is not the last one of a subagent's run"))
            .hint("`sayso request monitor` lists the runs"));
    }
    if asking.json(&listed)? {
        return Ok(ExitCode::SUCCESS);
    }
    if listed.runs.is_empty() {
        say(&format!(
            "No subagent of a session that goes on has sent anything since the engine started; the last {} runs are shown.",
            listed.most
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let styles = asking.styles();
    let mut text = String::new();
    for run in &listed.runs {
        styles.paint(&mut text, styles.title, &run.request.to_string());
        let count = if run.requests == 1 { "1 request".to_owned() } else { format!("{} requests", run.requests) };
        let model = visible(run.model.as_deref().unwrap_or("unknown model"));
        let name = visible(&run.conversation);
        text.push_str(&format!("  {name} · {}  {model}, {count}, ", clock(run.started_ms)));
        text.push_str(&format!("{} tokens\n", tokens(run.tokens.as_option())));
        if id.is_some() {
            text.push('\n');
            text.push_str(&draw::sections(&run.sections, Extent::Some, width::window(), &styles).0);
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
