//! `ConversationService`: conversations as blocks. For persons only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::stream;
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_gate::Subscription;
use sayso_present::escape::escape_unprintable;
use sayso_review::{Event, EventBody, Recorded, RequestStep};
use sayso_wire::{ToolReference, TranscriptBlockKind};

use super::stream::catch_up;
use crate::conversation::RecordedBlock;
use crate::failure::Failure;
use crate::host::{Host, run_as_person};

/// Blocks in a response without a limit.
const DEFAULT_LIMIT: u32 = 200;
const MAX_LIMIT: u32 = 1_000;
/// Text per block without a limit, in bytes.
const DEFAULT_TEXT_BYTES: u32 = 8_192;
/// Longest text of a block.
const MAX_TEXT_BYTES: u32 = 4 << 20;
/// Changes of a session that are searched for tool calls.
const MAX_CHANGES: usize = 10_000;
/// Longest interval between messages of a stream.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct ConversationReader(pub(crate) Arc<Host>);

/// Returns blocks of a session after a number, and the number of its last block.
fn read(
    host: &Host,
    session: &str,
    after: u64,
    limit: usize,
    text_limit: u32,
) -> Result<(Vec<proto::ConversationBlock>, u64), Failure> {
    if session.is_empty() {
        return Err(BadMessage::new("session", "it is empty").into());
    }
    let (blocks, last) = host.conversations.read(host, session, |conversation| {
        let blocks: Vec<(u64, Arc<RecordedBlock>)> =
            conversation.after(after).take(limit).map(|(number, block)| (number, Arc::clone(block))).collect();
        (blocks, conversation.len())
    })?;
    let has_calls = blocks.iter().any(|(_, block)| tool(&block.block.kind).is_some_and(|tool| tool.id.is_some()));
    let changes = if has_calls { changes_by_call(host, session)? } else { BTreeMap::new() };
    let message = |(number, block): (u64, Arc<RecordedBlock>)| block_message(number, &block, &changes, text_limit);
    Ok((blocks.into_iter().map(message).collect(), last))
}

/// Returns the change of each tool call of a session.
fn changes_by_call(host: &Host, session: &str) -> Result<BTreeMap<String, u64>, Failure> {
    let changes = host.gate.read(|history| history.changes_of(session, None, MAX_CHANGES))?;
    // The first change of a call is the call itself; later ones merge or undo it.
    let newest_first = changes.into_iter().filter_map(|record| Some((record.origin.call?, record.change)));
    Ok(newest_first.collect())
}

fn tool(kind: &TranscriptBlockKind) -> Option<&ToolReference> {
    match kind {
        TranscriptBlockKind::ToolCall(tool) | TranscriptBlockKind::ToolResult(tool) => Some(tool),
        _ => None,
    }
}

/// Escapes a text for display and keeps its line breaks.
fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape_unprintable).collect::<Vec<_>>().join("\n")
}

fn block_message(
    number: u64,
    block: &RecordedBlock,
    changes: &BTreeMap<String, u64>,
    text_limit: u32,
) -> proto::ConversationBlock {
    use proto::conversation_block::Kind;
    let kind = match block.block.kind {
        TranscriptBlockKind::Prompt => Kind::Prompt,
        TranscriptBlockKind::Context => Kind::Context,
        TranscriptBlockKind::AssistantText => Kind::AssistantText,
        TranscriptBlockKind::Thinking => Kind::Thinking,
        TranscriptBlockKind::ToolCall(_) => Kind::ToolCall,
        TranscriptBlockKind::ToolResult(_) => Kind::ToolResult,
        TranscriptBlockKind::Attachment => Kind::Attachment,
        TranscriptBlockKind::Compaction => Kind::Compaction,
    };
    let tool = tool(&block.block.kind);
    let call = tool.and_then(|tool| tool.id.clone());
    let text = escape_lines(&block.block.text);
    let shown = &text[..text.floor_char_boundary(text_limit as usize)];
    proto::ConversationBlock {
        number,
        kind: kind.into(),
        text: shown.to_owned(),
        text_size: text.len() as u64,
        tool: tool.and_then(|tool| tool.name.clone()),
        change: call.as_ref().and_then(|call| changes.get(call).copied()),
        call,
        request: block.request,
        subagent: block.subagent.as_ref().and_then(|mark| mark.id.clone()),
        from_subagent: block.subagent.is_some(),
        time_ms: block.time,
        ..Default::default()
    }
}

