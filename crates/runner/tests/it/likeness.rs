//! Runs give what bash gives: exit code, output and files.
//!
//! # Justified differences
//!
//! - Line numbers of messages are not compared: bash counts differently within substitutions.
//! - Scripts of the generator compare standard error only where one process writes it: stages of a pipeline interleave.
//! - `set -e` within a command behind `!` takes effect there in bash; here the condition wins.
//! - `! { …; } < missing` has status 1 in bash and here; as the only command of a subshell bash gives 0.
//! - `set -e; ( ! a | { b; c; } )`: as the only command of a subshell, bash ends the group when `b` fails; here `!` makes it a
//!   condition, as it does in bash outside such a subshell.
//! - Programs of one pipeline that write the same file, or a pipe without a reader, race in both.
//! - `cat <&-` prints one message more under bash: a closed standard descriptor is emulated.
//! - Messages for unknown options of builtins are not copied word by word.

use sayso_shell::Program;

use crate::day::DAY;
use crate::generator::{Generator, seeds};
use crate::stage::{Outcome, Recorder, Stage};

fn both(script: &str) -> (Outcome, Outcome) {
    let program = Program::parse(script).unwrap_or_else(|error| panic!("{script}: {error} at {:?}", error.span));
    let (ours, _) = Stage::new().run(&program, &Recorder::default());
    (ours, Stage::new().bash(script))
}

#[test]
fn day_of_an_agent_equals_bash() {
    let mut differences = Vec::new();
    for script in DAY {
        if let Err(error) = Program::parse(script) {
            differences.push(format!("{script}\n  does not parse: {error} at {:?}", error.span));
            continue;
        }
        let (ours, theirs) = both(script);
        if ours != theirs {
            differences.push(format!("{script}\n  ours: {ours:?}\n  bash: {theirs:?}"));
        }
    }
    println!("likeness: {} scripts of a day, {} differences", DAY.len(), differences.len());
    assert!(DAY.len() >= 150);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn generated_scripts_equal_bash() {
    let seeds = seeds(250);
    let count = seeds.end - seeds.start;
    let mut differences = Vec::new();
    for seed in seeds {
        let script = Generator::new(seed).script();
        let (mut ours, mut theirs) = both(&script);
        if script.contains('|') || script.contains("set -x") {
            ours.stderr.clear();
            theirs.stderr.clear();
        }
        // Stages of a pipeline that write to one stream interleave: the bytes are compared, not their order.
        if script.contains('|') && (script.contains("2>&1") || script.contains("&>")) {
            (ours, theirs) = (ours.without_order(), theirs.without_order());
        }
        if ours != theirs {
            differences.push(format!("seed {seed}:\n{script}\n  ours: {ours:?}\n  bash: {theirs:?}"));
        }
        if differences.len() > 20 {
            break;
        }
    }
    println!("likeness: {count} generated scripts, {} differences", differences.len());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
