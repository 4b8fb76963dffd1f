//! Strategies for requests to models.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::redact::Redaction;
use sayso_review::{
    BodyRecord, EditKind, Event, ModeSet, OverrideReport, OverridesSet, PauseReason, RequestAnswer, RequestEnd,
    RequestEvent, RequestMode, RequestReceived, RequestRecord, RequestStatus, RequestStep, Resumer, SkippedEdit,
    SubagentMark, TokenUsage, TurnEditReport, UpstreamRetry, ViewEvent,
};

use crate::arbitrary::{maybe, origins, text, texts};

/// Bodies without chunks, which do not cross the wire.
fn bodies() -> impl Strategy<Value = BodyRecord> {
    let redaction = (any::<u32>(), any::<u32>(), text()).prop_map(|(start, size, name)| Redaction {
        start: start as usize,
        size: size as usize,
        name,
    });
    let redactions = vec(redaction, 0..3);
    (any::<u64>(), any::<bool>(), any::<u64>(), redactions).prop_map(|(size, truncated, redacted, redactions)| {
        BodyRecord { size, chunks: Vec::new(), truncated, redacted, redactions }
    })
}

fn received() -> impl Strategy<Value = RequestReceived> {
    let subagent = (maybe(), maybe()).prop_map(|(id, parent)| SubagentMark { id, parent });
    let strings = (text(), text(), text(), maybe(), maybe(), maybe(), maybe());
    (origins(), strings, option::of(subagent), bodies(), vec((text(), text()), 0..3), option::of(any::<u64>()))
        .prop_map(
            |(origin, (upstream, method, path, api, model, encoding, server), subagent, body, headers, replay_of)| {
                RequestReceived {
                    origin,
                    upstream,
                    method,
                    path,
                    api,
                    model,
                    subagent,
                    body,
                    encoding,
                    headers,
                    replay_of,
                    server,
                }
            },
        )
}

fn reasons() -> impl Strategy<Value = PauseReason> {
    prop_oneof![
        select(vec![PauseReason::EveryTurn, PauseReason::NextTurn, PauseReason::Capture, PauseReason::Retry]),
        text().prop_map(|rule| PauseReason::Rule { rule }),
    ]
}

fn edit_kinds() -> impl Strategy<Value = EditKind> {
    select(vec![
        EditKind::Set,
        EditKind::Delete,
        EditKind::Restore,
        EditKind::Append,
        EditKind::Shrink,
        EditKind::Repair,
        EditKind::Patch,
        EditKind::Pin,
        EditKind::Undo,
        EditKind::Redo,
        EditKind::Reset,
    ])
}

fn override_reports() -> impl Strategy<Value = OverrideReport> {
    let skipped = || vec((text(), option::of(text())).prop_map(|(path, reason)| SkippedEdit { path, reason }), 0..3);
    let turn = (any::<u64>(), texts(), skipped()).prop_map(|(from, applied, dropped)| TurnEditReport {
        from,
        applied,
        dropped,
    });
    let turn = option::of(turn);
    (texts(), skipped(), turn).prop_map(|(applied, skipped, turn)| OverrideReport { applied, skipped, turn })
}

fn answers() -> impl Strategy<Value = RequestAnswer> {
    let count = || option::of(any::<u64>());
    let usage = (count(), count(), count(), count(), count()).prop_map(
        |(input, output, cache_read, cache_written, reasoning)| TokenUsage {
            input,
            output,
            cache_read,
            cache_written,
            reasoning,
        },
    );
    let times = (any::<u64>(), any::<u64>(), any::<u32>());
    (any::<u16>(), bodies(), usage, (maybe(), maybe(), maybe(), maybe()), times).prop_map(
        |(status, body, usage, (content_type, finish, problem, error), (first_byte_ms, total_ms, retries))| {
            RequestAnswer {
                status,
                body,
                content_type,
                usage,
                finish,
                problem,
                error,
                first_byte_ms,
                total_ms,
                retries,
            }
        },
    )
}

fn upstream_retries() -> impl Strategy<Value = UpstreamRetry> {
    (any::<u32>(), option::of(any::<u16>()), text(), any::<i64>()).prop_map(
        |(attempts, status, message, next_attempt_ms)| UpstreamRetry { attempts, status, message, next_attempt_ms },
    )
}

