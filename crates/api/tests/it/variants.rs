//! The values that the other tests send are of every kind that there is.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sayso_review::{
    Answer, Cause, ChangeStatus, Decider, Doubt, DryRunEnd, Effect, Event, FileAnswer, FileIntent, FileState,
    Fingerprint, Note, Obstacle, Operation, Outcome, Place, Problem, Refresh, Subject, Syntax, Target, ToolProblem,
};

use crate::arbitrary;

/// Many values, the same ones every time.
fn many<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..1500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Tests that all variants of a type are among values. That the list is whole, the compiler sees.
macro_rules! every_kind {
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

every_kind!(
    every_note_is_sent, many(&arbitrary::notes()),
    Note: Form, Mode, Executable, Symlink, Link, Binary, LargeRewrite, Generated, LockFile, Ci, Build, Permission,
    TestsRemoved, AssertionsRemoved, TestsSkipped, Secret, Hidden, HiddenName, HardLink, Owner, Attributes, CaseTwin,
    Unrepresentable, Loosened, Moved, Ambiguous, Merged, ChangedSince, Overwrites
);
every_kind!(
    every_problem_is_sent, many(&arbitrary::problems()),
    Problem: Blocked, Exists, Missing, TextNotFound, TextNotUnique, NoText, NotText, PatchRejected, Conflicts,
    ChangedSince, ContentGone, IsAlsoADirectory
);
every_kind!(
    every_obstacle_is_sent,
    many(&arbitrary::problems())
        .into_iter()
        .filter_map(|problem| if let Problem::Blocked(obstacle) = problem { Some(obstacle) } else { None }),
    Obstacle: Directory, Special, NotADirectory, TooLarge, Outside, ReadOnly, Protected, Unreadable
);
every_kind!(
    every_effect_is_sent, many(&arbitrary::effects()),
    Effect: Writes, Deletes, Fetches, RunsFetched, Elevates, RunsCode, ChangesPermissions, RewritesHistory,
    LeavesWorkspace, NotCaptured, Kills, System
);
every_kind!(
    every_place_is_sent,
    many(&arbitrary::effects())
        .into_iter()
        .filter_map(|effect| if let Effect::Writes { path } = effect { Some(path) } else { None }),
    Place: Inside, Outside, Unknown
);
every_kind!(
    every_doubt_is_sent, many(&arbitrary::doubts()),
    Doubt: TooLong, TooDeep, TooMany, Unterminated, Unexpected, UnknownProgram, UnknownScript, UnknownArguments,
    Redefined, ChangesLookup, Unsupported, CarriageReturn, Nul
);
every_kind!(
    every_problem_of_a_tool_is_sent, many(&arbitrary::tool_problems()),
    ToolProblem: NotAnObject, Missing, Unknown, WrongType, NotListed
);
every_kind!(every_fingerprint_is_sent, many(&arbitrary::fingerprints()), Fingerprint: Absent, File, Link);
every_kind!(every_state_of_a_file_is_sent, many(&arbitrary::file_states()), FileState: Absent, File, Link);
every_kind!(every_operation_is_sent, many(&arbitrary::operations()), Operation: Create, Update, Delete, Rename);
every_kind!(
    every_intent_about_a_file_is_sent, many(&arbitrary::file_intents()),
    FileIntent: Create, Update, Write, Edit, Patch, Delete, Rename
);
every_kind!(every_subject_is_sent, many(&arbitrary::subjects()), Subject: Files, Command, Tool);
every_kind!(every_syntax_is_sent, many(&arbitrary::syntaxes()), Syntax: Fine, Wrong, Unchecked);
every_kind!(
    every_answer_is_sent, many(&arbitrary::answers()),
    Answer: Approve, Files, Command, Arguments, Deny
);
every_kind!(
    every_answer_about_a_file_is_sent, many(&arbitrary::file_answers()),
    FileAnswer: Approve, Hunks, EditedText, EditedBytes, Deny
);
every_kind!(
    every_decider_is_sent, many(&arbitrary::verdicts()).into_iter().map(|verdict| verdict.by),
    Decider: Person, Policy
);
every_kind!(
    every_cause_is_sent, many(&arbitrary::causes()),
    Cause: Proposal, Undo, Redo, Review, Restore, Rebase
);
every_kind!(
    every_status_is_sent, many(&arbitrary::statuses()),
    ChangeStatus: Pending, Interrupted, Permitted, Applied, Undone, Denied, Stale, Cancelled, Failed
);
every_kind!(every_target_is_sent, many(&arbitrary::targets()), Target: Last, Change, Files, Call, Turn, Session);
every_kind!(
    every_end_of_a_rehearsal_is_sent, many(&arbitrary::dry_runs()).into_iter().map(|output| output.end),
    DryRunEnd: Exited, Signalled, TimedOut, NotStarted
);
every_kind!(
    every_event_is_sent, many(&arbitrary::events()),
    Event: Proposed, Refreshed, Decided, Applying, Permitted, Observed, Reviewed, Ended, Undone, Redone, Recovered,
    SessionStarted, SessionResumed, SessionEnded, TurnStarted, TurnEnded, RuleAdded, Message, Told, Delivered, Captured,
    Correlated, Freed, Request, RequestMode, Overrides, RequestLook
);
every_kind!(
    every_outcome_is_sent,
    many(&arbitrary::events())
        .into_iter()
        .filter_map(|event| if let Event::Ended { outcome, .. } = event { Some(outcome) } else { None }),
    Outcome: Applied, Sent, Ran, Denied, Stale, Cancelled, Failed
);
every_kind!(
    every_reason_to_refresh_is_sent,
    many(&arbitrary::events())
        .into_iter()
        .filter_map(|event| if let Event::Refreshed { why, .. } = event { Some(why) } else { None }),
    Refresh: FilesChanged, Applied, Without
);
