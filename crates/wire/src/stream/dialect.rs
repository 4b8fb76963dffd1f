//! The interface of a stream dialect.

use serde_json::Value;

use super::{Api, HttpReply, ModelScript, ReplyError, StreamEvent, StreamStarted, encode};

/// The stream format of an API, for decoding and encoding. Implemented by one stateless type per file; see the module
/// documentation.
pub trait StreamDialect: Sync {
    fn api(&self) -> Api;

    /// Returns a decoder at the start of a stream.
    fn decoder(&self) -> Box<dyn DialectDecoder + Send>;

    /// Decodes the body of a response that was not streamed. A body without response content yields no events. Returns
    /// the offset of a syntax error.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64>;

    /// Returns strings, at least one of which occurs in every body with a tool call.
    fn tool_call_markers(&self) -> &'static [&'static str];

    /// Encodes a scripted response as server-sent events, each with its empty line, so that the caller can insert
    /// pauses and keep-alives. Content that the API cannot represent is omitted.
    fn stream(&self, script: &ModelScript) -> Vec<Vec<u8>>;

    /// Encodes a scripted response as a body.
    fn body(&self, script: &ModelScript) -> Value;

    /// Returns a keep-alive that clients ignore, valid before the first event too.
    fn keep_alive(&self) -> &'static [u8];

    /// Returns the response that replaces a stream before its status was sent.
    fn error_reply(&self, error: &ReplyError<'_>) -> HttpReply {
        HttpReply::new(error, &self.error_body(error))
    }

    /// Returns the JSON error object in the format of the API.
    fn error_body(&self, error: &ReplyError<'_>) -> Value;

    /// Returns the end of a stream that has started with status 200.
    fn retryable_end(&self, error: &ReplyError<'_>) -> Vec<u8> {
        encode::unnamed(&self.error_body(error))
    }

    /// Returns the end of a stream in a form after which clients do not retry. The form may not be the API's own.
    fn terminal_error(&self, error: &ReplyError<'_>, started: StreamStarted) -> Vec<u8> {
        let _ = started;
        self.retryable_end(error)
    }
}

/// The decoder of one stream.
///
/// It keeps no text, only the number, id, name and counters of each open block.
pub trait DialectDecoder {
    /// Decodes one event. `name` is the value of the `event:` line, or empty. Returns the offset of a syntax error and
    /// reports no events then.
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64>;

    /// Handles `[DONE]`: open blocks are complete.
    fn done(&mut self, out: &mut dyn FnMut(StreamEvent<'_>));

    /// Handles the end of the bytes: open blocks are truncated.
    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>));

    /// Returns the number of retained bytes.
    fn retained(&self) -> usize;
}
