//! An in-memory engine with scripted connection failures.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use connectrpc::{
    ConnectError, ConnectRpcService, RequestContext, Response, Router, ServiceRequest, ServiceResult, ServiceStream,
};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use sayso_api::client::{Client, Connection, Dial, Reach, RetryBudget, Token};
use sayso_api::convert;
use sayso_api::proto::{self, oneof};
use sayso_review::{
    Cause, ChangeRecord, ChangeStatus, ContentHash, Event, EventBody, Origin, Performer, Preview, Proposal, Recorded,
    Subject, Verdict, WsPath,
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Behaviour of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    Good,
    /// Connecting fails.
    Refused,
    /// Closed before the first byte.
    Closed,
    /// Accepts bytes, drops them and closes.
    Swallowed,
    /// Accepts bytes, drops them and resets.
    Unread,
    /// Rejects writes after this number of bytes.
    FullAfter(usize),
    /// Closed after this number of response bytes.
    ClosedAfter(usize),
}

/// State of the engine.
#[derive(Debug, Default)]
pub(crate) struct EngineState {
    lines: VecDeque<Line>,
    pub(crate) dials: usize,
    /// Names of the calls, in order.
    pub(crate) calls: Vec<&'static str>,
    pub(crate) tokens: Vec<Option<String>>,
    /// Number of events.
    pub(crate) events: u64,
    /// Number of an event that the stream omits.
    pub(crate) gap: Option<u64>,
    /// Number of an event without a required field.
    pub(crate) unreadable: Option<u64>,
    /// Number of messages after which the stream ends, as if the engine stopped.
    pub(crate) stops_after: Option<u64>,
    pub(crate) record: Option<ChangeRecord>,
    pub(crate) preview: Option<proto::Preview>,
}

#[derive(Clone, Debug)]
pub(crate) struct FakeEngine {
    pub(crate) known: Arc<Mutex<EngineState>>,
    pub(crate) reach: Reach,
}

impl FakeEngine {
    pub(crate) fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        let known = EngineState { lines: lines.into_iter().collect(), ..EngineState::default() };
        Self { known: Arc::new(Mutex::new(known)), reach: Reach::Local }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Arc::new(self.clone()), Some(Token::new("t0ken").unwrap()))
            .with_retry_budget(RetryBudget::Limited(Duration::from_secs(5)))
    }

    pub(crate) fn with(self, change: impl FnOnce(&mut EngineState)) -> Self {
        change(&mut self.known.lock().unwrap());
        self
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.known.lock().unwrap().calls.clone()
    }

    pub(crate) fn dials(&self) -> usize {
        self.known.lock().unwrap().dials
    }

    fn called(&self, context: &RequestContext, name: &'static str) {
        let token = context.header("authorization").map(|value| value.to_str().unwrap().to_owned());
        let mut known = self.known.lock().unwrap();
        known.calls.push(name);
        known.tokens.push(token);
    }

    fn details(&self) -> proto::ChangeDetails {
        let known = self.known.lock().unwrap();
        proto::ChangeDetails {
            change: known.record.as_ref().map(Into::into).into(),
            preview: known.preview.clone().into(),
            ..Default::default()
        }
    }
}

impl Dial for FakeEngine {
    fn dial(&self) -> BoxFuture<'static, io::Result<Connection>> {
        let line = {
            let mut known = self.known.lock().unwrap();
            known.dials += 1;
            known.lines.pop_front().unwrap_or(Line::Good)
        };
        let engine = self.clone();
        async move {
            if matches!(line, Line::Refused) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            let engine = Arc::new(engine);
            let router = proto::ReviewServiceExt::register(Arc::clone(&engine), Router::new());
            let router = proto::IntentServiceExt::register(engine, router);
            let service = TowerToHyperService::new(ConnectRpcService::new(router));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service));
            Ok(Box::new(FailingConnection { inner: ours, line, written: false, waker: None }) as Connection)
        }
        .boxed()
    }

    fn reach(&self) -> Reach {
        self.reach
    }
}

/// A connection that fails as its [`Line`] says.
struct FailingConnection {
    inner: DuplexStream,
    line: Line,
    written: bool,
    waker: Option<std::task::Waker>,
}

