//! The strategies of the other tests cover every variant.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sayso_review::{
    Answer, Cause, ChangeStatus, Decider, DryRunEnd, Effect, Event, FileAnswer, FileIntent, FileState, Fingerprint,
    Note, Obstacle, Operation, Outcome, PathTarget, Problem, RefreshReason, Subject, Syntax, Target, ToolProblem,
    Uncertainty,
};

use crate::arbitrary;

/// 4,000 values, the same in each run.
fn many<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..12_000).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Defines a test that the values cover all variants. The compiler checks that the list is complete.
macro_rules! covers_variants {
    ($test:ident, $values:expr, $type:ident: $($variant:ident),+ $(,)?) => {
        #[test]
        fn $test() {
            let mut missing = BTreeSet::from([$(stringify!($variant)),+]);
            for value in $values {
                missing.remove(match value { $($type::$variant { .. } => stringify!($variant)),+ });
            }
            assert_eq!(missing, BTreeSet::new());
        }
    };
}

covers_variants!(
    notes_cover_all_variants, many(&arbitrary::notes()),
    Note: Form, Mode, Executable, Symlink, Link, Binary, LargeRewrite, Generated, LockFile, Ci, Build, Permission,
    TestsRemoved, AssertionsRemoved, TestsSkipped, Secret, Hidden, HiddenName, HardLink, Owner, Attributes, CaseTwin,
    Unrepresentable, Loosened, Moved, Ambiguous, Merged, ChangedSince, UnsavedText, UnsavedTextIgnored, Overwrites
);
covers_variants!(
    problems_cover_all_variants, many(&arbitrary::problems()),
    Problem: Blocked, Exists, Missing, TextNotFound, TextNotUnique, NoText, NotText, PatchRejected, Conflicts,
    ChangedSince, ContentGone, IsAlsoADirectory
);
covers_variants!(
    obstacles_cover_all_variants,
    many(&arbitrary::problems())
        .into_iter()
        .filter_map(|problem| if let Problem::Blocked(obstacle) = problem { Some(obstacle) } else { None }),
    Obstacle: Directory, Special, NotADirectory, TooLarge, Outside, ReadOnly, Protected, Unreadable
);
covers_variants!(
    effects_cover_all_variants, many(&arbitrary::effects()),
    Effect: Writes, Deletes, Fetches, RunsFetched, Elevates, RunsCode, ChangesPermissions, RewritesHistory,
    LeavesWorkspace, NotCaptured, Kills, System
);
covers_variants!(
    path_targets_cover_all_variants,
    many(&arbitrary::effects())
        .into_iter()
        .filter_map(|effect| if let Effect::Writes { path } = effect { Some(path) } else { None }),
    PathTarget: Inside, Outside, Unknown
);
covers_variants!(
    uncertainties_cover_all_variants, many(&arbitrary::uncertainties()),
    Uncertainty: TooLong, TooDeep, TooMany, Unterminated, Unexpected, UnknownProgram, UnknownScript, UnknownArguments,
    Redefined, ChangesLookup, Unsupported, CarriageReturn, Nul
);
covers_variants!(
    tool_problems_cover_all_variants, many(&arbitrary::tool_problems()),
    ToolProblem: NotAnObject, Missing, Unknown, WrongType, NotListed
);
covers_variants!(fingerprints_cover_all_variants, many(&arbitrary::fingerprints()), Fingerprint: Absent, File, Link);
covers_variants!(file_states_cover_all_variants, many(&arbitrary::file_states()), FileState: Absent, File, Link);
covers_variants!(operations_cover_all_variants, many(&arbitrary::operations()), Operation: Create, Update, Delete, Rename);
covers_variants!(
    file_intents_cover_all_variants, many(&arbitrary::file_intents()),
    FileIntent: Create, Update, Write, Edit, Patch, Delete, Rename
);
covers_variants!(subjects_cover_all_variants, many(&arbitrary::subjects()), Subject: Files, Command, Tool);
covers_variants!(syntaxes_cover_all_variants, many(&arbitrary::syntaxes()), Syntax: Valid, Invalid, Unchecked);
covers_variants!(
    answers_cover_all_variants, many(&arbitrary::answers()),
    Answer: Approve, Files, Command, Arguments, Deny
);
covers_variants!(
    file_answers_cover_all_variants, many(&arbitrary::file_answers()),
    FileAnswer: Approve, Hunks, EditedText, EditedBytes, Deny
);
covers_variants!(
    deciders_cover_all_variants, many(&arbitrary::verdicts()).into_iter().map(|verdict| verdict.by),
    Decider: Person, Policy
);
covers_variants!(
    causes_cover_all_variants, many(&arbitrary::causes()),
    Cause: Proposal, Undo, Redo, Review, Restore, Rebase
);
covers_variants!(
    statuses_cover_all_variants, many(&arbitrary::statuses()),
    ChangeStatus: Pending, Interrupted, Permitted, Applied, Undone, Denied, Stale, Cancelled, Failed
);
covers_variants!(targets_cover_all_variants, many(&arbitrary::targets()), Target: Last, Change, Files, Call, Turn, Session);
covers_variants!(
    dry_run_ends_cover_all_variants, many(&arbitrary::dry_runs()).into_iter().map(|output| output.end),
    DryRunEnd: Exited, Signalled, TimedOut, NotStarted
);
covers_variants!(
    events_cover_all_variants, many(&arbitrary::events()),
    Event: Proposed, Refreshed, Decided, Applying, Permitted, Observed, Reviewed, Ended, Undone, Redone, Recovered,
    SessionStarted, SessionResumed, SessionEnded, TurnStarted, TurnEnded, RuleAdded, MessageQueued, MessageDelivered, Delivered, SnapshotCaptured,
    SnapshotCorrelated, SnapshotsFreed, Request, RequestMode, Overrides, RequestViewed, HunksSeen, ReadThrough, Agent
);
covers_variants!(
    outcomes_cover_all_variants,
    many(&arbitrary::events())
        .into_iter()
        .filter_map(|event| if let Event::Ended { outcome, .. } = event { Some(outcome) } else { None }),
    Outcome: Applied, Sent, Ran, Denied, Stale, Cancelled, Failed
);
covers_variants!(
    refresh_reasons_cover_all_variants,
    many(&arbitrary::events())
        .into_iter()
        .filter_map(|event| if let Event::Refreshed { reason, .. } = event { Some(reason) } else { None }),
    RefreshReason: FilesChanged, PredecessorApplied, PredecessorDropped
);
