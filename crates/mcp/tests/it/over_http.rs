//! A server over HTTP.

use std::sync::{Arc, Mutex};

use sayso_mcp::{McpError, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{ignore_progress, servers};

/// Serves single requests: a body of JSON for a request, 202 for a notification, 405 for the stream of the server.
async fn serve(listener: TcpListener, seen: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            let _ = answer(stream, &seen).await;
        });
    }
}

async fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut request = Vec::new();
    let (head, body) = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await?;
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    seen.lock().unwrap().push(head.clone());
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => Some(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        })),
        Some("tools/call") => Some(json!({ "content": [{ "type": "text", "text": "hello" }] })),
        _ => None,
    };
    let response = match result {
        _ if head.starts_with("GET") => {
            "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
        None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        Some(result) => {
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
    };
    stream.write_all(response.as_bytes()).await
}

#[tokio::test]
async fn http_server_is_called_with_headers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let serving = tokio::spawn(serve(listener, Arc::clone(&seen)));
    let mut config = ServerConfig::http(url);
    config.headers.insert("x-key".to_owned(), "fake-key".to_owned());
    let directory = tempfile::tempdir().unwrap();
    let web = servers(directory.path(), config);
    let called = web.call("fake", "greet", &json!({}), &ignore_progress).await.unwrap();
    assert_eq!(called.text, "hello");
    let heads = seen.lock().unwrap().clone();
    assert!(heads.iter().all(|head| head.to_lowercase().contains("x-key: fake-key")), "{heads:?}");
    serving.abort();
}

#[tokio::test]
async fn unreachable_http_server_is_named() {
    // Nothing listens on a port that was just closed.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let web = servers(directory.path(), ServerConfig::http(format!("http://127.0.0.1:{port}/mcp")));
    let error = web.call("fake", "greet", &json!({}), &ignore_progress).await.unwrap_err();
    assert!(matches!(&error, McpError::Start { server, .. } if server == "fake"), "{error}");
}
