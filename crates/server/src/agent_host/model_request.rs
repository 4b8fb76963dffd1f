//! Requests to models through the engine's own proxy, as any other agent sends them: they can be paused, edited, logged and replayed.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use sayso_agent::host::{AgentRequest, AgentResponse, BodyStream, SendError};
use sayso_api::LocalStream;
use sayso_review::{RequestEnd, RequestId};

use super::change::on_thread;
use crate::engine_socket::EngineSocket;
use crate::failure::Failure;
use crate::host::Host;
use crate::settings::CredentialHeader;

/// Sends a request over the engine's socket for model requests.
pub(super) async fn send(host: &Arc<Host>, request: AgentRequest) -> Result<AgentResponse, SendError> {
    let (upstream, session) = (request.upstream.clone(), request.session.clone());
    let prepared = on_thread(host, move |host| {
        host.refresh_if_readable();
        let credential = host.settings.credential(&upstream)?;
        Ok((credential, host.agent_sessions.capability(&host.proxy)?))
    });
    let (credential, capability) = prepared.await.map_err(not_configured)?;
    let connection =
        |error: &dyn std::fmt::Display| SendError::Connection { message: format!("the request failed: {error}") };
    let stream = EngineSocket::new(&host.journal).connect_for_models().map_err(|error| connection(&error))?;
    let stream = stream.ok_or_else(|| connection(&"the engine is stopping"))?;
    let stream = LocalStream::new(stream).map_err(|error| connection(&error))?;
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| connection(&error))?;
    // Ends when the request is dropped, which the proxy sees as a client that disconnected.
    let driver = tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%error, "the connection of a model request ended");
        }
    });
    let abort = AbortOnDrop(driver.abort_handle());
    let message = build(&request, &capability, credential).map_err(|error| connection(&error))?;
    let response = sender.send_request(message).await.map_err(|error| connection(&error))?;
    let (head, body) = response.into_parts();
    let status = head.status.as_u16();
    let recorded = on_thread(host, move |host| Ok(last_request(host, &session))).await.ok().flatten();
    if let Some((_, Some(end))) = &recorded {
        let message = end.agent_message();
        return Err(match end {
            RequestEnd::Canceled | RequestEnd::CanceledBefore | RequestEnd::SessionDisposed => {
                SendError::Canceled { message }
            }
            RequestEnd::Failed { .. } | RequestEnd::ClientGone | RequestEnd::EngineStopped => {
                SendError::Connection { message }
            }
            _ => SendError::Rejected { message },
        });
    }
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    Ok(AgentResponse {
        request: recorded.map(|(request, _)| request),
        status,
        headers: headers.collect(),
        body: body_stream(body, abort),
    })
}

/// Ends the connection of a request that is no longer wanted.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn not_configured(failure: Failure) -> SendError {
    SendError::NotConfigured { message: failure.message, hint: failure.hint.unwrap_or_default() }
}

fn build(
    request: &AgentRequest,
    capability: &str,
    credential: Option<CredentialHeader>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let path = format!("/p/{capability}/{}{}", request.upstream, request.path);
    let mut message = Request::builder().method(Method::POST).uri(path).body(Full::new(request.body.clone()))?;
    let headers = message.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    for (name, value) in &request.headers {
        headers.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
    }
    if let Some((name, mut value)) = credential {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(message)
}

/// Returns the number of the last request of a session, and its end if it was not answered.
fn last_request(host: &Host, session: &str) -> Option<(RequestId, Option<RequestEnd>)> {
    let interceptor = &host.proxy.interceptor;
    // Requests are recorded after they were sent.
    interceptor.flush();
    let record = interceptor.records(Some(session), None, 1).ok()?.pop()?;
    Some((record.request, record.ended))
}

fn body_stream(body: Incoming, abort: AbortOnDrop) -> BodyStream {
    let next = |(mut body, abort): (Incoming, AbortOnDrop)| async move {
        loop {
            match body.frame().await? {
                Ok(frame) => {
                    let Ok(data) = frame.into_data() else { continue };
                    return Some((Ok(data), (body, abort)));
                }
                Err(error) => {
                    let message = format!("the response broke off: {error}");
                    return Some((Err(SendError::Connection { message }), (body, abort)));
                }
            }
        }
    };
    Box::pin(stream::unfold((body, abort), next))
}
