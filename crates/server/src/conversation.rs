//! Conversations of sessions: of the built-in agent from its log, of all others decoded from their recorded model traffic.
//!
//! A conversation is folded on demand: each call reads the requests recorded since the last one, and appends their blocks. Blocks
//! never change, so a client can continue after any block. The folds of the sessions read last are kept in memory.
//!
//! The main agent and each subagent have a [`Transcript`] of their own, because each sends its own history. Requests that are no
//! turn of a conversation, such as titles and token counts, are left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_agent::LogEntry;
use sayso_proxy::interceptor::no_turn_because;
use sayso_review::{RequestId, RequestRecord, RequestStatus, SubagentMark};
use sayso_wire::stream::{Api, ModelResponse, collect};
use sayso_wire::{ModelRequest, RequestHead, ToolReference, Transcript, TranscriptBlock, TranscriptBlockKind};

use crate::agent_conversation::{self, EntryBlock};
use crate::failure::Failure;
use crate::host::Host;

/// Sessions whose conversations are kept in memory.
const MAX_CACHED_SESSIONS: usize = 8;
/// Longest text that a block keeps, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Requests read from the journal at a time.
const PAGE_SIZE: usize = 200;

/// A block with its origin.
#[derive(Clone, Debug)]
pub(crate) struct RecordedBlock {
    pub(crate) block: TranscriptBlock,
    pub(crate) request: RequestId,
    /// `None` for the main agent.
    pub(crate) subagent: Option<SubagentMark>,
    /// In milliseconds since 1970.
    pub(crate) time: i64,
}

/// The conversation of one session so far.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Block number 1 is at index 0.
    blocks: Vec<Arc<RecordedBlock>>,
    /// Transcripts by the id of the subagent. Subagents without an id share one.
    transcripts: BTreeMap<Option<String>, Transcript>,
    /// Number of the newest request that was read.
    through: RequestId,
    /// Requests that were read before their response was complete.
    unanswered: Vec<RequestId>,
    /// Number of the last log entry of the built-in agent that was read; 0 for other agents.
    last_entry: u64,
    /// Number of the event that cleared the log.
    log_start: u64,
    /// Names of the tools by call, for results, which do not name them.
    tool_names: BTreeMap<String, String>,
}

/// The conversations read last.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    /// The one read last is at the end.
    sessions: Mutex<Vec<(String, Arc<Mutex<Conversation>>)>>,
}

impl Conversations {
    /// Brings the conversation of a session up to date and passes it to a closure.
    pub(crate) fn read<T>(
        &self,
        host: &Host,
        session: &str,
        read: impl FnOnce(&Conversation) -> T,
    ) -> Result<T, Failure> {
        let conversation = self.find(session);
        let mut conversation = lock(&conversation);
        conversation.update(host, session)?;
        Ok(read(&conversation))
    }

    /// Drops the fold of a session whose history was removed.
    pub(crate) fn forget(&self, session: &str) {
        lock(&self.sessions).retain(|(known, _)| known != session);
    }

