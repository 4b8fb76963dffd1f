//! Start, listing and todo lists of sessions.

use std::sync::Arc;

use sayso_agent::log::entries_from_request;
use sayso_agent::{SessionState, TodoChange, WriteTodosError};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_api::proto::agent_session::State;
use sayso_api::proto::oneof::agent_service_start_session_request::Source;
use sayso_gate::{SessionRecord, SessionStatus};
use sayso_review::{BUILT_IN_AGENT, ErrorKind, Rule, Ruling};
use sayso_tools::{TodoState, TodoWrite};

use super::event::{session_settings, todo};
use super::{agent, settings};
use crate::agent_sessions::{self, LiveSession};
use crate::branch;
use crate::failure::Failure;
use crate::host::{Host, now};

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;
/// Sessions of all agents that are searched.
const MAX_SEARCHED: usize = 10_000;
/// Session id of a rule about a task branch.
const BRANCH_RULE: &str = "task branch";

/// Starts or resumes a session.
pub(super) fn start(
    host: &Arc<Host>,
    request: proto::AgentServiceStartSessionRequest,
) -> Result<proto::AgentSession, Failure> {
    let patch = settings::patch(request.settings.into_option());
    let live = match request.source {
        Some(Source::Resume(named)) => {
            let live = agent_sessions::open(host, &resolve(host, &named)?)?;
            if patch != sayso_agent::SettingsPatch::default() {
                agent(&live)?.set_settings(&patch).map_err(|error| match error {
                    sayso_agent::SetSettingsError::Invalid(error) => agent_sessions::invalid_settings(error),
                    sayso_agent::SetSettingsError::Record(error) => {
                        Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint)
                    }
                })?;
            }
            live
        }
        Some(Source::FromRequest(from)) => {
            let record = host.proxy.interceptor.record(from.request)?;
            let body = host.gate.read(|history| history.body(&record.received.body))?;
            let conversation = entries_from_request(&record.received.path, &body).map_err(|error| {
                Failure::new(ErrorKind::InvalidArgs, format!("cannot continue request {}: {error}", from.request))
                    .hint("`sayso request list` lists requests; choose a turn of a conversation")
            })?;
            agent_sessions::start(host, &patch, Some(from.request), conversation)?
        }
        None => agent_sessions::start(host, &patch, None, Vec::new())?,
    };
    let branch = request.branch_task.map(|task| check_out(host, &live.id, task)).transpose()?;
    let mut message = describe_live(host, &live)?;
    message.branch = branch;
    Ok(message)
}

/// Switches to a task branch. Writes of the session are applied at once and reviewed at the end of the turn; denials and the rules
/// that always ask hold.
fn check_out(host: &Arc<Host>, session: &str, task: String) -> Result<String, Failure> {
    let task = proto::BranchTask { task, ..Default::default() };
    let done = branch::check_out(host, &task)?;
    let rule = Rule {
        name: Some(BRANCH_RULE.to_owned()),
        write: vec!["**".to_owned()],
        session: Some(session.to_owned()),
        ..Rule::new(Ruling::Later)
    };
    host.gate.add_rule(session, rule, now())?;
    Ok(done.branch)
}

/// Returns the id of a session by its id, or by the start or the end of it.
pub(super) fn resolve(host: &Host, named: &str) -> Result<String, Failure> {
    if named.is_empty() {
        return Err(BadMessage::new("session", "it is empty").into());
    }
    let sessions = built_in(host, MAX_SEARCHED)?;
    if sessions.iter().any(|record| record.session == named) {
        return Ok(named.to_owned());
    }
    let matching = |record: &&SessionRecord| record.session.starts_with(named) || record.session.ends_with(named);
    let found: Vec<&SessionRecord> = sessions.iter().filter(matching).collect();
    match found.as_slice() {
        [one] => Ok(one.session.clone()),
        [] => Err(agent_sessions::no_session(named)),
        several => {
            Err(Failure::new(ErrorKind::InvalidArgs, format!("`{named}` stands for {} sessions", several.len()))
                .hint("give more of the id; `sayso sessions` lists them"))
        }
    }
}

