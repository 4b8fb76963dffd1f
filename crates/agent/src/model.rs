//! An exchange with a model: the request, retries, and the streamed answer.

mod backoff;
mod failure;

use futures::StreamExt;
use sayso_review::RequestEnd;
use sayso_wire::stream::collect::BlockContent;
use sayso_wire::stream::{Api, CANCELED, Collector, FinishReason, ModelResponse, StreamEvent, collect};

use crate::event::{LiveEventKind, StatusEvent, StepState};
use crate::host::{AgentRequest, AgentResponse, BodyStream, Host, SendError};
use crate::session::InterruptSignal;
pub(crate) use backoff::RetryDelays;
pub(crate) use failure::ModelFailure;

/// Maximum size of the body of an error, in bytes.
const MAX_ERROR_BYTES: usize = 256 * 1024;
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// The end of an exchange.
#[derive(Debug)]
pub(crate) enum ExchangeEnd {
    Answered(ReceivedAnswer),
    /// The stream broke off after content was received.
    BrokenOff {
        answer: ReceivedAnswer,
        message: String,
    },
    /// A person interrupted. The answer has the content so far.
    Interrupted(ReceivedAnswer),
    /// The request does not fit into the context window.
    Overflow {
        message: String,
    },
    /// A person cancelled the request.
    Cancelled,
    Failed {
        message: String,
        hint: String,
    },
}

/// An answer, complete or not.
#[derive(Debug, Default)]
pub(crate) struct ReceivedAnswer {
    /// Content of a stream.
    collector: Collector,
    /// Content of an answer in one piece.
    whole: Option<ModelResponse>,
    /// Number of the request in the engine's log.
    pub(crate) request: Option<u64>,
}

impl ReceivedAnswer {
    pub(crate) fn response(&self) -> &ModelResponse {
        self.whole.as_ref().unwrap_or(self.collector.response())
    }

    /// `true` if the answer has text, thinking or a call.
    pub(crate) fn has_content(&self) -> bool {
        self.response().blocks.iter().any(|block| match &block.content {
            BlockContent::Text(text) | BlockContent::Thinking(text) => !text.is_empty() || !block.opaque.is_empty(),
            BlockContent::ToolCall { .. } => true,
        })
    }

    /// `true` if the answer reached the output limit.
    pub(crate) fn reached_output_limit(&self) -> bool {
        matches!(self.response().finish, Some((_, FinishReason::MaxTokens)))
    }
}

/// Runs an exchange. Retries failures of the upstream before any content of an answer was received.
pub(crate) async fn exchange(
    host: &dyn Host,
    interrupt: &InterruptSignal,
    request: AgentRequest,
    emit: &(dyn Fn(LiveEventKind) + Sync),
) -> ExchangeEnd {
    let mut backoff = RetryDelays::default();
    loop {
        emit_status(emit, StepState::Requesting, format!("request to {}", request.model), None, None);
        let mut answer = ReceivedAnswer::default();
        let attempt = attempt(host, request.clone(), &mut answer, emit);
        let Some(result) = interrupt.or_interrupted(attempt).await else { return ExchangeEnd::Interrupted(answer) };
        let failure = match result {
            Ok(()) => return ExchangeEnd::Answered(answer),
            Err(failure) => failure,
        };
        let has_content = answer.has_content();
        let (message, after_ms) = match failure {
            ModelFailure::Overflow { message } => return ExchangeEnd::Overflow { message },
            ModelFailure::Cancelled { .. } => return ExchangeEnd::Cancelled,
            ModelFailure::Fatal { message, hint } => return ExchangeEnd::Failed { message, hint },
            ModelFailure::Transient { message, .. } if has_content => {
                return ExchangeEnd::BrokenOff { answer, message };
            }
            ModelFailure::Transient { message, after_ms } => (message, after_ms),
        };
        let Some(delay_ms) = backoff.next_delay_ms(after_ms, host.random()) else {
            let hint = "try again later, or choose another model".to_owned();
            return ExchangeEnd::Failed { message: format!("{message} (after {} attempts)", backoff.attempts()), hint };
        };
        let retry_ms = host.now_ms().saturating_add(delay_ms);
        emit_status(emit, StepState::Retrying, message, answer.request, Some(retry_ms));
        if interrupt.or_interrupted(host.sleep_until(retry_ms)).await.is_none() {
            return ExchangeEnd::Interrupted(ReceivedAnswer::default());
        }
    }
}

fn emit_status(
    emit: &(dyn Fn(LiveEventKind) + Sync),
    state: StepState,
    text: String,
    request: Option<u64>,
    retry_ms: Option<i64>,
) {
    emit(LiveEventKind::Status(StatusEvent { state, text, request, retry_ms }));
}

