//! As much of HTTP/1.1 as two agents need: one request a connection.

use std::io::{BufRead, BufReader, Read as _, Result, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// What a client sent.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What it gets.
pub(super) enum Reply {
    /// A status and a JSON text.
    Json(u16, String),
    /// A stream of events, each named by its `type`.
    Events(Vec<Value>),
}

impl Request {
    /// Reads a request, or nothing where the client went away or does not speak HTTP.
    pub(super) fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let first = line(&mut reader)?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let header = line(&mut reader)?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut body = Vec::new();
        if header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            loop {
                let size = line(&mut reader)?;
                let size = u64::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
                if size == 0 {
                    while !line(&mut reader)?.is_empty() {}
                    break;
                }
                reader.by_ref().take(size).read_to_end(&mut body).ok()?;
                line(&mut reader)?;
            }
        } else if let Some(length) = header("content-length") {
            reader.by_ref().take(length.parse().ok()?).read_to_end(&mut body).ok()?;
        }
        Some(Self { method, target, headers, body })
    }
}

/// The next line without its ending, unless the client went away.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

impl Reply {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self::Json(status, value.to_string())
    }

    /// Writes it. Events go out one by one, as they would from a model that is still thinking.
    pub(super) fn write(&self, stream: &mut TcpStream) -> Result<()> {
        let (status, content_type) = match self {
            Self::Json(status, _) => (*status, "application/json"),
            Self::Events(_) => (200, "text/event-stream"),
        };
        write!(stream, "HTTP/1.1 {status} \r\ncontent-type: {content_type}\r\nconnection: close\r\n")?;
        match self {
            Self::Json(_, text) => write!(stream, "content-length: {}\r\n\r\n{text}", text.len())?,
            Self::Events(events) => {
                write!(stream, "\r\n")?;
                for event in events {
                    let name = event["type"].as_str().unwrap_or("message");
                    stream.write_all(format!("event: {name}\ndata: {event}\n\n").as_bytes())?;
                }
            }
        }
        stream.flush()
    }
}
