//! Laws that hold for all sets of rules.

use proptest::prelude::*;
use sayso_policy::{Defaults, Layer, LayerTrust, Policy, Rule, Ruling};

use crate::policy::{CLAUDE, judge, layer, rule, with_run};
use Ruling::{Allow, Ask, Deny, Later};

const PATHS: &[&str] = &["a", "a/b", "A/b", "docs/x.md", ".git/x", ".claude/settings.json", "/etc/x", "$x", "."];
const COMMANDS: &[&str] = &[
    "git status",
    "rm x",
    "sudo rm x",
    "git status; rm x",
    "FOO=1 git push",
    "git -C d push",
    "$x",
    "ls > a/b",
    "make 'x",
];

fn any_act() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::subsequence(PATHS, 1..4).prop_map(|paths| format!("write {}", paths.join(" "))),
        prop::sample::subsequence(PATHS, 1..4).prop_map(|paths| format!("read {}", paths.join(" "))),
        prop::sample::select(COMMANDS).prop_map(|command| format!("run {command}")),
        prop::sample::select(&["tool x", "tool xy > a/b", "delegate x", "send x"][..]).prop_map(str::to_owned),
    ]
}

fn any_rule(then: &'static [&'static str]) -> impl Strategy<Value = String> {
    let about = prop_oneof![
        prop::sample::select(&["a", "a/**", "**", "*.md", "docs/*.md", "**/x*", ".", ".claude"][..]).prop_flat_map(
            |path| prop::sample::select(&["read", "write"][..]).prop_map(move |access| format!("{access} {path}"))
        ),
        prop::sample::select(&["git status", "rm", "*", "git *", "git push", "sudo", "git status $", "ls"][..])
            .prop_map(|words| format!("run {words}")),
        prop::sample::select(&["tool x", "tool x*", "delegate *", "send x"][..]).prop_map(str::to_owned),
    ];
    let scope = prop::sample::select(&["", " @claude", " @codex", " #s1", " #s2"][..]);
    (prop::sample::select(then), about, scope).prop_map(|(then, about, scope)| format!("{then} {about}{scope}"))
}

const ANY: &[&str] = &["allow", "later", "ask", "deny"];

fn any_layer(file: &'static str, standing: LayerTrust) -> impl Strategy<Value = Layer> {
    let ruling = || prop::option::weighted(0.3, prop::sample::select(vec![Allow, Later, Ask, Deny]));
    (prop::collection::vec(any_rule(ANY), 0..6), ruling(), ruling(), ruling()).prop_map(
        move |(lines, read, write, run)| {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            Layer { defaults: Defaults { read, write, run, ..Defaults::default() }, ..layer(file, standing, &lines) }
        },
    )
}

proptest! {
    #[test]
    fn an_untrusted_workspace_never_makes_anything_milder(
        mine in any_layer("config.toml", LayerTrust::Trusted),
        theirs in any_layer("sayso.toml", LayerTrust::TightenOnly),
        session in any_layer("session", LayerTrust::Trusted),
        act in any_act(),
    ) {
        let session = Layer { defaults: Defaults::default(), ..session };
        let without = judge(&Policy::new(&[mine.clone(), session.clone()], &[]).unwrap(), &act);
        let with = judge(&Policy::new(&[mine, theirs, session], &[]).unwrap(), &act);
        prop_assert!(with.ruling >= without.ruling, "{with:?}\n{without:?}");
    }

    #[test]
    fn a_deny_never_makes_anything_milder(
        mine in any_layer("config.toml", LayerTrust::Trusted),
        deny in any_rule(&["deny"]),
        at in any::<prop::sample::Index>(),
        act in any_act(),
    ) {
        let without = judge(&Policy::new(std::slice::from_ref(&mine), &[]).unwrap(), &act);
        let mut more = mine;
        more.rules.insert(at.index(more.rules.len() + 1), rule(&deny));
        let with = judge(&Policy::new(&[more], &[]).unwrap(), &act);
        prop_assert!(with.ruling >= without.ruling, "{with:?}\n{without:?}");
    }

    #[test]
    fn the_order_of_denials_does_not_matter(
        mine in any_layer("config.toml", LayerTrust::Trusted),
        seed in any::<u64>(),
        act in any_act(),
    ) {
        let ordered = judge(&Policy::new(std::slice::from_ref(&mine), &[]).unwrap(), &act);
        let (mut denies, others): (Vec<Rule>, Vec<Rule>) = mine.rules.into_iter().partition(|rule| rule.then == Deny);
        let turns = usize::try_from(seed % 7).unwrap().min(denies.len());
        denies.rotate_left(turns);
        let rules = if seed % 2 == 0 { [denies, others].concat() } else { [others, denies].concat() };
        let moved = judge(&Policy::new(&[Layer { rules, defaults: mine.defaults, ..layer("config.toml", LayerTrust::Trusted, &[]) }], &[]).unwrap(), &act);
        prop_assert_eq!(moved.ruling, ordered.ruling);
    }

    #[test]
    fn explaining_says_the_same_as_judging(mine in any_layer("config.toml", LayerTrust::Trusted), command in prop::sample::select(COMMANDS)) {
        let policy = Policy::new(&[mine], &[]).unwrap();
        let (judged, mut explained) =
            with_run(command, |act| (policy.evaluate(act, &CLAUDE), policy.explain(act, &CLAUDE)));
        explained.parts.iter_mut().for_each(|part| part.overridden.clear());
        prop_assert_eq!(judged, explained);
    }
}