/// Sends the request once and collects its answer, which stays in `answer` if this future is dropped.
async fn attempt(
    host: &dyn Host,
    request: AgentRequest,
    answer: &mut ReceivedAnswer,
    emit: &(dyn Fn(LiveEventKind) + Sync),
) -> Result<(), ModelFailure> {
    let api = request.api;
    let AgentResponse { request, status, headers, body } = host.send(request).await?;
    answer.request = request;
    if status != 200 {
        let body = read_all(body, MAX_ERROR_BYTES).await.unwrap_or_default();
        return Err(ModelFailure::of_response(status, &headers, &body));
    }
    let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    if header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        let body = read_all(body, MAX_ANSWER_BYTES).await?;
        let whole = collect::from_body(api, &body).map_err(|error| ModelFailure::Fatal {
            message: format!("cannot read the answer: {error}"),
            hint: error.hint().to_owned(),
        })?;
        for block in &whole.blocks {
            if let BlockContent::Text(text) = &block.content {
                emit(LiveEventKind::TextDelta { text: text.clone() });
            }
        }
        answer.whole = Some(whole);
    } else {
        read_stream(api, body, answer, emit).await?;
    }
    let response = answer.response();
    if let Some((kind, message)) = &response.error {
        return Err(ModelFailure::of_stream_error(kind, message));
    }
    let Some((reason, finish)) = &response.finish else {
        return Err(ModelFailure::transient("the answer broke off before its end"));
    };
    match finish {
        _ if answer.has_content() => Ok(()),
        FinishReason::Refusal => Err(ModelFailure::Fatal {
            message: format!("the model refused to answer ({reason})"),
            hint: "rephrase the task, or choose another model".to_owned(),
        }),
        // Claude ends a turn without a word if it has nothing to add to the results.
        FinishReason::EndTurn if api == Api::AnthropicMessages => Ok(()),
        _ => Err(ModelFailure::transient("the answer was empty")),
    }
}

async fn read_stream(
    api: Api,
    mut body: BodyStream,
    answer: &mut ReceivedAnswer,
    emit: &(dyn Fn(LiveEventKind) + Sync),
) -> Result<(), ModelFailure> {
    let mut decoder = api.decoder();
    let mut has_started = false;
    let ReceivedAnswer { collector, request, .. } = answer;
    let mut on_event = |event: StreamEvent<'_>| {
        let delta = match &event {
            StreamEvent::Text { text, .. } if !text.is_empty() => {
                Some(LiveEventKind::TextDelta { text: text.to_string() })
            }
            StreamEvent::Thinking { text, .. } if !text.is_empty() => {
                Some(LiveEventKind::ThinkingDelta { text: text.to_string() })
            }
            _ => None,
        };
        let is_content = delta.is_some() || matches!(event, StreamEvent::ToolCallStarted { .. });
        if is_content && !std::mem::replace(&mut has_started, true) {
            emit_status(emit, StepState::Streaming, "the model answers".to_owned(), *request, None);
        }
        delta.into_iter().for_each(emit);
        collector.push(event);
    };
    let mut received = 0;
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        received += chunk.len();
        decoder.feed(&chunk, &mut |positioned| on_event(positioned.event));
        if received > MAX_ANSWER_BYTES {
            let message = format!("the answer has more than {} MiB", MAX_ANSWER_BYTES >> 20);
            return Err(ModelFailure::Fatal { message, hint: "ask for a shorter answer".to_owned() });
        }
    }
    decoder.end(&mut |positioned| on_event(positioned.event));
    Ok(())
}

/// Reads a body up to a limit.
async fn read_all(mut body: BodyStream, limit: usize) -> Result<Vec<u8>, SendError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        let room = limit.saturating_sub(bytes.len());
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() == limit {
            break;
        }
    }
    Ok(bytes)
}

impl From<SendError> for ModelFailure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Canceled { message } => Self::Cancelled { message },
            SendError::Rejected { .. } => Self::Fatal {
                message: error.to_string(),
                hint: "change the prompt, or the rule that rejects it".to_owned(),
            },
            SendError::NotConfigured { message, hint } => Self::Fatal { message, hint },
            SendError::Connection { message } => Self::transient(message),
        }
    }
}

/// `true` if a message is the proxy's text for a request that a person cancelled, or that a change of the session discarded.
pub(crate) fn is_cancellation(message: &str) -> bool {
    message.contains(CANCELED) || message.contains(&RequestEnd::SessionDisposed.agent_message())
}
