//! Cost of one decision among a thousand rules.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use sayso_review::{
    Defaults, Layer, LayerTrust, PathTarget, Policy, PolicyQuery, Principal, Rule, Ruling, Script, WsPath,
};

use crate::clock::{self, median, microseconds};
use crate::table::{Check, Section, Target, thousands};

const RULES: usize = 1_000;
const DECISIONS: u32 = 1_000;

/// Rules of all kinds with distinct patterns.
fn rules() -> Vec<Rule> {
    (0..RULES)
        .map(|number| {
            let then = [Ruling::Allow, Ruling::Later, Ruling::Ask, Ruling::Deny][number / 5 % 4];
            let mut rule = Rule::new(then);
            match number % 5 {
                0 => rule.write = vec![format!("crates/module{number}/**"), format!("module{number}/src/*.rs")],
                1 => rule.write = vec![format!("**/*.kind{number}"), format!("docs/{number}/**/generated_*.md")],
                2 => rule.read = vec![format!("secrets/{number}/**"), format!("**/{number}.pem")],
                3 => rule.run = vec![format!("cargo task{number}"), format!("tool{number} * check")],
                _ => rule.tool = vec![format!("mcp__server{number}__*"), format!("*_verb{number}")],
            }
            rule
        })
        .collect()
}

/// Rules that all match the same queries.
fn alike() -> Vec<Rule> {
    let alike = |number: usize| {
        let mut rule = Rule::new(if number.is_multiple_of(2) { Ruling::Later } else { Ruling::Ask });
        (rule.write, rule.run) = (vec!["**".to_owned()], vec!["cargo test".to_owned()]);
        rule
    };
    (0..RULES).map(alike).collect()
}

fn policy(rules: Vec<Rule>) -> Result<Policy> {
    let layer = Layer { file: "bench".to_owned(), trust: LayerTrust::Trusted, defaults: Defaults::default(), rules };
    Ok(Policy::new(&[layer], &[WsPath::parse(".state/sayso")?])?)
}

/// Measures decisions of every kind.
pub fn section(rounds: usize) -> Result<Section> {
    let mut section =
        Section::new(format!("Policy: one decision among {} rules", thousands(RULES)), &["rules"], "CPU µs")
            .note(format!("median of {rounds} rounds of {DECISIONS} decisions"));
    let place = |path: &str| Ok::<_, anyhow::Error>(PathTarget::Inside(WsPath::parse(path)?));
    let (inside, many) =
        ([place("crates/module555/src/deep/down/lib.rs")?], [place("docs/guide/x.md")?, place("a/b.rs")?]);
    let simple = Script::parse("cargo test --workspace");
    let script = Script::parse(
        "cd crates/review && cargo task3 --all 2>&1 | tail -n 5 && git diff --stat $(git rev-parse HEAD)",
    );
    ensure!(script.commands.len() == 5, "the script has five commands");
    let queries = [
        ("write one file", PolicyQuery::Write { targets: &inside }),
        ("read one file", PolicyQuery::Read { targets: &inside }),
        ("write two files", PolicyQuery::Write { targets: &many }),
        ("run one command", PolicyQuery::Run { script: &simple, reads: &[], writes: &[] }),
        ("run a script of five commands", PolicyQuery::Run { script: &script, reads: &[], writes: &[] }),
        ("call a tool", PolicyQuery::Tool { name: "mcp__server499__list", reads: &[], writes: &[] }),
    ];
    let principal = Principal { agent: Some("claude"), session: Some("session") };
    for (kind, policy) in [("apart", policy(rules())?), ("all match", policy(alike())?)] {
        for (name, query) in &queries {
            let mut times: Vec<Duration> = (0..rounds)
                .map(|_| {
                    clock::time(|| (0..DECISIONS).for_each(|_| drop(black_box(policy.evaluate(query, &principal))))).1
                        / DECISIONS
                })
                .collect();
            let time = median(&mut times).as_secs_f64() * 1e6;
            // A thousand rules that all match are unrealistic: no target.
            let check = if kind == "apart" { Check::new(time, Target::AtMost(20.0)) } else { Check::note(time) };
            section.row(*name, vec![kind.to_owned()], Some(check));
        }
    }
    let (_, compiled) = clock::time(|| policy(rules()));
    section.row("make the rules ready", vec![microseconds(compiled)], None);
    Ok(section)
}
