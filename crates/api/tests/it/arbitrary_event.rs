//! Entries of the stream, snapshots, and what surfaces ask for.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sayso_review::OutsideFile;
use sayso_review::{
    DryRunEnd, DryRunOutput, Event, Freed, FromNowOn, IfChanged, Outcome, Refresh, Rule, RuleScope, Snapshot,
    SnapshotRecord, Target, Tier,
};

use crate::arbitrary::{
    apply_records, causes, file_records, fingerprints, hash, maybe, origins, outside_paths, path, paths, performers,
    recorded_steps, request_events, ruling_records, rulings, subjects, text, texts, uncaptured, verdicts,
};

fn freed() -> impl Strategy<Value = Freed> {
    select(vec![Freed::Replaced, Freed::CallEnded, Freed::SessionEnded, Freed::Restarted])
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
    (snapshots(), any::<i64>(), maybe(), option::of(freed()))
        .prop_map(|(snapshot, time, of_call, freed)| SnapshotRecord { snapshot, time, of_call, freed, number: 0 })
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        select(vec![Outcome::Applied, Outcome::Sent, Outcome::Denied, Outcome::Cancelled]),
        (option::of(any::<i32>()), option::of(".*")).prop_map(|(code, note)| Outcome::Ran { code, note }),
        paths().prop_map(|files| Outcome::Stale { files }),
        text().prop_map(|reason| Outcome::Failed { reason }),
    ]
}

fn refreshes() -> impl Strategy<Value = Refresh> {
    prop_oneof![
        Just(Refresh::FilesChanged),
        any::<u64>().prop_map(|before| Refresh::Applied { before }),
        any::<u64>().prop_map(|before| Refresh::Without { before }),
    ]
}

fn rules() -> impl Strategy<Value = Rule> {
    (rulings(), texts(), maybe()).prop_map(|(then, run, session)| Rule { run, session, ..Rule::new(then) })
}

fn proposed() -> impl Strategy<Value = Event> {
    let about = (origins(), causes(), vec(file_records(), 0..3), hash(), subjects());
    let later = (option::of(ruling_records()), performers(), option::of(any::<i64>()), vec(any::<u64>(), 0..3));
    (any::<u64>(), about, later).prop_map(|(change, about, later)| {
        let (origin, cause, files, preview, subject) = about;
        let (ruled, performer, deadline, after) = later;
        Event::Proposed {
            change,
            origin,
            cause,
            files,
            preview,
            subject,
            ruled,
            performer,
            intent: None,
            deadline,
            after,
        }
    })
}

/// Every kind of event.
pub(crate) fn events() -> impl Strategy<Value = Event> {
    let id = any::<u64>;
    prop_oneof![
        proposed().boxed(),
        (id(), vec(file_records(), 0..3), hash(), refreshes())
            .prop_map(|(change, files, preview, why)| Event::Refreshed { change, files, preview, why })
            .boxed(),
        (id(), verdicts(), text()).prop_map(|(change, verdict, told)| Event::Decided { change, verdict, told }).boxed(),
        (id(), apply_records()).prop_map(|(change, record)| Event::Applying { change, record }).boxed(),
        (id(), vec(recorded_steps(), 0..3), outside_paths(), option::of(hash()))
            .prop_map(|(change, expected, outside, before)| {
                let outside = outside.into_iter().map(|path| OutsideFile { path, before }).collect();
                Event::Permitted { change, expected, outside }
            })
            .boxed(),
        (id(), apply_records(), paths(), vec(uncaptured(), 0..3))
            .prop_map(|(change, record, differs, uncaptured)| Event::Observed { change, record, differs, uncaptured })
            .boxed(),
        (id(), id()).prop_map(|(change, by)| Event::Reviewed { change, by }).boxed(),
        (id(), outcomes(), maybe()).prop_map(|(change, outcome, told)| Event::Ended { change, outcome, told }).boxed(),
        (id(), id(), paths()).prop_map(|(change, by, paths)| Event::Undone { change, by, paths }).boxed(),
        (id(), id(), paths()).prop_map(|(change, by, paths)| Event::Redone { change, by, paths }).boxed(),
        (id(), any::<bool>(), paths(), paths())
            .prop_map(|(change, finished, left_alone, saved)| Event::Recovered { change, finished, left_alone, saved })
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
            .prop_map(|(session, change, call, text)| Event::Message { session, change, call, text })
            .boxed(),
        (text(), option::of(id()), id())
            .prop_map(|(session, change, message)| Event::Told { session, change, message })
            .boxed(),
        (text(), id()).prop_map(|(session, through)| Event::Delivered { session, through }).boxed(),
        snapshots().prop_map(Event::Captured).boxed(),
        (id(), text(), maybe())
            .prop_map(|(snapshot, call, session)| Event::Correlated { snapshot, call, session })
            .boxed(),
        (vec(id(), 0..3), freed()).prop_map(|(snapshots, because)| Event::Freed { snapshots, because }).boxed(),
        request_events().boxed(),
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

pub(crate) fn from_now_on() -> impl Strategy<Value = FromNowOn> {
    (select(vec![RuleScope::Session, RuleScope::Always]), rulings())
        .prop_map(|(scope, ruling)| FromNowOn { scope, ruling })
}

pub(crate) fn dry_runs() -> impl Strategy<Value = DryRunOutput> {
    let end = prop_oneof![
        any::<i32>().prop_map(|code| DryRunEnd::Exited { code }),
        any::<i32>().prop_map(|signal| DryRunEnd::Signalled { signal }),
        Just(DryRunEnd::TimedOut),
        text().prop_map(|reason| DryRunEnd::NotStarted { reason }),
    ];
    (text(), text(), end, any::<bool>()).prop_map(|(output, errors, end, is_cut)| DryRunOutput {
        output,
        errors,
        end,
        is_cut,
    })
}
