//! The clause that names the part of a command which is asked about, and rules wide_option_clause by `options = "any"`.

use sayso_policy::{Access, OverrideReason, PolicyDecision, Rule, RuleOptions, Ruling};

use crate::policy::{CLAUDE, rule, with_run};
use crate::typical::policy;

fn explain(rules: Vec<Rule>, command: &str) -> PolicyDecision {
    let policy = policy(rules);
    with_run(command, |act| policy.explain(act, &CLAUDE))
}

#[test]
fn asked_part_names_obstructing_word() {
    let rules = || {
        ["allow run git diff", "allow run sort", "allow run cargo", "allow run tool", "allow run cd"].map(rule).to_vec()
    };
    for (command, clause) in [
        ("git diff --output=src/x", "`--output` writes a file: src/x"),
        ("git diff --foo", "`--foo` is not an option that sayso knows for git diff"),
        ("git diff --ext-diff", "`--ext-diff` runs code of the project"),
        ("git diff $BASE", "`$BASE` may become an option of git diff"),
        ("sort -o a b", "`-o` writes a file: a"),
        ("sort a > out", "`>` writes a file: out"),
        ("sort --compress-program=./x a", "`--compress-program` runs another program"),
        ("cargo publish", "`publish` reaches other machines"),
        ("cargo frob", "`frob` is not a subcommand that sayso knows for cargo"),
        ("tool x", "sayso has no grammar for `tool`, so a rule covers its own words only"),
        ("FOO=1 sort a", "`FOO=1` may change what the command does"),
        ("LD_PRELOAD=x sort a", "setting `LD_PRELOAD` changes how programs run"),
        ("GOFLAGS=x sort a", "setting `GOFLAGS` changes how programs run"),
        ("sort a; . x", "`.` runs a script that is not in this text"),
        ("cd $X; sort a", "`cd` may change the shell with these words"),
    ] {
        let ruled = explain(rules(), command);
        assert_eq!(
            (ruled.ruling, ruled.reason.as_deref().unwrap_or_default()),
            (Ruling::Ask, clause),
            "{command}: {ruled:#?}"
        );
    }
}

#[test]
fn program_without_grammar_needs_exact_words() {
    for (line, command, expected) in [
        ("allow run frob", "frob", Ruling::Allow),
        ("allow run frob", "frob x", Ruling::Ask),
        ("allow run frob x", "frob x", Ruling::Allow),
        ("allow run frob x", "frob x -v", Ruling::Ask),
        ("allow run frob *", "frob y", Ruling::Allow),
        ("allow run ./script.sh", "./script.sh", Ruling::Allow),
        ("allow run ./script.sh", "./script.sh --all", Ruling::Ask),
        ("deny run frob", "frob x", Ruling::Deny),
        ("ask run frob", "frob x", Ruling::Ask),
    ] {
        assert_eq!(explain(vec![rule(line)], command).ruling, expected, "{line}: {command}");
    }
    let ruled = explain(vec![rule("allow run frob")], "frob x");
    assert_eq!(ruled.parts[0].overridden[0].reason, OverrideReason::FurtherWords);
}

#[test]
fn options_any_covers_further_words() {
    let wide = |line: &str| Rule { options: Some(RuleOptions::Any), ..rule(line) };
    let ruled = explain(vec![wide("allow run frob")], "frob --do x");
    assert_eq!(ruled.ruling, Ruling::Allow);
    assert!(ruled.reason.as_deref().unwrap().starts_with("`options = \"any\"` permits this: "), "{ruled:#?}");
    let ruled = explain(vec![wide("allow run git diff")], "git diff --ext-diff");
    assert_eq!(
        ruled.reason.as_deref(),
        Some("`options = \"any\"` permits this: `--ext-diff` runs code of the project")
    );
    let ruled = explain(vec![wide("allow run git diff")], "git diff --stat");
    assert_eq!((ruled.ruling, ruled.reason), (Ruling::Allow, None));
    // Places are judged by their own rules all the same.
    let ruled = explain(vec![wide("allow run git diff")], "git diff --output=x");
    assert_eq!((ruled.ruling, ruled.parts[1].access), (Ruling::Ask, Access::Write));
    let json = serde_json::json!({ "run": ["frob"], "options": "any", "then": "allow" });
    assert_eq!(serde_json::to_value(wide("allow run frob")).unwrap(), json);
    assert!(
        serde_json::from_value::<Rule>(serde_json::json!({ "run": "x", "options": "some", "then": "allow" })).is_err()
    );
}

#[test]
fn temporary_folder_is_a_place_for_rules() {
    let rules = || ["allow run sort", "allow write /tmp/session/**"].map(rule).to_vec();
    for (command, expected) in [
        ("sort a > /tmp/session/out", Ruling::Allow),
        ("sort -o /tmp/session/out a", Ruling::Allow),
        ("sort a > /tmp/other", Ruling::Ask),
        ("sort a > /tmp/session/../x", Ruling::Ask),
        ("sort a > $TMPDIR/x", Ruling::Ask),
    ] {
        assert_eq!(explain(rules(), command).ruling, expected, "{command}");
    }
}