/// Returns the sessions of the built-in agent that a person started, newest first.
fn built_in(host: &Host, limit: usize) -> Result<Vec<SessionRecord>, Failure> {
    let all = host.gate.read(|history| history.sessions(limit))?;
    Ok(all.into_iter().filter(|record| record.agent.as_deref() == Some(BUILT_IN_AGENT)).collect())
}

/// Lists sessions, newest first.
pub(super) fn list(host: &Host, limit: u32) -> Result<Vec<proto::AgentSession>, Failure> {
    let limit = if limit == 0 { DEFAULT_LIMIT } else { limit.min(MAX_LIMIT) } as usize;
    let mut sessions = Vec::new();
    for record in built_in(host, MAX_SEARCHED)?.into_iter().take(limit) {
        sessions.extend(describe(host, &record)?);
    }
    Ok(sessions)
}

fn describe_live(host: &Host, live: &LiveSession) -> Result<proto::AgentSession, Failure> {
    let record = host.gate.read(|history| history.session(&live.id))?;
    let record = record.ok_or_else(|| agent_sessions::no_session(&live.id))?;
    describe(host, &record)?.ok_or_else(|| agent_sessions::no_session(&live.id))
}

/// Describes a session. `None` if its history was removed.
fn describe(host: &Host, record: &SessionRecord) -> Result<Option<proto::AgentSession>, Failure> {
    let live = host.agent_sessions.find_live(&record.session);
    let running = live.as_ref().and_then(|live| live.agent());
    let Some(summary) = agent_sessions::summary(host, &record.session)? else { return Ok(None) };
    let state = match (&live, running) {
        (Some(live), _) if live.is_waiting() => State::Waiting,
        (_, Some(agent)) if agent.state() == SessionState::Running => State::Running,
        // A subagent runs within its parent.
        (Some(_), None) if summary.is_running => State::Running,
        (None, _) if summary.is_running => State::Interrupted,
        _ => State::Idle,
    };
    let is_branch_rule = |rule: &Rule| rule.name.as_deref() == Some(BRANCH_RULE);
    let has_branch = record.status == SessionStatus::Active && record.rules.iter().any(is_branch_rule);
    let active = live.as_ref().map_or(0, |live| live.active());
    let active = if active > 0 { active } else { summary.active };
    Ok(Some(proto::AgentSession {
        session: record.session.clone(),
        title: summary.title.clone(),
        state: state.into(),
        settings: summary.settings.as_ref().map(session_settings).into(),
        started_ms: record.time,
        active_ms: active,
        turns: summary.completed_turns,
        queued: running.map_or(0, |agent| u32::try_from(agent.queued()).unwrap_or(u32::MAX)),
        fork_of: summary.fork_of,
        parent: record.parent.clone(),
        last_event: live.as_ref().map_or(0, |live| live.ring.last()),
        branch: if has_branch { current_branch(host) } else { None },
        ..Default::default()
    }))
}

fn current_branch(host: &Host) -> Option<String> {
    branch::state(host, &proto::BranchTask::default()).ok()?.branch
}

/// Writes the todo list as the user.
pub(super) fn write_todos(live: &LiveSession, request: proto::WriteTodosRequest) -> Result<Vec<proto::Todo>, Failure> {
    let put = |item: proto::Todo| {
        let state = match item.state.as_known().unwrap_or_default() {
            proto::todo::State::Unspecified => None,
            proto::todo::State::Pending => Some(TodoState::Pending),
            proto::todo::State::InProgress => Some(TodoState::InProgress),
            proto::todo::State::Done => Some(TodoState::Done),
        };
        let (id, text) = (item.id, item.text);
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        TodoWrite::Put { id: filled(id), text: filled(text), state }
    };
    let removed = request.remove.into_iter().map(|id| TodoWrite::Remove { id });
    let writes = request.write.into_iter().map(put).chain(removed).collect();
    let written = agent(live)?.write_todos(TodoChange { writes, order: request.order });
    let todos = written.map_err(|error| match error {
        WriteTodosError::Invalid(error) => {
            Failure::new(ErrorKind::InvalidArgs, error.to_string()).hint("read the list again with GetTodos")
        }
        WriteTodosError::Record(error) => Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint),
    })?;
    Ok(todos.iter().map(todo).collect())
}
