//! Random commands of many clients, compared step by step with a simple reference.
//!
//! After every step: each change has one verdict and what came later is an error that changes nothing, every change stands and
//! shows what the reference says, the tree is the reference's to the byte, and every follower got every event once.

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
    fn random_commands_of_many_clients_do_what_the_reference_does(steps in steps()) {
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

// What the test above found, and what was wrong.

#[test]
fn a_stale_change_did_nothing_to_the_tree() {
    take(&[write(ASK, 'b'), Step::Write { file: ASK, to: None }, approve(1)]);
}

#[test]
fn what_a_stale_plan_meant_to_do_is_not_what_happened_while_a_command_ran() {
    take(&[
        write(ASK, 'b'),
        run(Ruling::Allow, None),
        Step::Write { file: ASK, to: Some(['c'; 3]) },
        approve(1),
        Step::Finish { pick: Pick::Change(2), obeys: false },
    ]);
}

#[test]
fn the_first_verdict_after_a_restart_refreshes_what_waited_for_it() {
    take(&[write(ASK_NEW, 'a'), write(ASK_NEW, 'b'), Step::Restart { politely: false }, approve(1)]);
}

#[test]
fn a_verdict_after_the_deadline_is_too_late_even_if_nothing_ticked() {
    take(&[run(Ruling::Ask, Some(1)), Step::Advance { by: 1 }, approve(1)]);
}

#[test]
fn what_a_command_put_back_that_was_changed_meanwhile_is_its_doing() {
    take(&[
        run(Ruling::Allow, None),
        write(ASK_NEW, 'a'),
        approve(2),
        Step::Write { file: ASK_NEW, to: None },
        Step::Finish { pick: Pick::Change(1), obeys: false },
    ]);
}

#[test]
fn a_deadline_holds_for_what_policy_lets_through_and_has_to_wait() {
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
fn a_file_that_is_gone_is_noticed_after_a_restart() {
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
fn what_a_person_approved_is_not_reviewed_again_at_the_end_of_the_turn() {
    take(&[
        write(LATER, 'b'),
        Step::EndTurn { session: 0 },
        // It cannot be made yet and waits for the review.
        Step::Write { file: LATER, to: None },
        Step::Submit { session: 1, file: LATER, intention: Intention::Edit(0, 'c'), by: By::Gate, deadline: None },
        Step::Write { file: LATER, to: Some(['a'; 3]) },
        Step::Tick { by: 0 },
        approve(3),
        Step::EndTurn { session: 1 },
    ]);
}

#[test]
fn what_was_applied_last_is_undone_however_long_ago_it_was_proposed() {
    let mut steps = vec![write(ASK, 'b')];
    steps.extend(['a', 'b'].iter().cycle().take(70).map(|value| write(ALLOW, *value)));
    steps.extend([approve(1), Step::Undo { pick: None }]);
    take(&steps);
}
