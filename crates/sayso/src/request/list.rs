//! `sayso request list` and `sayso request monitor`.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::request::{RequestQuery, RequestSummary, SubagentQuery};
use sayso_present::escape::escape_unprintable;
use sayso_present::request::{SectionExtent, render_costs, render_sections, request_details, run_heading, status_word};
use sayso_present::span::{Style, StyledText};
use sayso_present::words::{format_age, truncate};

use super::{RequestCommandContext, window};
use crate::error::CliError;
use crate::output::{Output, say};
use crate::workspace_location::now;

/// Requests in one call.
const PAGE_SIZE: usize = 1_000;
/// Columns of the age.
const AGE_COLUMNS: usize = 6;

pub(super) fn list(
    context: &RequestCommandContext<'_>,
    waiting: bool,
    session: Option<&str>,
    number: usize,
) -> Result<ExitCode, CliError> {
    let session = context.session(session)?;
    let requests = fetch(context, waiting, session.as_deref(), number)?;
    let requests_message = || requests.iter().map(proto::RequestSummary::from).collect();
    if context.print_json_of(|| proto::ListRequestsResponse { requests: requests_message(), ..Default::default() })? {
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
    let mut output = Output::stdout();
    output.styled(&lines(&requests), context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cost(context: &RequestCommandContext<'_>, session: Option<&str>) -> Result<ExitCode, CliError> {
    let session = context.session(session)?;
    let costs = context.engine.block(context.engine.client().request_costs(session.as_deref(), 0))?;
    if context.print_json_of(|| proto::GetCostResponse::from(&costs))? {
        return Ok(ExitCode::SUCCESS);
    }
    if costs.sessions.is_empty() {
        say("No request has reported its tokens yet. `sayso run -- AGENT` records what an agent sends.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut output = Output::stdout();
    output.styled(&render_costs(&costs), context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn fetch(
    context: &RequestCommandContext<'_>,
    held: bool,
    session: Option<&str>,
    number: usize,
) -> Result<Vec<RequestSummary>, CliError> {
    let client = context.engine.client();
    let mut requests: Vec<RequestSummary> = Vec::new();
    while requests.len() < number {
        let query = RequestQuery {
            held,
            session: session.map(str::to_owned),
            before: requests.last().map(|request| request.record.request).filter(|_| !held),
            limit: u32::try_from((number - requests.len()).min(PAGE_SIZE)).unwrap_or(u32::MAX),
        };
        let page = context.engine.block(client.list_requests(&query))?;
        // Held requests come all at once.
        let is_last = page.is_empty() || held;
        requests.extend(page);
        if is_last {
            break;
        }
    }
    requests.truncate(number);
    Ok(requests)
}

/// One line for each request, or two in a narrow window.
fn lines(requests: &[RequestSummary]) -> StyledText {
    let now = now();
    let digits = requests.iter().map(|request| request.record.request.to_string().len()).max().unwrap_or(1);
    let status_width = requests.iter().map(|request| status_word(request).len()).max().unwrap_or(0);
    let name_width = |request: &RequestSummary| escape_unprintable(&request.conversation).chars().count();
    let names = requests.iter().map(name_width).max().unwrap_or(0);
    let columns_before_name = digits + status_width + AGE_COLUMNS + 4;
    let widest = requests.iter().map(|request| request_details(request, now).chars().count()).max().unwrap_or(0);
    let is_narrow = window::known_width().is_some_and(|window| columns_before_name + 2 + names + 2 + widest > window);
    let mut text = StyledText::new();
    for request in requests {
        text.push(Style::Title, format!("{:>digits$}", request.record.request));
        let style = if request.held { Style::Note } else { Style::Accent };
        text.push(style, format!("  {:<status_width$}", status_word(request)));
        text.push(Style::Dim, format!("  {:>AGE_COLUMNS$}", format_age(now - request.record.time)));
        let (name, details) = (escape_unprintable(&request.conversation), request_details(request, now));
        if is_narrow {
            let room = window::width().saturating_sub(columns_before_name + 2);
            text.plain(format!("  {}\n{}  {details}\n", truncate(&name, room), " ".repeat(digits)));
        } else {
            text.plain(format!("  {name:<names$}  {details}\n"));
        }
    }
    text
}

pub(super) fn monitor(context: &RequestCommandContext<'_>, id: Option<u64>) -> Result<ExitCode, CliError> {
    let query = SubagentQuery { request: id, session: None, content_limit: id.is_none().then_some(0) };
    let listed = context.engine.block(context.engine.client().list_subagents(&query))?;
    if let (Some(id), true) = (id, listed.runs.is_empty()) {
        return Err(CliError::invalid_input(format!("request {id} is not the last one of a subagent's run"))
            .hint("`sayso request monitor` lists the runs"));
    }
    if context.print_json_of(|| proto::ListSubagentsResponse::from(&listed))? {
        return Ok(ExitCode::SUCCESS);
    }
    if listed.runs.is_empty() {
        say(&format!(
            "No subagent of a session that goes on has sent anything since the engine started; the last {} runs are shown.",
            listed.max_runs
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = StyledText::new();
    for run in &listed.runs {
        text.append(run_heading(run));
        if id.is_some() {
            text.plain("\n");
            text.append(render_sections(&run.sections, SectionExtent::Excerpt, window::width()).0);
        }
    }
    let mut output = Output::stdout();
    output.styled(&text, context.terminal())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
