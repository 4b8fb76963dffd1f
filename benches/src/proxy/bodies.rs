//! Sessions of requests as agents send them: each request extends the previous one by a turn.
//!
//! The history that a session starts with is the same for all, as if the agent had sent it before; what is added is said once only.
//! So a journal that stores what it knows once gains what it gains with an agent, and not more.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use sayso_testkit::requests::agent_request;
use serde_json::{Value, json};

/// Kind of the requested response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer in one piece.
    Plain,
    /// Events.
    Streaming,
}

impl Kind {
    fn flag(self) -> bool {
        self == Self::Streaming
    }
}

/// Session marks of requests, and common content of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Named by a header, as by Claude Code. All start with the same history.
    Named,
    /// No session mark. All sessions start with the same history.
    Unmarked,
    /// No session mark. Each session has a different history from its first message on.
    UnmarkedDifferent,
}

impl Sessions {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "session named by a header",
            Self::Unmarked => "no session mark",
            Self::UnmarkedDifferent => "no session mark, sessions begin differently",
        }
    }
}

/// Size of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 1 kB: less than any agent sends.
    Small,
    /// 100 kB: a session that has just begun.
    Middle,
    /// 1 MB: a long session.
    Large,
}

impl Size {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Middle, Self::Large];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "1 kB",
            Self::Middle => "100 kB",
            Self::Large => "1 MB",
        }
    }

    /// Bytes that a session starts with, so that its middle has the size.
    fn start(self) -> usize {
        match self {
            Self::Small => 700,
            Self::Middle => 90_000,
            Self::Large => 990_000,
        }
    }

    /// Requests of a session.
    pub fn session(self) -> usize {
        if self == Self::Small { 4 } else { 12 }
    }

    /// Lines of what a tool answers in each turn.
    fn lines(self) -> usize {
        if self == Self::Small { 0 } else { 30 }
    }
}

/// Common content of all sessions of a kind and size.
#[derive(Clone)]
pub struct Start {
    sessions: Sessions,
    size: Size,
    head: Bytes,
    tail: Bytes,
}

impl Start {
    /// The start of sessions of this size.
    pub fn new(kind: Kind, size: Size, sessions: Sessions) -> Result<Self> {
        Ok(Self { sessions, ..Self::of(kind, size, size.start())? })
    }

    /// The start of sessions whose first request has about so many bytes.
    pub fn of(kind: Kind, size: Size, bytes: usize) -> Result<Self> {
        let mut request: Value = serde_json::from_slice(&agent_request("anthropic", bytes))?;
        if size == Size::Small {
            let guide = "Answer in one sentence, and say what you do not know. ".repeat(6);
            request["system"] = json!([{"type": "text", "text": guide}]);
            request["tools"] = json!([{"name": "read", "description": "Reads a file.", "input_schema":
                {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]);
        }
        let messages = request["messages"].to_string();
        let open = messages.strip_suffix(']').context("no list of messages")?;
        // In the order of Claude Code, the flag at the end.
        let head = format!(r#"{{"model":{},"messages":{open}"#, request["model"]);
        let tail = format!(
            r#"],"system":{},"tools":{},"max_tokens":32000,"stream":{}}}"#,
            request["system"],
            request["tools"],
            kind.flag(),
        );
        Ok(Self { sessions: Sessions::Named, size, head: head.into(), tail: tail.into() })
    }

    /// A session, which no other has the number of.
    pub fn session(&self, number: usize) -> Session {
        let mut start = self.clone();
        if self.sessions == Sessions::UnmarkedDifferent {
            start.head = own_history(&self.head, number);
        }
        Session { start, number, added: String::new(), turns: 0 }
    }
}

/// A history of the same size in which the first message, and words all over the rest, are of one session only.
fn own_history(head: &[u8], number: usize) -> Bytes {
    let text = String::from_utf8_lossy(head);
    let own = text.replace("branch", &format!("{number:06}")).replace("self", &format!("{:04x}", number & 0xffff));
    Bytes::from(own)
}

/// The requests of one session.
pub struct Session {
    start: Start,
    number: usize,
    added: String,
    turns: usize,
}

impl Session {
    /// Returns the agent's session id, if requests carry it.
    pub fn id(&self) -> Option<String> {
        let named = self.start.sessions == Sessions::Named;
        named.then(|| format!("5e550000-0000-4000-8000-{:012x}", self.number))
    }

    /// `true` after the last request of the session.
    pub fn is_over(&self) -> bool {
        self.turns >= self.start.size.session()
    }

    /// The next request, which has one turn more.
    pub fn next(&mut self) -> Pieces {
        let (session, turn) = (self.number, self.turns);
        self.turns += 1;
        let text = if self.start.size.lines() == 0 {
            format!(
                r#",{{"role":"assistant","content":"Step {turn}."}},{{"role":"user","content":"Go on with {session}."}}"#
            )
        } else {
            let call = format!("toolu_{session:08}_{turn:04}");
            let line = |line| format!("{line:>6}\tlet value_{session}_{turn}_{line} = self.reader.next()?;\n");
            let result: String = (0..self.start.size.lines()).map(line).collect();
            let said = json!({"role": "assistant", "content": [
                {"type": "text", "text": format!("Step {turn} of {session}: I read the file first.")},
                {"type": "tool_use", "id": call, "name": "read", "input": {"path": format!("src/{session}/{turn}.rs")}},
            ]});
            let told =
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": result}]});
            format!(",{said},{told}")
        };
        self.added.push_str(&text);
        let added = Bytes::from(self.added.clone());
        Pieces([self.start.head.clone(), added, self.start.tail.clone()].into())
    }
}

/// A body in shared pieces, so that building it costs the client little.
pub struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &Pieces) -> Vec<u8> {
        pieces.0.iter().flat_map(|piece| piece.to_vec()).collect()
    }

    #[test]
    fn each_request_of_a_session_is_the_one_before_and_a_turn_more() {
        for size in Size::ALL {
            let mut session = Start::new(Kind::Streaming, size, Sessions::Named).unwrap().session(7);
            let [first, second] = [(); 2].map(|()| serde_json::from_slice::<Value>(&text(&session.next())).unwrap());
            let [first, second] = [&first, &second].map(|request| request["messages"].as_array().unwrap());
            assert_eq!(second.len(), first.len() + 2);
            assert_eq!(second[..first.len()], first[..]);
        }
    }

    #[test]
    fn requests_have_about_the_size_they_are_named_after() {
        for (size, bytes) in Size::ALL.into_iter().zip([1_000, 100_000, 1_000_000]) {
            let mut session = Start::new(Kind::Plain, size, Sessions::Named).unwrap().session(1);
            while !session.is_over() {
                let length = text(&session.next()).len();
                assert!((bytes * 3 / 4..bytes * 4 / 3).contains(&length), "{length} for {bytes}");
            }
        }
    }
}
