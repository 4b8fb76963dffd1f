//! The time that a judgement takes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use sayso_policy::Act;
use sayso_shell::Script;

use crate::policy::CLAUDE;
use crate::typical::{COMMANDS, policy, starter_rules};

/// Judgements of unoptimised code on a busy machine stay far below a multiple of the 20 µs that `benches` holds.
const MAX_PER_COMMAND: Duration = Duration::from_millis(2);

#[test]
fn judging_typical_commands_is_quick() {
    let policy = policy(starter_rules());
    let scripts: Vec<Script> = COMMANDS.iter().map(|command| Script::parse(command)).collect();
    let first = Instant::now();
    black_box(policy.judge(&Act::Run { script: &scripts[0], reads: &[], writes: &[] }, &CLAUDE));
    let first = first.elapsed();
    let commands: usize = scripts.iter().map(|script| script.commands.len()).sum();
    let start = Instant::now();
    for script in &scripts {
        black_box(policy.judge(&Act::Run { script, reads: &[], writes: &[] }, &CLAUDE));
    }
    let each = start.elapsed() / u32::try_from(commands).unwrap();
    println!("first judgement {first:?}, each of {commands} commands {each:?}");
    assert!(each < MAX_PER_COMMAND, "{each:?}");
}