    fn find(&self, session: &str) -> Arc<Mutex<Conversation>> {
        let mut sessions = lock(&self.sessions);
        let known = sessions.iter().position(|(known, _)| known == session);
        let entry = known.map_or_else(|| (session.to_owned(), Arc::default()), |index| sessions.remove(index));
        let conversation = Arc::clone(&entry.1);
        sessions.push(entry);
        if sessions.len() > MAX_CACHED_SESSIONS {
            sessions.remove(0);
        }
        conversation
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversation {
    pub(crate) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the blocks after a number with their numbers, oldest first.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<RecordedBlock>)> {
        let start = usize::try_from(number).unwrap_or(usize::MAX).min(self.blocks.len());
        (start as u64 + 1..).zip(&self.blocks[start..])
    }

    /// Appends what was recorded since the last call.
    fn update(&mut self, host: &Host, session: &str) -> Result<(), Failure> {
        if self.update_from_log(host, session)? {
            return Ok(());
        }
        let interceptor = &host.proxy.interceptor;
        // Responses first: a later request of the same conversation repeats them.
        for request in std::mem::take(&mut self.unanswered) {
            let record = interceptor.record(request)?;
            self.push_response(host, &record);
        }
        let mut new: Vec<RequestRecord> = Vec::new();
        let mut before = None;
        loop {
            let page = interceptor.records(Some(session), before, PAGE_SIZE)?;
            before = page.last().map(|record| record.request);
            let is_last = page.len() < PAGE_SIZE || before.is_some_and(|oldest| oldest <= self.through);
            new.extend(page.into_iter().filter(|record| record.request > self.through));
            if is_last {
                break;
            }
        }
        for record in new.iter().rev() {
            self.through = record.request;
            if self.push_request(host, record) {
                self.push_response(host, record);
            }
        }
        Ok(())
    }

    /// Appends the new entries of the built-in agent's log. Returns `false` for the session of another agent.
    fn update_from_log(&mut self, host: &Host, session: &str) -> Result<bool, Failure> {
        let start = host.gate.read(|history| history.agent_log_start(session))?;
        if start > self.log_start {
            *self = Self { log_start: start, last_entry: start, ..Self::default() };
        }
        loop {
            let page = host.gate.read(|history| history.agent_log(session, self.last_entry, PAGE_SIZE))?;
            let Some(last) = page.last() else { return Ok(self.last_entry > 0) };
            self.last_entry = last.number;
            for stored in &page {
                let content = stored.content.as_ref().map(ToString::to_string).unwrap_or_default();
                let Ok(entry) = LogEntry::from_json(&content) else { continue };
                let Some(known) = entry.known() else { continue };
                for EntryBlock { mut block, request } in agent_conversation::blocks(known) {
                    self.name_tool(&mut block);
                    truncate(&mut block);
                    let block = RecordedBlock { block, request, subagent: None, time: entry.time_ms };
                    self.blocks.push(Arc::new(block));
                }
            }
        }
    }

    /// Adds the name of the tool to a result.
    fn name_tool(&mut self, block: &mut TranscriptBlock) {
        match &mut block.kind {
            TranscriptBlockKind::ToolCall(ToolReference { id: Some(id), name: Some(name) }) => {
                self.tool_names.insert(id.clone(), name.clone());
            }
            TranscriptBlockKind::ToolResult(ToolReference { id: Some(id), name }) => {
                *name = self.tool_names.get(id).cloned();
            }
            _ => {}
        }
    }

    /// Appends the new blocks of a request. Returns `false` if it is no turn of a conversation.
    fn push_request(&mut self, host: &Host, record: &RequestRecord) -> bool {
        let Some(request) = turn_request(host, record) else { return false };
        let key = transcript_key(record);
        if key.is_some() && !self.transcripts.contains_key(&key) {
            let own = self.transcripts.get(&None).map(|parent| parent.of_subagent(&request)).unwrap_or_default();
            self.transcripts.insert(key, own);
        }
        let blocks = self.transcript(record).push_request(&request);
        self.append(record, record.time, blocks);
        true
    }

    /// Appends the blocks of a response, or remembers that the response is not complete.
    fn push_response(&mut self, host: &Host, record: &RequestRecord) {
        let Some(answer) = &record.answer else {
            if record.status != RequestStatus::Ended {
                self.unanswered.push(record.request);
            }
            return;
        };
        let Some(response) = response(host, record) else { return };
        let arrived = record.time + i64::try_from(answer.total_ms).unwrap_or(0);
        let blocks = self.transcript(record).push_response(&response);
        self.append(record, arrived, blocks);
    }

    fn transcript(&mut self, record: &RequestRecord) -> &mut Transcript {
        self.transcripts.entry(transcript_key(record)).or_default()
    }

    fn append(&mut self, record: &RequestRecord, time: i64, blocks: Vec<TranscriptBlock>) {
        for mut block in blocks {
            truncate(&mut block);
            let subagent = record.received.subagent.clone();
            self.blocks.push(Arc::new(RecordedBlock { block, request: record.request, subagent, time }));
        }
    }
}

fn truncate(block: &mut TranscriptBlock) {
    let end = block.text.floor_char_boundary(MAX_TEXT_BYTES);
    block.text.truncate(end);
}

/// The subagent that sent a request. `None` for the main agent.
fn transcript_key(record: &RequestRecord) -> Option<String> {
    record.received.subagent.as_ref().map(|mark| mark.id.clone().unwrap_or_default())
}

/// Decodes a recorded request. Returns `None` if it is no turn of a conversation, or if its body is no longer stored.
pub(crate) fn turn_request(host: &Host, record: &RequestRecord) -> Option<ModelRequest> {
    let received = &record.received;
    // A replay of a person is no part of the agent's conversation.
    if received.replay_of.is_some() {
        return None;
    }
    let body = host.gate.read(|history| history.body(&received.body)).ok()?;
    host.work.decoded_bodies.add(1);
    let head = RequestHead { path: received.path.clone(), headers: received.headers.clone() };
    let request = ModelRequest::new(record.request.to_string(), head, body);
    no_turn_because(false, &request).is_none().then_some(request)
}

/// Decodes the recorded response of a request. Returns `None` for an error response, and if the body is no longer stored.
pub(crate) fn response(host: &Host, record: &RequestRecord) -> Option<ModelResponse> {
    let answer = record.answer.as_ref().filter(|answer| (200..300).contains(&answer.status))?;
    let api: Api = serde_json::from_value(serde_json::Value::String(record.received.api.clone()?)).ok()?;
    let body = host.gate.read(|history| history.body(&answer.body)).ok()?;
    host.work.decoded_bodies.add(1);
    let is_stream = answer.content_type.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream"));
    if is_stream { Some(collect::from_stream(api, &body)) } else { collect::from_body(api, &body).ok() }
}
