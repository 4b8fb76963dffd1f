//! Random commands of many clients, compared step by step with a reference model.
//!
//! After every step each change has at most one verdict, and later verdicts fail without effect. Every change has the
//! status and preview of the reference. The tree equals the reference to the byte, and every subscription delivered
//! every event once.

use proptest::prelude::*;
use sayso_review::Ruling;

use crate::model_both::Both;
use crate::model_files::FileId;
use crate::model_reference::{By, Choice};
use crate::model_steps::{Intention, Pick, Step, steps};

const ASK: FileId = 0;
const ASK_NEW: FileId = 1;
const LATER: FileId = 2;
const ALLOW: FileId = 4;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn random_commands_match_reference(steps in steps()) {
        take(&steps);
    }
}

fn take(steps: &[Step]) {
    let mut both = Both::new();
    for step in steps {
        both.take(step);
        both.check();
    }
    both.check_all();
}

fn submit(file: FileId, intention: Intention) -> Step {
    Step::Submit { session: 0, file, intention, by: By::Gate, deadline: None }
}

fn write(file: FileId, value: char) -> Step {
    submit(file, Intention::Write([value; 3]))
}

fn approve(change: u64) -> Step {
    Step::Decide { client: 0, pick: Pick::Change(change), choice: Choice::Approve }
}

fn run(ruling: Ruling, deadline: Option<i64>) -> Step {
    Step::Run { session: 0, ruling, deadline }
}

// Regressions that the test above found.

#[test]
fn stale_change_has_no_steps() {
    take(&[write(ASK, 'b'), Step::Write { file: ASK, to: None }, approve(1)]);
}

#[test]
fn stale_plan_is_no_effect_of_command() {
    take(&[
        write(ASK, 'b'),
        run(Ruling::Allow, None),
        Step::Write { file: ASK, to: Some(['c'; 3]) },
        approve(1),
        Step::Finish { pick: Pick::Change(2), obeys: false },
    ]);
}

#[test]
fn first_verdict_after_restart_refreshes_dependents() {
    take(&[write(ASK_NEW, 'a'), write(ASK_NEW, 'b'), Step::Restart { politely: false }, approve(1)]);
}

#[test]
fn verdict_after_deadline_fails_without_tick() {
    take(&[run(Ruling::Ask, Some(1)), Step::Advance { by: 1 }, approve(1)]);
}

#[test]
fn command_revert_of_concurrent_change_is_attributed() {
    take(&[
        run(Ruling::Allow, None),
        write(ASK_NEW, 'a'),
        approve(2),
        Step::Write { file: ASK_NEW, to: None },
        Step::Finish { pick: Pick::Change(1), obeys: false },
    ]);
}

#[test]
fn deadline_applies_to_allowed_dependent_change() {
    let waits = Intention::Edit(0, 'b');
    take(&[
        write(LATER, 'b'),
        Step::EndTurn { session: 0 },
        Step::Write { file: LATER, to: None },
        Step::Submit { session: 1, file: LATER, intention: waits, by: By::Gate, deadline: Some(5) },
        Step::List,
        Step::Tick { by: 5 },
    ]);
}

#[test]
fn removed_file_is_detected_after_restart() {
    take(&[
        write(ASK_NEW, 'a'),
        write(ASK_NEW, 'b'),
        approve(1),
        Step::Restart { politely: true },
        Step::Undo { pick: None },
        Step::Tick { by: 0 },
    ]);
}

#[test]
fn approved_change_is_not_reviewed_again() {
    take(&[
        write(LATER, 'b'),
        Step::EndTurn { session: 0 },
        // The change is pending because it depends on the review.
        Step::Write { file: LATER, to: None },
        Step::Submit { session: 1, file: LATER, intention: Intention::Edit(0, 'c'), by: By::Gate, deadline: None },
        Step::Write { file: LATER, to: Some(['a'; 3]) },
        Step::Tick { by: 0 },
        approve(3),
        Step::EndTurn { session: 1 },
    ]);
}

#[test]
fn undo_targets_latest_application() {
    let mut steps = vec![write(ASK, 'b')];
    steps.extend(['a', 'b'].iter().cycle().take(70).map(|value| write(ALLOW, *value)));
    steps.extend([approve(1), Step::Undo { pick: None }]);
    take(&steps);
}