impl AsyncRead for FailingConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.line {
            Line::Closed | Line::ClosedAfter(0) => Poll::Ready(Ok(())),
            Line::Swallowed if self.written => Poll::Ready(Ok(())),
            Line::Unread if self.written => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Line::Swallowed | Line::Unread => {
                self.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Line::ClosedAfter(left) => {
                let mut bytes = vec![0; left.min(buffer.remaining())];
                let mut some = ReadBuf::new(&mut bytes);
                ready!(Pin::new(&mut self.inner).poll_read(context, &mut some))?;
                let read = some.filled().len();
                buffer.put_slice(some.filled());
                self.line = Line::ClosedAfter(left - read);
                Poll::Ready(Ok(()))
            }
            Line::Good | Line::Refused | Line::FullAfter(_) => Pin::new(&mut self.inner).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for FailingConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        match self.line {
            Line::Swallowed | Line::Unread => Poll::Ready(Ok(bytes.len())),
            Line::FullAfter(0) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Line::FullAfter(left) => {
                let bytes = &bytes[..bytes.len().min(left)];
                let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
                self.line = Line::FullAfter(left - written);
                Poll::Ready(Ok(written))
            }
            _ => Pin::new(&mut self.inner).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

fn event(number: u64) -> proto::Event {
    let event = Event::SessionStarted { session: format!("s{number}"), agent: None, location: None, parent: None };
    (&Recorded { number, time: 0, body: EventBody::Known(event) }).into()
}

/// A pending change and its preview.
pub(crate) fn pending() -> (ChangeRecord, Preview) {
    let proposal = Proposal::parse(br#"{"changes":[{"path":"a.txt","operation":"write","new_content":"new\n"}]}"#);
    let proposal = proposal.unwrap();
    let draft = proposal.draft(WsPath::parse).unwrap();
    let preview = draft.preview(&sayso_review::Observation::default());
    let proposed = Event::Proposed {
        change: 7,
        origin: Origin::default(),
        cause: Cause::Proposal,
        files: Vec::new(),
        preview: preview.hash(),
        subject: Subject::Files,
        ruling: None,
        performer: Performer::Gate,
        intent: None,
        deadline: None,
        predecessors: Vec::new(),
    };
    let record = ChangeRecord::fold([Recorded { number: 1, time: 0, body: EventBody::Known(proposed) }]);
    (record.unwrap(), preview)
}

/// An engine with one pending change.
pub(crate) fn engine_with_pending(lines: impl IntoIterator<Item = Line>) -> (FakeEngine, ContentHash) {
    let (record, preview) = pending();
    let hash = record.preview;
    let engine = FakeEngine::new(lines).with(|known| {
        known.preview = Some(convert::preview(&preview, proto::PreviewView::Content));
        known.record = Some(record);
    });
    (engine, hash)
}

fn unimplemented<T>() -> ServiceResult<T> {
    Err(ConnectError::unimplemented("not in the fake engine"))
}

macro_rules! unimplemented {
    ($($name:ident: $request:ident => $response:ident,)*) => {
        $(async fn $name(&self, _: RequestContext, _: ServiceRequest<'_, proto::$request>) -> ServiceResult<proto::$response> {
            unimplemented()
        })*
    };
}

#[expect(refining_impl_trait, reason = "test double")]
impl proto::ReviewService for FakeEngine {
    async fn status(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::StatusRequest>,
    ) -> ServiceResult<proto::StatusResponse> {
        self.called(&context, "status");
        Response::ok(proto::StatusResponse { pending: 3, ..Default::default() })
    }

    async fn watch(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WatchRequest>,
    ) -> ServiceResult<ServiceStream<proto::WatchResponse>> {
        self.called(&context, "watch");
        let after = request.after;
        let (last, gap, unreadable, stops) = {
            let mut known = self.known.lock().unwrap();
            (known.events, known.gap, known.unreadable, known.stops_after.take())
        };
        let first = oneof::watch_response::Kind::from(proto::watch_response::Heartbeat {
            last_event: last,
            ..Default::default()
        });
        let events = (after + 1..=last).filter(move |number| Some(*number) != gap);
        let events = events.map(move |number| match unreadable {
            Some(found) if found == number => {
                proto::Event { number, kind: Some(proto::ChangeEnded::default().into()), ..Default::default() }
            }
            _ => event(number),
        });
        let kinds = std::iter::once(first).chain(events.map(oneof::watch_response::Kind::from));
        let max_messages = stops.map_or(usize::MAX, |stops| usize::try_from(stops).unwrap());
        let messages = stream::iter(kinds.take(max_messages))
            .map(|kind| Ok(proto::WatchResponse { kind: Some(kind), ..Default::default() }));
        Ok(Response::stream(if stops.is_some() {
            messages.left_stream()
        } else {
            messages.chain(stream::pending()).right_stream()
        }))
    }

    async fn decide(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DecideRequest>,
    ) -> ServiceResult<proto::DecideResponse> {
        self.called(&context, "decide");
        let verdict = Verdict::try_from(request.to_owned_message().verdict.into_option().unwrap()).unwrap();
        {
            let mut known = self.known.lock().unwrap();
            let record = known.record.as_mut().unwrap();
            (record.status, record.verdict) = (ChangeStatus::Applied, Some(verdict));
        }
        Response::ok(proto::DecideResponse { details: Some(self.details()).into(), ..Default::default() })
    }

    async fn get_change(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::GetChangeRequest>,
    ) -> ServiceResult<proto::GetChangeResponse> {
        self.called(&context, "get_change");
        Response::ok(proto::GetChangeResponse { details: Some(self.details()).into(), ..Default::default() })
    }

    async fn undo(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::UndoRequest>,
    ) -> ServiceResult<proto::UndoResponse> {
        self.called(&context, "undo");
        Response::ok(proto::UndoResponse { details: Some(self.details()).into(), ..Default::default() })
    }

    unimplemented! {
        create_login: CreateLoginRequest => CreateLoginResponse,
        list_pending: ListPendingRequest => ListPendingResponse,
        propose: ProposeRequest => ProposeResponse,
        list_changes: ListChangesRequest => ListChangesResponse,
        list_sessions: ListSessionsRequest => ListSessionsResponse,
        plan_undo: PlanUndoRequest => PlanUndoResponse,
        plan_redo: PlanRedoRequest => PlanRedoResponse,
        redo: RedoRequest => RedoResponse,
        resolve_session: ResolveSessionRequest => ResolveSessionResponse,
        dry_run: DryRunRequest => DryRunResponse,
        review_turn: ReviewTurnRequest => ReviewTurnResponse,
        list_snapshots: ListSnapshotsRequest => ListSnapshotsResponse,
        plan_restore: PlanRestoreRequest => PlanRestoreResponse,
        restore: RestoreRequest => RestoreResponse,
        collect: CollectRequest => CollectResponse,
        get_diff: GetDiffRequest => GetDiffResponse,
        list_inbox: ListInboxRequest => ListInboxResponse,
        mark_seen: MarkSeenRequest => MarkSeenResponse,
        mark_read: MarkReadRequest => MarkReadResponse,
        list_surfaces: ListSurfacesRequest => ListSurfacesResponse,
        suggest_rule: SuggestRuleRequest => SuggestRuleResponse,
    }

    async fn watch_inbox(
        &self,
        _: RequestContext,
        _: ServiceRequest<'_, proto::WatchInboxRequest>,
    ) -> ServiceResult<ServiceStream<proto::WatchInboxResponse>> {
        unimplemented()
    }

    async fn await_change(
        &self,
        _: RequestContext,
        _: ServiceRequest<'_, proto::AwaitChangeRequest>,
    ) -> ServiceResult<ServiceStream<proto::AwaitChangeResponse>> {
        unimplemented()
    }
}

#[expect(refining_impl_trait, reason = "test double")]
impl proto::IntentService for FakeEngine {
    /// Sends a heartbeat, then the details.
    async fn r#await(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::AwaitRequest>,
    ) -> ServiceResult<ServiceStream<proto::AwaitResponse>> {
        self.called(&context, "await");
        let heartbeat = oneof::await_response::Kind::from(proto::await_response::Heartbeat::default());
        let kinds = vec![heartbeat, oneof::await_response::Kind::from(self.details())];
        let messages =
            stream::iter(kinds).map(|kind| Ok(proto::AwaitResponse { kind: Some(kind), ..Default::default() }));
        Ok(Response::stream(messages))
    }

    unimplemented! {
        submit: SubmitRequest => SubmitResponse,
        withdraw: WithdrawRequest => WithdrawResponse,
        capture: CaptureRequest => CaptureResponse,
        prepare_call: PrepareCallRequest => PrepareCallResponse,
        finish: FinishRequest => FinishResponse,
        start_session: StartSessionRequest => StartSessionResponse,
        end_session: EndSessionRequest => EndSessionResponse,
        start_turn: StartTurnRequest => StartTurnResponse,
        end_turn: EndTurnRequest => EndTurnResponse,
        take_messages: TakeMessagesRequest => TakeMessagesResponse,
        list_messages: ListMessagesRequest => ListMessagesResponse,
        acknowledge_messages: AcknowledgeMessagesRequest => AcknowledgeMessagesResponse,
    }
}
