//! Conversations of agents: pages, single blocks and the live feed.

use super::Client;
use super::call::ResponseStream;
use super::error::{CallFailure, ClientError};
use super::responses::{decode, decode_all, required};
use super::retry::{Backoff, RetryBudget};
use super::watch::next_message;
use crate::conversation::{ConversationBlock, ConversationPage};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::watch_conversation_response::Kind;

/// The blocks of a conversation after a number: each block once, in order, across lost connections and restarted engines.
#[derive(Debug)]
pub struct ConversationWatch {
    client: Client,
    session: String,
    after: u64,
    text_limit: Option<u32>,
    backoff: Backoff,
    stream: Option<Box<ResponseStream<view::WatchConversationResponseView<'static>>>>,
}

impl ConversationWatch {
    /// Number of the last block returned.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the next block. Cancel-safe: dropping the future loses no block.
    pub async fn next(&mut self) -> Result<ConversationBlock, ClientError> {
        loop {
            match self.receive().await {
                Ok(Some(block)) if block.number <= self.after => {}
                Ok(Some(block)) if block.number > self.after + 1 => {
                    return Err(ClientError::bad(format!("block {} follows block {}", block.number, self.after)));
                }
                Ok(Some(block)) => {
                    self.after = block.number;
                    return decode(block);
                }
                Ok(None) => {}
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => {
                    self.stream = None;
                    self.backoff.wait(cause).await?;
                }
            }
        }
    }

    /// Receives a message, from a new stream if none is open. `None` is a keep-alive.
    async fn receive(&mut self) -> Result<Option<proto::ConversationBlock>, CallFailure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let request = proto::WatchConversationRequest {
                    session: self.session.clone(),
                    after: self.after,
                    text_limit: self.text_limit,
                    ..Default::default()
                };
                let spec = proto::CONVERSATION_SERVICE_WATCH_CONVERSATION_SPEC;
                none.insert(Box::new(self.client.stream(spec, request).await?))
            }
        };
        let message = next_message(stream).await?;
        self.backoff.reset();
        Ok(match message.kind {
            Some(Kind::Block(block)) => Some(*block),
            Some(Kind::Heartbeat(_)) | None => None,
        })
    }
}

impl Client {
    /// Returns blocks of a session after a number, oldest first. A limit of 0 is the engine's default of 200.
    ///
    /// Texts are shortened to `text_limit` bytes; `None` is the engine's default of 8,192.
    pub async fn conversation(
        &self,
        session: &str,
        after: u64,
        limit: u32,
        text_limit: Option<u32>,
    ) -> Result<ConversationPage, ClientError> {
        let request = proto::GetConversationPreviewRequest {
            session: session.to_owned(),
            after,
            limit,
            text_limit,
            ..Default::default()
        };
        let spec = proto::CONVERSATION_SERVICE_GET_CONVERSATION_PREVIEW_SPEC;
        let page = self.call::<_, view::GetConversationPreviewResponseView<'static>, _>(spec, request).await?;
        Ok(ConversationPage { blocks: decode_all(page.blocks)?, last: page.last })
    }

    /// Returns one block of a session with its whole text.
    pub async fn conversation_block(&self, session: &str, number: u64) -> Result<ConversationBlock, ClientError> {
        let request = proto::GetConversationBlockRequest { session: session.to_owned(), number, ..Default::default() };
        let spec = proto::CONVERSATION_SERVICE_GET_CONVERSATION_BLOCK_SPEC;
        let response = self.call::<_, view::GetConversationBlockResponseView<'static>, _>(spec, request).await?;
        decode(required::<proto::ConversationBlock>(response.block, "block")?)
    }

    /// Follows the conversation of a session. `after` is the number of the last known block; 0 starts at the first one.
    pub fn watch_conversation(
        &self,
        session: &str,
        after: u64,
        text_limit: Option<u32>,
        budget: RetryBudget,
    ) -> ConversationWatch {
        let session = session.to_owned();
        ConversationWatch {
            client: self.clone(),
            session,
            after,
            text_limit,
            backoff: Backoff::new(budget),
            stream: None,
        }
    }
}
