//! Requests to models, and what happens to them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::redact::Redaction;
use sayso_review::{
    BodyRecord, EditKind, Event, ModeSet, OverridesSet, PauseReason, RequestAnswer, RequestEnd, RequestEvent,
    RequestLook, RequestMode, RequestRecord, RequestSeen, RequestStatus, RequestStep, Resumer, SavedEdits,
    SubagentMark, TokenUsage, TurnEditsOutcome, TurnedAway,
};

use crate::arbitrary::{maybe, origins, text, texts};

/// The pieces are the engine's own.
fn bodies() -> impl Strategy<Value = BodyRecord> {
    let redaction = (any::<u32>(), any::<u32>(), text()).prop_map(|(start, size, name)| Redaction {
        start: start as usize,
        size: size as usize,
        name,
    });
    let redactions = vec(redaction, 0..3);
    (any::<u64>(), any::<bool>(), any::<u64>(), redactions).prop_map(|(size, cut, redacted, redactions)| BodyRecord {
        size,
        pieces: Vec::new(),
        cut,
        redacted,
        redactions,
    })
}

fn seen() -> impl Strategy<Value = RequestSeen> {
    let subagent = (maybe(), maybe()).prop_map(|(id, parent)| SubagentMark { id, parent });
    let said = (text(), text(), text(), maybe(), maybe(), maybe(), maybe());
    (origins(), said, option::of(subagent), bodies(), vec((text(), text()), 0..3), option::of(any::<u64>())).prop_map(
        |(origin, (upstream, method, path, api, model, encoding, server), subagent, body, headers, replay_of)| {
            RequestSeen {
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

fn saved() -> impl Strategy<Value = SavedEdits> {
    let turn = (any::<u64>(), texts(), texts()).prop_map(|(from, applied, dropped)| TurnEditsOutcome {
        from,
        applied,
        dropped,
    });
    let turn = option::of(turn);
    (texts(), texts(), turn).prop_map(|(applied, drifted, turn)| SavedEdits { applied, drifted, turn })
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

fn turned_away() -> impl Strategy<Value = TurnedAway> {
    (any::<u32>(), option::of(any::<u16>()), text(), any::<i64>())
        .prop_map(|(tried, status, message, again)| TurnedAway { tried, status, message, again })
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
        seen().prop_map(|seen| RequestStep::Seen(Box::new(seen))),
        (reasons(), option::of(any::<i64>()), number()).prop_map(|(why, deadline, inherits)| RequestStep::Paused {
            why,
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
        (option::of(bodies()), saved()).prop_map(|(body, saved)| RequestStep::Sent { body, patch: None, saved }),
        turned_away().prop_map(RequestStep::TurnedAway),
        answers().prop_map(|answer| RequestStep::Answered(Box::new(answer))),
        (ends(), option::of(bodies())).prop_map(|(why, edited)| RequestStep::Ended { why, edited }),
    ]
}

fn looks() -> impl Strategy<Value = RequestLook> {
    prop_oneof![
        (any::<u64>(), any::<u64>()).prop_map(|(request, edits)| RequestLook::Diff { request, edits }),
        any::<u64>().prop_map(|through| RequestLook::Monitor { through }),
        any::<u64>().prop_map(|runs| RequestLook::Trimmed { runs }),
    ]
}

/// Everything that is told of requests in the stream.
pub(crate) fn request_events() -> impl Strategy<Value = Event> {
    let mode = option::of(select(RequestMode::ALL.to_vec()));
    prop_oneof![
        7 => (any::<u64>(), steps()).prop_map(|(request, step)| Event::Request(RequestEvent { request, step })),
        1 => (maybe(), mode, any::<bool>(), any::<bool>()).prop_map(|(session, mode, pause_next, capture_next)| {
            Event::RequestMode(ModeSet { session, mode, pause_next, capture_next })
        }),
        1 => (text(), maybe(), any::<u64>(), option::of(any::<u64>()))
            .prop_map(|(scope, session, count, from)| Event::Overrides(OverridesSet { scope, session, count, from })),
        1 => looks().prop_map(Event::RequestLook),
    ]
}

/// What is recorded of a request.
pub(crate) fn request_records() -> impl Strategy<Value = RequestRecord> {
    let status = select(vec![
        RequestStatus::Seen,
        RequestStatus::Paused,
        RequestStatus::Sent,
        RequestStatus::Answered,
        RequestStatus::Ended,
    ]);
    let start = (any::<u64>(), any::<i64>(), status, seen());
    let paused = (option::of(reasons()), option::of(any::<i64>()), any::<u64>());
    let resumed = option::of(select(vec![Resumer::Person, Resumer::Retry]));
    let ended = option::of((ends(), option::of(bodies())));
    let over = (resumed, option::of(bodies()), saved(), option::of(turned_away()), option::of(answers()), ended);
    (start, paused, over).prop_map(|((request, time, status, seen), (paused, deadline, edits), over)| {
        let (resumed, sent, saved, turned_away, answer, ended) = over;
        let (ended, edited) = ended.unzip();
        let edited = edited.flatten();
        RequestRecord {
            request,
            time,
            last: time,
            status,
            seen,
            paused,
            deadline,
            edits,
            resumed,
            sent,
            edited,
            patch: None,
            inherits: None,
            handover: None,
            saved,
            turned_away,
            answer,
            ended,
        }
    })
}
