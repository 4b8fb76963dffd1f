//! Raw HTTP requests that the typed client cannot send.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::scene::{TIME_LIMIT, TOKEN};

/// A raw HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and headers in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    stream.set_write_timeout(Some(TIME_LIMIT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends bytes and reads until the server closes.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    stream.write_all(bytes).unwrap();
    rest(&mut stream)
}

/// Reads until the server closes or resets.
pub(crate) fn rest(stream: &mut TcpStream) -> Answer {
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("no response and no end: {error}; so far {answer:?}"),
        }
    }
    Answer::read(&String::from_utf8_lossy(&answer))
}

/// Calls `Status` with additional headers.
pub(crate) fn status_with(address: SocketAddr, headers: &[(&str, &str)]) -> Answer {
    let mut request = "POST /sayso.v1.ReviewService/Status HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
    exchange(address, request.as_bytes())
}

/// The header with the token.
pub(crate) fn token_header() -> (&'static str, String) {
    ("authorization", format!("Bearer {TOKEN}"))
}