impl proto::ConversationService for ConversationReader {
    async fn get_conversation_preview(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetConversationPreviewRequest>,
    ) -> ServiceResult<proto::GetConversationPreviewResponse> {
        let request = request.to_owned_message();
        let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit.min(MAX_LIMIT) } as usize;
        let text_limit = request.text_limit.unwrap_or(DEFAULT_TEXT_BYTES).min(MAX_TEXT_BYTES);
        let session = request.session;
        let (blocks, last) =
            run_as_person(&self.0, &context, move |host| read(host, &session, request.after, limit, text_limit))
                .await?;
        Response::ok(proto::GetConversationPreviewResponse { blocks, last, ..Default::default() })
    }

    async fn get_conversation_block(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetConversationBlockRequest>,
    ) -> ServiceResult<proto::GetConversationBlockResponse> {
        let request = request.to_owned_message();
        let block = run_as_person(&self.0, &context, move |host| {
            let (number, session) = (request.number, &request.session);
            let missing =
                |last| Failure::from(BadMessage::new("number", format!("session `{session}` has {last} blocks")));
            let Some(before) = number.checked_sub(1) else { return Err(missing(read(host, session, 0, 0, 0)?.1)) };
            let (mut blocks, last) = read(host, session, before, 1, MAX_TEXT_BYTES)?;
            blocks.pop().ok_or_else(|| missing(last))
        });
        Response::ok(proto::GetConversationBlockResponse { block: block.await?.into(), ..Default::default() })
    }

    async fn watch_conversation(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WatchConversationRequest>,
    ) -> ServiceResult<ServiceStream<proto::WatchConversationResponse>> {
        let request = request.to_owned_message();
        // Fails before the stream starts if the caller may not read conversations.
        run_as_person(&self.0, &context, |_| Ok(())).await?;
        let stream = ConversationStream {
            // Subscribed before the first read, so that no request is missed between the two.
            subscription: self.0.gate.subscribe(self.0.gate.last_event()),
            host: Arc::clone(&self.0),
            session: request.session,
            after: request.after,
            text_limit: request.text_limit.unwrap_or(DEFAULT_TEXT_BYTES).min(MAX_TEXT_BYTES),
            ready: VecDeque::new(),
            state: StreamState::Starting,
        };
        Ok(Response::stream(stream::unfold(stream, ConversationStream::next)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Starting,
    /// New blocks may have been recorded.
    Behind,
    UpToDate,
    Ended,
}

/// The stream of `WatchConversation`.
struct ConversationStream {
    host: Arc<Host>,
    subscription: Subscription,
    session: String,
    /// Number of the last block that was read.
    after: u64,
    text_limit: u32,
    /// Blocks that were read and not sent.
    ready: VecDeque<proto::ConversationBlock>,
    state: StreamState,
}

impl ConversationStream {
    async fn next(mut self) -> Option<(Result<proto::WatchConversationResponse, ConnectError>, Self)> {
        if self.state == StreamState::Starting {
            self.state = StreamState::Behind;
            return Some((Ok(heartbeat()), self));
        }
        loop {
            if let Some(block) = self.ready.pop_front() {
                let response = proto::WatchConversationResponse { kind: block.into(), ..Default::default() };
                return Some((Ok(response), self));
            }
            match self.state {
                StreamState::Ended => return None,
                StreamState::Starting | StreamState::Behind => {
                    self.state = StreamState::UpToDate;
                    if let Err(error) = self.read_blocks().await {
                        self.state = StreamState::Ended;
                        return Some((Err(error), self));
                    }
                }
                StreamState::UpToDate => match tokio::time::timeout(HEARTBEAT_INTERVAL, self.await_request()).await {
                    Err(_) => return Some((Ok(heartbeat()), self)),
                    Ok(Ok(true)) => self.state = StreamState::Behind,
                    Ok(Ok(false)) => return None,
                    Ok(Err(error)) => {
                        self.state = StreamState::Ended;
                        return Some((Err(error), self));
                    }
                },
            }
        }
    }

    /// Reads a page of new blocks.
    async fn read_blocks(&mut self) -> Result<(), ConnectError> {
        let (session, after, text_limit) = (self.session.clone(), self.after, self.text_limit);
        let (blocks, last) = crate::host::blocking(&self.host, move |host| {
            read(host, &session, after, DEFAULT_LIMIT as usize, text_limit)
        })
        .await?;
        self.after += blocks.len() as u64;
        if self.after < last {
            self.state = StreamState::Behind;
        }
        self.ready.extend(blocks);
        Ok(())
    }

    /// Waits for a request or a response of the session. Returns `false` when the engine stops.
    async fn await_request(&mut self) -> Result<bool, ConnectError> {
        loop {
            catch_up(&mut self.subscription).await?;
            let Some(event) = self.subscription.next().await.map_err(Failure::from)? else { return Ok(false) };
            if may_add_blocks(&event, &self.session) {
                return Ok(true);
            }
        }
    }
}

/// `true` for events after which the conversation of a session may have new blocks. The events of responses name no session.
fn may_add_blocks(event: &Recorded, session: &str) -> bool {
    if let EventBody::Known(Event::Agent(entry)) = &event.body {
        return entry.session == session;
    }
    let EventBody::Known(Event::Request(request)) = &event.body else { return false };
    match &request.step {
        RequestStep::Received(received) => received.origin.session.as_deref() == Some(session),
        RequestStep::Answered(_) => true,
        _ => false,
    }
}

fn heartbeat() -> proto::WatchConversationResponse {
    let kind = proto::watch_conversation_response::Heartbeat::default();
    proto::WatchConversationResponse { kind: kind.into(), ..Default::default() }
}
