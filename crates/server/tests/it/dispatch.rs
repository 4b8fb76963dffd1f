//! Dispatch of connections to the proxy thread is invisible to clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::raw::{connect, token_header};
use crate::scene::Scene;

/// Reads one response from a kept connection: status and body.
fn answer(stream: &mut BufReader<TcpStream>) -> (u16, String) {
    let (mut status, mut length, mut chunked) = (0, 0, false);
    for number in 0.. {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the server closed the connection");
        let line = line.trim_end().to_ascii_lowercase();
        if number == 0 {
            status = line.split(' ').nth(1).unwrap().parse().unwrap();
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        } else if line == "transfer-encoding: chunked" {
            chunked = true;
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    loop {
        if chunked {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        }
        let (start, end) = (body.len(), body.len() + length + if chunked { 2 } else { 0 });
        body.resize(end, 0);
        stream.read_exact(&mut body[start..]).unwrap();
        body.truncate(start + length);
        if !chunked || length == 0 {
            return (status, String::from_utf8(body).unwrap());
        }
    }
}

#[test]
fn one_connection_serves_calls_and_model_requests() {
    let scene = Scene::new();
    let server = scene.serve();
    let (name, token) = token_header();
    let status = format!(
        "POST /sayso.v1.ReviewService/Status HTTP/1.1\r\nhost: {}\r\n{name}: {token}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\n\r\n{{}}",
        server.address
    );
    let model = format!(
        "POST /p/nobody/anthropic/v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        server.address
    );
    for first_to_model in [true, false] {
        let stream = connect(server.address);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for turn in 0..4 {
            let to_model = (turn % 2 == 0) == first_to_model;
            (&stream).write_all(if to_model { model.as_bytes() } else { status.as_bytes() }).unwrap();
            let (code, body) = answer(&mut reader);
            if to_model {
                assert_eq!(code, 401, "{body}");
                assert!(body.contains("this address is unknown"), "{body}");
            } else {
                assert_eq!(code, 200, "{body}");
                assert!(body.contains("workspace"), "{body}");
            }
        }
    }
}

#[test]
fn request_sent_bytewise_is_dispatched() {
    let scene = Scene::new();
    let server = scene.serve();
    let request = format!(
        "POST /p/nobody/anthropic/v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\n\r\n",
        server.address
    );
    let stream = connect(server.address);
    for byte in request.as_bytes() {
        (&stream).write_all(&[*byte]).unwrap();
    }
    let (code, body) = answer(&mut BufReader::new(stream));
    assert_eq!(code, 401, "{body}");
}
