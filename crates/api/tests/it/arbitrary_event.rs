//! Strategies for events, snapshots and the parameters of calls.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::{
    AgentEntry, AgentEntryKind, DryRunEnd, DryRunOutput, Event, FreeReason, IfChanged, Outcome, OutsideFile,
    RefreshReason, RememberAs, Rule, RuleScope, Snapshot, SnapshotRecord, Target, Tier,
};

use crate::arbitrary::{
    apply_records, causes, file_records, fingerprints, hash, maybe, origins, outside_paths, path, paths, performers,
    recorded_steps, request_events, ruling_records, rulings, subjects, text, texts, uncaptured, verdicts,
};

fn freed() -> impl Strategy<Value = FreeReason> {
    select(vec![FreeReason::Replaced, FreeReason::CallEnded, FreeReason::SessionEnded, FreeReason::Restarted])
}

fn snapshots() -> impl Strategy<Value = Snapshot> {
    let tier = select(vec![Tier::Answer, Tier::Hook, Tier::Start]);
    (any::<u64>(), path(), path(), fingerprints(), text(), tier, maybe(), maybe()).prop_map(
        |(snapshot, path, location, state, tool, tier, call, session)| Snapshot {
            snapshot,
            path,
            location,
            state,
            tool,
            tier,
            call,
            session,
        },
    )
}

pub(crate) fn snapshot_records() -> impl Strategy<Value = SnapshotRecord> {
    (snapshots(), any::<i64>(), maybe(), option::of(freed())).prop_map(|(snapshot, time, correlated_call, freed)| {
        SnapshotRecord { snapshot, time, correlated_call, freed, number: 0 }
    })
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        select(vec![Outcome::Applied, Outcome::Sent, Outcome::Denied, Outcome::Cancelled]),
        (option::of(any::<i32>()), option::of(".*")).prop_map(|(exit_code, note)| Outcome::Ran { exit_code, note }),
        paths().prop_map(|files| Outcome::Stale { files }),
        text().prop_map(|reason| Outcome::Failed { reason }),
    ]
}

fn refreshes() -> impl Strategy<Value = RefreshReason> {
    prop_oneof![
        Just(RefreshReason::FilesChanged),
        any::<u64>().prop_map(|predecessor| RefreshReason::PredecessorApplied { predecessor }),
        any::<u64>().prop_map(|predecessor| RefreshReason::PredecessorDropped { predecessor }),
    ]
}

fn rules() -> impl Strategy<Value = Rule> {
    (rulings(), texts(), maybe()).prop_map(|(then, run, session)| Rule { run, session, ..Rule::new(then) })
}

fn proposed() -> impl Strategy<Value = Event> {
    let subject = (origins(), causes(), vec(file_records(), 0..3), hash(), subjects());
    let state = (option::of(ruling_records()), performers(), option::of(any::<i64>()), vec(any::<u64>(), 0..3));
    (any::<u64>(), subject, state).prop_map(|(change, subject, state)| {
        let (origin, cause, files, preview, subject) = subject;
        let (ruling, performer, deadline, predecessors) = state;
        Event::Proposed {
            change,
            origin,
            cause,
            files,
            preview,
            subject,
            ruling,
            performer,
            intent: None,
            deadline,
            predecessors,
        }
    })
}

fn agent_entries() -> impl Strategy<Value = AgentEntry> {
    let kinds = [
        AgentEntryKind::Log,
        AgentEntryKind::Settings,
        AgentEntryKind::Todos,
        AgentEntryKind::Reads,
        AgentEntryKind::Cleared,
    ];
    (text(), select(kinds.to_vec()), any::<u32>()).prop_map(|(session, kind, version)| AgentEntry {
        session,
        kind,
        version,
        content: serde_json::Value::Null,
        blob: None,
    })
}