fn ends() -> impl Strategy<Value = RequestEnd> {
    prop_oneof![
        select(vec![
            RequestEnd::Canceled,
            RequestEnd::CanceledBefore,
            RequestEnd::ModeDisabled,
            RequestEnd::SessionDisposed,
            RequestEnd::ClientGone,
            RequestEnd::EngineStopped,
        ]),
        any::<u64>().prop_map(|by| RequestEnd::Superseded { by }),
        text().prop_map(|message| RequestEnd::Failed { message }),
    ]
}

fn steps() -> impl Strategy<Value = RequestStep> {
    let number = || option::of(any::<u64>());
    prop_oneof![
        received().prop_map(|received| RequestStep::Received(Box::new(received))),
        (reasons(), option::of(any::<i64>()), number()).prop_map(|(pause, deadline, inherits)| RequestStep::Paused {
            pause,
            deadline,
            inherits,
            handover: None
        }),
        (any::<u64>(), text(), edit_kinds()).prop_map(|(version, path, edit)| RequestStep::Edited {
            version,
            path,
            edit,
            patch: None
        }),
        select(vec![Resumer::Person, Resumer::Retry]).prop_map(|by| RequestStep::Resumed { by }),
        (option::of(bodies()), override_reports()).prop_map(|(body, overrides)| RequestStep::Sent {
            body,
            patch: None,
            overrides
        }),
        upstream_retries().prop_map(RequestStep::UpstreamRetry),
        answers().prop_map(|answer| RequestStep::Answered(Box::new(answer))),
        (ends(), option::of(bodies())).prop_map(|(end, edited)| RequestStep::Ended { end, edited }),
    ]
}

fn view_events() -> impl Strategy<Value = ViewEvent> {
    prop_oneof![
        (any::<u64>(), any::<u64>()).prop_map(|(request, edits)| ViewEvent::Diff { request, edits }),
        any::<u64>().prop_map(|through| ViewEvent::Monitor { through }),
        any::<u64>().prop_map(|runs| ViewEvent::Trimmed { runs }),
    ]
}

/// Every kind of event about requests.
pub(crate) fn request_events() -> impl Strategy<Value = Event> {
    let mode = option::of(select(RequestMode::ALL.to_vec()));
    prop_oneof![
        7 => (any::<u64>(), steps()).prop_map(|(request, step)| Event::Request(RequestEvent { request, step })),
        1 => (maybe(), mode, any::<bool>(), any::<bool>()).prop_map(|(session, mode, pause_next, capture_next)| {
            Event::RequestMode(ModeSet { session, mode, pause_next, capture_next })
        }),
        1 => (text(), maybe(), any::<u64>(), option::of(any::<u64>()))
            .prop_map(|(scope, session, count, from)| Event::Overrides(OverridesSet { scope, session, count, from })),
        1 => view_events().prop_map(Event::RequestViewed),
    ]
}

/// Request records without the fields that do not cross the wire.
pub(crate) fn request_records() -> impl Strategy<Value = RequestRecord> {
    let status = select(vec![
        RequestStatus::Received,
        RequestStatus::Paused,
        RequestStatus::Sent,
        RequestStatus::Answered,
        RequestStatus::Ended,
    ]);
    let start = (any::<u64>(), any::<i64>(), status, received());
    let paused = (option::of(reasons()), option::of(any::<i64>()), any::<u64>());
    let resumed = option::of(select(vec![Resumer::Person, Resumer::Retry]));
    let ended = option::of((ends(), option::of(bodies())));
    let outcome = (
        resumed,
        option::of(bodies()),
        override_reports(),
        option::of(upstream_retries()),
        option::of(answers()),
        ended,
    );
    (start, paused, outcome).prop_map(|((request, time, status, received), (paused, deadline, edits), outcome)| {
        let (resumed, sent, overrides, upstream_retry, answer, ended) = outcome;
        let (ended, edited) = ended.unzip();
        let edited = edited.flatten();
        RequestRecord {
            request,
            time,
            last: time,
            status,
            received,
            paused,
            deadline,
            edits,
            resumed,
            sent,
            edited,
            patch: None,
            inherits: None,
            handover: None,
            overrides,
            upstream_retry,
            answer,
            ended,
        }
    })
}
