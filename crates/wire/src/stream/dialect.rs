//! What each dialect does in its own way.

use serde_json::Value;

use super::{Api, Begun, HttpReply, Refusal, Script, StreamEvent};

/// How one API streams, in both directions. Implemented by one type without state in one file; see the module's documentation.
pub trait StreamDialect: Sync {
    /// Which API.
    fn api(&self) -> Api;

    /// A decoder of one stream, at its start.
    fn decoder(&self) -> Box<dyn Decode + Send>;

    /// Says what an answer that was not streamed says, as events. A body that has nothing of an answer gives none. Says where a
    /// body is broken that is.
    fn body_events(&self, body: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64>;

    /// What is in every body that has a call of a tool in it.
    fn call_marks(&self) -> &'static [&'static str];

    /// The server-sent events with which this API streams an answer, each as its bytes with the empty line, so that
    /// a caller can put pauses and keep-alives between them. What the API has no form for is left out.
    fn stream(&self, script: &Script) -> Vec<Vec<u8>>;

    /// The body with which this API gives an answer that was not asked for as a stream.
    fn body(&self, script: &Script) -> Value;

    /// What keeps a stream alive that has begun, and means nothing to clients. It can be sent before the first event, too.
    fn keep_alive(&self) -> &'static [u8];

    /// The answer in place of a stream, as long as no status was sent.
    fn refuse(&self, refusal: &Refusal<'_>) -> HttpReply;

    /// The end of a stream that has begun with status 200.
    fn break_off(&self, refusal: &Refusal<'_>) -> Vec<u8>;

    /// The same in the form after which clients are known not to try again, which may not be the API's own.
    fn end_for_good(&self, refusal: &Refusal<'_>, begun: Begun) -> Vec<u8> {
        let _ = begun;
        self.break_off(refusal)
    }
}

/// One stream of an API being decoded.
///
/// Keeps no text: an open block's number, id, name and counters at most.
pub trait Decode {
    /// Takes one event apart. `name` is what the `event:` line said, or empty. Says nothing if the data is broken, and where it is.
    fn decode(&mut self, name: &str, data: &str, out: &mut dyn FnMut(StreamEvent<'_>)) -> Result<(), u64>;

    /// The API said `[DONE]`: what is open is complete.
    fn done(&mut self, out: &mut dyn FnMut(StreamEvent<'_>));

    /// The bytes are over: what is open was cut.
    fn end(&mut self, out: &mut dyn FnMut(StreamEvent<'_>));

    /// How many bytes it holds on to.
    fn retained(&self) -> usize;
}