/// Every kind of event.
pub(crate) fn events() -> impl Strategy<Value = Event> {
    let id = any::<u64>;
    prop_oneof![
        proposed().boxed(),
        (id(), vec(file_records(), 0..3), hash(), refreshes())
            .prop_map(|(change, files, preview, reason)| Event::Refreshed { change, files, preview, reason })
            .boxed(),
        (id(), verdicts(), text())
            .prop_map(|(change, verdict, agent_message)| Event::Decided { change, verdict, agent_message })
            .boxed(),
        (id(), apply_records(), maybe())
            .prop_map(|(change, record, note)| Event::Applying { change, record, note })
            .boxed(),
        (id(), vec(recorded_steps(), 0..3), outside_paths(), option::of(hash()), maybe())
            .prop_map(|(change, expected, outside, before, editor)| {
                let outside = outside.into_iter().map(|path| OutsideFile { path, before }).collect();
                Event::Permitted { change, expected, outside, editor }
            })
            .boxed(),
        (id(), apply_records(), paths(), vec(uncaptured(), 0..3))
            .prop_map(|(change, record, differing_files, uncaptured)| Event::Observed {
                change,
                record,
                differing_files,
                uncaptured
            })
            .boxed(),
        (id(), id()).prop_map(|(change, by)| Event::Reviewed { change, by }).boxed(),
        (id(), outcomes(), maybe())
            .prop_map(|(change, outcome, agent_message)| Event::Ended { change, outcome, agent_message })
            .boxed(),
        (id(), id(), paths()).prop_map(|(change, by, paths)| Event::Undone { change, by, paths }).boxed(),
        (id(), id(), paths()).prop_map(|(change, by, paths)| Event::Redone { change, by, paths }).boxed(),
        (id(), any::<bool>(), paths(), paths())
            .prop_map(|(change, finished, skipped_files, rescued_files)| Event::Recovered {
                change,
                finished,
                skipped_files,
                rescued_files
            })
            .boxed(),
        (text(), maybe(), maybe(), maybe())
            .prop_map(|(session, agent, location, parent)| Event::SessionStarted { session, agent, location, parent })
            .boxed(),
        text().prop_map(|session| Event::SessionResumed { session }).boxed(),
        text().prop_map(|session| Event::SessionEnded { session }).boxed(),
        (text(), text()).prop_map(|(session, turn)| Event::TurnStarted { session, turn }).boxed(),
        (text(), text()).prop_map(|(session, turn)| Event::TurnEnded { session, turn }).boxed(),
        (text(), rules()).prop_map(|(session, rule)| Event::RuleAdded { session, rule }).boxed(),
        (text(), option::of(id()), maybe(), text())
            .prop_map(|(session, change, call, text)| Event::MessageQueued { session, change, call, text })
            .boxed(),
        (text(), option::of(id()), id())
            .prop_map(|(session, change, message)| Event::MessageDelivered { session, change, message })
            .boxed(),
        (text(), id()).prop_map(|(session, through)| Event::Delivered { session, through }).boxed(),
        snapshots().prop_map(Event::SnapshotCaptured).boxed(),
        (id(), text(), maybe())
            .prop_map(|(snapshot, call, session)| Event::SnapshotCorrelated { snapshot, call, session })
            .boxed(),
        (vec(id(), 0..3), freed()).prop_map(|(snapshots, reason)| Event::SnapshotsFreed { snapshots, reason }).boxed(),
        request_events().boxed(),
        (id(), path(), hash(), vec(any::<usize>(), 0..3))
            .prop_map(|(change, path, file, hunks)| Event::HunksSeen { change, path, file, hunks })
            .boxed(),
        id().prop_map(|through| Event::ReadThrough { through }).boxed(),
        agent_entries().prop_map(Event::Agent).boxed(),
    ]
}

pub(crate) fn targets() -> impl Strategy<Value = Target> {
    prop_oneof![
        Just(Target::Last),
        any::<u64>().prop_map(|change| Target::Change { change }),
        (any::<u64>(), paths()).prop_map(|(change, paths)| Target::Files { change, paths }),
        text().prop_map(|call| Target::Call { call }),
        option::of(any::<u64>()).prop_map(|change| Target::Turn { change }),
        text().prop_map(|session| Target::Session { session }),
    ]
}

pub(crate) fn if_changed() -> impl Strategy<Value = IfChanged> {
    select(vec![IfChanged::Refuse, IfChanged::Merge])
}

pub(crate) fn remember_as() -> impl Strategy<Value = RememberAs> {
    (select(vec![RuleScope::Session, RuleScope::Always]), rulings())
        .prop_map(|(scope, ruling)| RememberAs { scope, ruling })
}

pub(crate) fn dry_runs() -> impl Strategy<Value = DryRunOutput> {
    let end = prop_oneof![
        any::<i32>().prop_map(|code| DryRunEnd::Exited { code }),
        any::<i32>().prop_map(|signal| DryRunEnd::Signalled { signal }),
        Just(DryRunEnd::TimedOut),
        text().prop_map(|reason| DryRunEnd::NotStarted { reason }),
    ];
    (text(), text(), end, any::<bool>()).prop_map(|(output, errors, end, is_truncated)| DryRunOutput {
        output,
        errors,
        end,
        is_truncated,
    })
}
