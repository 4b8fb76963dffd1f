//! The time that a judgement takes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use sayso_policy::{PolicyQuery, Rule, Ruling};
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
    black_box(policy.evaluate(&PolicyQuery::Run { script: &scripts[0], reads: &[], writes: &[] }, &CLAUDE));
    let first = first.elapsed();
    let commands: usize = scripts.iter().map(|script| script.commands.len()).sum();
    let start = Instant::now();
    for script in &scripts {
        black_box(policy.evaluate(&PolicyQuery::Run { script, reads: &[], writes: &[] }, &CLAUDE));
    }
    let each = start.elapsed() / u32::try_from(commands).unwrap();
    println!("first judgement {first:?}, each of {commands} commands {each:?}");
    assert!(each < MAX_PER_COMMAND, "{each:?}");
}

/// Rules of all kinds, as in `benches/src/policy.rs`.
fn thousand_rules() -> Vec<Rule> {
    let one = |number: usize| {
        let mut rule = Rule::new([Ruling::Allow, Ruling::Later, Ruling::Ask, Ruling::Deny][number / 5 % 4]);
        match number % 5 {
            0 => rule.write = vec![format!("crates/module{number}/**")],
            1 => rule.write = vec![format!("**/*.kind{number}")],
            2 => rule.read = vec![format!("secrets/{number}/**")],
            3 => rule.run = vec![format!("cargo task{number}"), format!("tool{number} * check")],
            _ => rule.tool = vec![format!("mcp__server{number}__*")],
        }
        rule
    };
    (0..1_000).map(one).collect()
}

#[test]
fn evaluation_among_thousand_rules_is_fast() {
    const ROUNDS: u32 = 200;
    let policy = policy(thousand_rules());
    for text in [
        "cargo test --workspace",
        "cd crates/review && cargo task3 --all 2>&1 | tail -n 5 && git diff --stat $(git rev-parse HEAD)",
    ] {
        let script = Script::parse(text);
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(policy.evaluate(&PolicyQuery::Run { script: &script, reads: &[], writes: &[] }, &CLAUDE));
        }
        let each = start.elapsed() / ROUNDS;
        println!("{} commands among a thousand rules: {each:?}", script.commands.len());
        assert!(each < MAX_PER_COMMAND * u32::try_from(script.commands.len()).unwrap(), "{each:?}");
    }
}
