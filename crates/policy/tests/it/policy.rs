//! Policy: rules × acts × outcome, and what no rule can change.

use sayso_base::WsPath;
use sayso_policy::{
    Access, Defaults, Effect, Layer, LayerTrust, OverrideReason, PathTarget, Policy, PolicyDecision, PolicyQuery,
    Principal, RememberAs, RememberError, Rule, RuleId, RuleScope, Ruling, analyze_effects,
};
use sayso_shell::Script;
use serde_json::json;

use Ruling::{Allow, Ask, Deny, Later};

/// Rules as people write them, one per text: `allow run git status`, `deny write a/** @claude`, `ask tool x #session`.
fn rules(lines: &[&str]) -> Vec<Rule> {
    lines.iter().map(|line| rule(line)).collect()
}

pub(crate) fn rule(line: &str) -> Rule {
    let mut parts = line.splitn(3, ' ');
    let (then, access, mut pattern) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let mut object = json!({ "then": then });
    for (mark, key) in [(" @", "agent"), (" #", "session")] {
        if let Some((before, scope)) = pattern.rsplit_once(mark) {
            object[key] = json!(scope);
            pattern = before;
        }
    }
    object[access] = json!(pattern);
    serde_json::from_value(object).unwrap()
}

pub(crate) fn layer(file: &str, standing: LayerTrust, lines: &[&str]) -> Layer {
    Layer { file: file.to_owned(), trust: standing, defaults: Defaults::default(), rules: rules(lines) }
}

pub(crate) fn user(lines: &[&str]) -> Policy {
    Policy::new(&[layer("config.toml", LayerTrust::Trusted, lines)], &[WsPath::parse("var/state").unwrap()]).unwrap()
}

fn place(text: &str) -> PathTarget {
    match WsPath::parse(text) {
        _ if text.contains('$') => PathTarget::Unknown(text.to_owned()),
        Ok(path) => PathTarget::Inside(path),
        Err(_) => PathTarget::Outside(text.to_owned()),
    }
}

pub(crate) const CLAUDE: Principal<'static> = Principal { agent: Some("claude"), session: Some("s1") };

/// Judges an act as people write it: `write a b`, `run git status`, `tool x`.
pub(crate) fn judge(policy: &Policy, act: &str) -> PolicyDecision {
    let (verb, rest) = act.split_once(' ').unwrap();
    let places: Vec<PathTarget> = rest.split(' ').map(place).collect();
    let ruled = match verb {
        "write" => policy.evaluate(&PolicyQuery::Write { targets: &places }, &CLAUDE),
        "read" => policy.evaluate(&PolicyQuery::Read { targets: &places }, &CLAUDE),
        "run" => with_run(rest, |act| policy.evaluate(act, &CLAUDE)),
        "tool" => match rest.split_once(" > ") {
            Some((name, path)) => {
                policy.evaluate(&PolicyQuery::Tool { name, reads: &[], writes: &[place(path)] }, &CLAUDE)
            }
            None => policy.evaluate(&PolicyQuery::Tool { name: rest, reads: &[], writes: &[] }, &CLAUDE),
        },
        "delegate" => match rest.split_once(" with ") {
            Some((agent, tool)) => {
                policy.evaluate(&PolicyQuery::Delegate { agent, tools: &[tool.to_owned()] }, &CLAUDE)
            }
            None => policy.evaluate(&PolicyQuery::Delegate { agent: rest, tools: &[] }, &CLAUDE),
        },
        "send" => policy.evaluate(&PolicyQuery::Send { upstream: rest }, &CLAUDE),
        _ => panic!("{act}"),
    };
    assert!(ruled.parts.iter().all(|part| part.ruling <= ruled.ruling), "{ruled:?}");
    ruled
}

/// Judges a command with the places that its words name, as the gate does.
pub(crate) fn with_run<T>(command: &str, then: impl FnOnce(&PolicyQuery<'_>) -> T) -> T {
    let mut script = Script::parse(command);
    let effects = analyze_effects(&mut script, "/work/repo", &WsPath::root());
    let literal = |place: &PathTarget| match place {
        PathTarget::Outside(path) if !path.starts_with('/') || path.contains(['*', '?', '[', '{']) => {
            PathTarget::Unknown(path.clone())
        }
        place => place.clone(),
    };
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for effect in &effects {
        match effect {
            Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => {
                writes.push(literal(path));
            }
            Effect::LeavesWorkspace { path } => reads.push(literal(&PathTarget::Outside(path.clone()))),
            _ => {}
        }
    }
    reads.retain(|place| !writes.iter().any(|written| written.text() == place.text()));
    then(&PolicyQuery::Run { script: &script, reads: &reads, writes: &writes })
}

pub(crate) fn check(lines: &[&str], rows: &[(&str, Ruling)]) {
    let policy = user(lines);
    for (act, expected) in rows {
        let ruled = judge(&policy, act);
        assert_eq!(ruled.ruling, *expected, "{lines:?}\n{act}\n{ruled:#?}");
    }
}

#[test]
fn without_rules_the_defaults_count() {
    check(
        &[],
        &[
            ("read src/a.rs", Allow),
            ("write src/a.rs", Ask),
            ("run git status", Ask),
            ("tool x", Ask),
            ("delegate reviewer", Ask),
            ("send anthropic", Allow),
            ("run ", Ask),
        ],
    );
}

#[test]
fn builtin_denials_cannot_be_overridden() {
    check(
        &["allow write **", "allow read **", "allow write ."],
        &[
            ("write src/a.rs", Allow),
            ("write .git/hooks/x", Deny),
            ("write .git", Deny),
            ("write a/.GIT/config", Deny),
            ("write a/b/.git/HEAD", Deny),
            ("write .g\u{200c}it/config", Deny),
            ("write git~1/config", Deny),
            ("write .gitignore", Allow),
            ("write git/config", Allow),
            ("write /etc/passwd", Ask),
            ("write ../x", Ask),
            ("write src/a.rs /etc/passwd", Ask),
            ("read /etc/passwd", Ask),
            ("read .git/HEAD", Allow),
            ("write var/state/journal.db", Deny),
            ("write VAR/State", Deny),
            ("write var", Deny),
            ("read var/state/journal.db", Deny),
            ("read var/x", Allow),
            ("write /dev/null", Allow),
        ],
    );
}

#[test]
fn builtin_rules_always_ask() {
    let rows: Vec<String> = [
        "sayso.toml",
        "sub/sayso.toml",
        "SAYSO.toml",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/hooks/deep/x.sh",
        ".claude",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".github/copilot-instructions.md",
        ".github/workflows/ci.yml",
        ".github",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        ".ci/run.sh",
        "azure-pipelines.yml",
        ".travis.yml",
        ".buildkite/pipeline.yml",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".envrc",
        ".mcp.json",
        "opencode.jsonc",
        ".opencode/x",
        ".vscode/settings.json",
        ".vscode/tasks.json",
        ".vscode/mcp.json",
        ".cursor/rules/x.mdc",
        ".copilot/config.json",
        "$HOME/x",
    ]
    .map(|path| format!("write {path}"))
    .to_vec();
    let asks: Vec<(&str, Ruling)> = rows.iter().map(|row| (row.as_str(), Ask)).collect();
    check(&["allow write **", "later write ** #s1", "allow write ."], &asks);
    // A deny may still deny.
    check(&["deny write .claude/**"], &[("write .claude/settings.json", Deny), ("write .claude", Deny)]);
    check(
        &["allow write **"],
        &[("write AGENTS.md", Allow), ("write .claude/commands/x.md", Allow), ("write .vscode/x.json", Allow)],
    );
    check(&["allow read **"], &[("read sayso.toml", Allow)]);
    let policy = Policy::new(&[layer("config.toml", LayerTrust::Trusted, &["allow write ."])], &[]).unwrap();
    assert_eq!(judge(&policy, "write .").ruling, Ask, "whoever removes the whole workspace removes all of that");
}

#[test]
fn denied_path_wins_over_allowed_path() {
    check(
        &["deny write secrets/**", "allow write ** #s1", "allow write secrets/** #s1", "deny read **/*.pem"],
        &[
            ("write secrets/a", Deny),
            ("write Secrets/A", Deny),
            ("write secrets", Deny),
            ("write other", Allow),
            ("write other secrets/a", Deny),
            ("read keys/x.pem", Deny),
            ("read keys/X.PEM", Deny),
            ("read secrets/a", Allow),
        ],
    );
    // Touching the directory above may touch what is denied.
    check(&["allow write **", "deny write a/secrets/x/**"], &[("write a/secrets", Ask), ("write a/b", Allow)]);
}

#[test]
fn narrowest_scope_wins_then_last_rule() {
    check(&["allow write a", "later write a"], &[("write a", Later), ("write a/b", Later), ("write b", Ask)]);
    check(&["later write a", "allow write a"], &[("write a", Allow)]);
    check(&["later write a @claude", "allow write a"], &[("write a", Later)]);
    check(&["later write a @codex", "allow write a"], &[("write a", Allow)]);
    check(&["ask write a #s1", "allow write a @claude", "allow write a"], &[("write a", Ask)]);
    check(&["ask write a #s2", "later write a @claude", "allow write a"], &[("write a", Later)]);
    check(&["deny write a", "allow write a #s1"], &[("write a", Deny)]);
    check(&["deny write a @codex", "allow write a"], &[("write a", Allow)]);
    check(&["allow write src/*.rs"], &[("write src/a.rs", Allow), ("write src/b/a.rs", Ask), ("write a b", Ask)]);
}

const STATUS: &[&str] = &["allow run git status"];

#[test]
fn allow_rule_covers_exact_words() {
    check(
        STATUS,
        &[
            ("run git status", Allow),
            ("run git status --short src", Allow),
            ("run git   'status'", Allow),
            ("run git statusx", Ask),
            ("run git", Ask),
            ("run xgit status", Ask),
            ("run ./git status", Ask),
            ("run /tmp/git status", Ask),
            ("run git -C x status", Ask),
            ("run git $x", Ask),
            ("run $git status", Ask),
            ("run git status; rm x", Ask),
            ("run git status && git status", Allow),
            ("run git status | sh", Ask),
            ("run FOO=1 git status", Ask),
            ("run PATH=/tmp git status", Ask),
            ("run sudo git status", Ask),
            ("run env git status", Ask),
            ("run bash -c 'git status'", Ask),
            ("run git status > /etc/x", Ask),
            ("run git status > out.txt", Ask),
            ("run git status 2>/dev/null", Allow),
            ("run git status > .git/hooks/pre-commit", Deny),
            ("run git status > $x", Ask),
            ("run git status < /etc/passwd", Ask),
            ("run git status $(rm x)", Ask),
            ("run git status `rm x`", Ask),
            ("run git status $(git status)", Allow),
            ("run git status <(rm x)", Ask),
            ("run git status &", Allow),
            ("run git status 'unterminated", Ask),
            ("run git() { rm x; }; git status", Ask),
            ("run alias git=rm; git status", Ask),
        ],
    );
    check(&["allow run git status $"], &[("run git status", Allow), ("run git status -s", Ask)]);
    check(&["allow run git * $"], &[("run git log", Allow), ("run git log -p", Ask), ("run git $x", Ask)]);
    check(&["allow run npm run *"], &[("run npm run test", Allow), ("run npm run", Ask), ("run npm test run", Ask)]);
    check(&["allow run echo 'a b' $"], &[("run echo 'a b'", Allow), ("run echo a b", Ask)]);
    check(&["allow run git status", "allow write out/**"], &[("run git status > out/x", Allow)]);
    check(&["allow run git status", "later write out/**"], &[("run git status > out/x", Later)]);
    check(&["allow run git status", "allow run sudo"], &[("run sudo git status", Allow), ("run sudo rm x", Ask)]);
    check(&["allow run sudo git status"], &[("run sudo git status", Allow), ("run sudo -u x git status", Ask)]);
    check(
        &["allow run *", "allow write **"],
        &[("run rm -rf x", Allow), ("run sayso trust", Ask), ("run /opt/sayso trust", Ask)],
    );
}

#[test]
fn denied_command_is_denied_in_every_spelling() {
    check(
        &["allow run *", "allow write **", "deny run rm"],
        &[
            ("run rm x", Deny),
            ("run /bin/rm x", Deny),
            ("run ../../bin/rm x", Deny),
            ("run \\rm x", Deny),
            ("run 'r'm x", Deny),
            ("run FOO=1 rm x", Deny),
            ("run sudo rm x", Deny),
            ("run sudo -u root rm x", Deny),
            ("run env A=1 rm x", Deny),
            ("run find . | xargs rm", Deny),
            ("run bash -c 'rm x'", Deny),
            ("run sh -c \"git status; rm x\"", Deny),
            ("run eval 'rm x'", Deny),
            ("run echo $(rm x)", Deny),
            ("run git status; rm x", Deny),
            ("run if true; then rm x; fi", Deny),
            ("run (cd a && rm x)", Deny),
            ("run $cmd x", Ask),
            ("run r? x", Ask),
            ("run git rm x", Allow),
            ("run echo rm", Allow),
        ],
    );
    check(
        &["allow run *", "allow write **", "deny run git push", "deny run rm -rf", "deny run ./deploy.sh"],
        &[
            ("run git push", Deny),
            ("run git push origin main", Deny),
            ("run git --no-pager push", Deny),
            ("run git -C dir push", Ask),
            ("run git -C $dir push", Ask),
            ("run git $verb", Ask),
            ("run git commit -m push", Allow),
            ("run git commit -m \"$message\"", Allow),
            ("run git show push", Allow),
            ("run rm -fr x", Deny),
            ("run rm -Rf x", Deny),
            ("run rm --recursive --force x", Deny),
            ("run rm -r x", Allow),
            ("run rm -r -f x", Deny),
            ("run rm x -rf", Deny),
            ("run rm -r x", Allow),
            ("run deploy.sh", Deny),
            ("run ./deploy.sh", Deny),
            ("run /w/deploy.sh", Ask),
        ],
    );
    // An asking rule covers the same commands as a denying one.
    check(
        &["allow run *", "ask run git push"],
        &[("run /usr/bin/git push", Ask), ("run sudo git push", Ask), ("run git fetch", Allow)],
    );
}

#[test]
fn tools_and_others_go_by_name() {
    check(
        &[
            "allow tool mcp__github__*",
            "deny tool *delete*",
            "allow delegate review*",
            "ask send openai",
            "allow tool Write",
        ],
        &[
            ("tool mcp__github__list", Allow),
            ("tool mcp__gitlab__list", Ask),
            ("tool mcp__github__delete_repo", Deny),
            ("tool mcp__github__Delete_repo", Deny),
            ("tool Write > src/a", Ask),
            ("tool Write > .git/config", Deny),
            ("tool Write > /etc/x", Ask),
            ("delegate reviewer", Allow),
            ("delegate reviewer with x_delete", Ask),
            ("delegate other", Ask),
            ("send openai", Ask),
            ("send anthropic", Allow),
        ],
    );
    check(&["allow tool Write", "later write src/**"], &[("tool Write > src/a", Later)]);
}

#[test]
fn default_ruling_is_configurable_and_no_rule() {
    let defaults = Defaults { run: Some(Allow), write: Some(Deny), ..Defaults::default() };
    let layer = Layer { defaults, ..layer("config.toml", LayerTrust::Trusted, &["allow write docs"]) };
    let policy = Policy::new(&[layer], &[]).unwrap();
    for (act, expected) in [
        ("write src/a", Deny),
        ("write docs/a", Allow),
        ("run make", Allow),
        ("run FOO=1 make", Allow),
        ("run $x", Ask),
        ("run make 'x", Ask),
        ("run make > src/x", Deny),
    ] {
        assert_eq!(judge(&policy, act).ruling, expected, "{act}");
    }
}

/// A workspace's file that tries everything.
fn greedy(standing: LayerTrust) -> Layer {
    let allow = Some(Allow);
    let defaults = Defaults { read: allow, write: allow, run: allow, tool: allow, delegate: allow, send: allow };
    let lines = [
        "allow write **",
        "allow write ** @claude",
        "later write ** #s1",
        "allow read **",
        "allow run *",
        "allow run * #s1",
        "allow tool *",
        "allow delegate *",
        "allow send *",
        "deny write generated/**",
        "ask read private/**",
    ];
    Layer { defaults, ..layer("sayso.toml", standing, &lines) }
}

#[test]
fn untrusted_workspace_rules_only_tighten() {
    let mine =
        || layer("config.toml", LayerTrust::Trusted, &["allow run git status", "deny run rm", "later write docs/**"]);
    let alone = Policy::new(&[mine()], &[]).unwrap();
    let untrusted = Policy::new(&[mine(), greedy(LayerTrust::TightenOnly)], &[]).unwrap();
    let trusted = Policy::new(&[mine(), greedy(LayerTrust::Trusted)], &[]).unwrap();
    let tries = [
        "write src/a",
        "write docs/a",
        "run make",
        "run git status",
        "run rm x",
        "tool x",
        "delegate x",
        "send x",
        "read a",
    ];
    for act in tries {
        assert_eq!(judge(&untrusted, act).ruling, judge(&alone, act).ruling, "{act}");
    }
    assert_eq!(judge(&untrusted, "write generated/x").ruling, Deny);
    assert_eq!(judge(&untrusted, "read private/x").ruling, Ask);
    assert_eq!(untrusted.ignored_rules().len(), 9 + 4, "nine rules and the defaults that would be milder");
    assert_eq!(trusted.ignored_rules(), []);
    for (act, expected) in [("write src/a", Later), ("run make", Allow), ("run rm x", Deny), ("write .git/x", Deny)] {
        assert_eq!(judge(&trusted, act).ruling, expected, "{act}");
    }
    let defaults = Defaults { read: Some(Deny), ..Defaults::default() };
    let strict = Layer { defaults, ..layer("sayso.toml", LayerTrust::TightenOnly, &[]) };
    let policy = Policy::new(&[strict], &[]).unwrap();
    assert_eq!(judge(&policy, "read a").ruling, Deny, "a stricter default counts");
}

#[test]
fn explanation_names_rule_and_overridden_rules() {
    let policy = Policy::new(
        &[
            layer("config.toml", LayerTrust::Trusted, &["allow write a", "later write a @claude", "allow write **"]),
            layer("sayso.toml", LayerTrust::TightenOnly, &["allow write a"]),
        ],
        &[],
    )
    .unwrap();
    let ruled = policy.explain(&PolicyQuery::Write { targets: &[place("a")] }, &CLAUDE);
    let id = |file: &str, number| RuleId::Rule { file: file.to_owned(), number, name: None };
    assert_eq!((ruled.ruling, &ruled.rule), (Later, &id("config.toml", 2)));
    let others: Vec<(&RuleId, OverrideReason)> =
        ruled.parts[0].overridden.iter().map(|lost| (&lost.rule, lost.reason)).collect();
    let expected = [
        (id("config.toml", 1), OverrideReason::Narrower),
        (id("config.toml", 3), OverrideReason::Narrower),
        (id("sayso.toml", 1), OverrideReason::Untrusted),
    ];
    assert_eq!(others, expected.iter().map(|(id, why)| (id, *why)).collect::<Vec<_>>());
    // What nearly matched says what was in the way.
    let policy = user(&["allow run git status"]);
    let why = |command: &str| {
        let ruled = with_run(command, |act| policy.explain(act, &CLAUDE));
        ruled.parts.iter().flat_map(|part| &part.overridden).map(|lost| lost.reason).collect::<Vec<_>>()
    };
    assert_eq!(why("FOO=1 git status"), [OverrideReason::Assignment]);
    assert_eq!(why("/bin/git status"), [OverrideReason::OtherProgram]);
    assert_eq!(why("git $x"), [OverrideReason::UnknownWords]);
    assert_eq!(why("make"), []);
}

#[test]
fn a_denial_says_why() {
    let mut deny = rule("deny run rm");
    deny.reason = Some("we use git rm".to_owned());
    deny.name = Some("no rm".to_owned());
    let layer = Layer { rules: vec![deny], ..layer("config.toml", LayerTrust::Trusted, &[]) };
    let ruled = judge(&Policy::new(&[layer], &[]).unwrap(), "run ls; rm x");
    assert_eq!(ruled.reason.as_deref(), Some("we use git rm"));
    assert_eq!(ruled.rule.to_string(), "\"no rm\", rule 1 of config.toml");
    assert_eq!(
        ruled.parts.iter().map(|part| (part.target.as_str(), part.ruling)).collect::<Vec<_>>(),
        [("ls", Ask), ("rm x", Deny), ("x", Ask)]
    );
}

#[test]
fn mistakes_in_rules_are_named() {
    let error =
        |line: &str| Policy::new(&[layer("config.toml", LayerTrust::Trusted, &[line])], &[]).unwrap_err().to_string();
    assert!(error("deny write ../x").contains("rule 1 of config.toml") && error("deny write ../x").contains("`../x`"));
    assert!(error("deny write a[").contains("`a[`"));
    assert!(error("deny run test-*").contains("whole word"));
    assert!(error("deny run $ git").contains("must be last"));
    assert!(error("deny run git 'x").contains("is not closed"));
    let nothing = Layer { rules: vec![Rule::new(Deny)], ..layer("x", LayerTrust::Trusted, &[]) };
    assert!(Policy::new(&[nothing], &[]).unwrap_err().to_string().contains("has no pattern"));
    let read = |value| serde_json::from_value::<Rule>(value).unwrap_err().to_string();
    assert!(read(json!({ "wrote": "a", "then": "deny" })).contains("`wrote`"));
    assert!(read(json!({ "write": "a", "then": "denied" })).contains("`denied`"));
    assert!(read(json!({ "write": [], "then": "deny" })).contains("empty"));
    assert!(read(json!({ "write": "a" })).contains("`then`"));
}

#[test]
fn remembered_rule_covers_exact_command() {
    let always = |ruling| RememberAs { scope: RuleScope::Always, ruling };
    let of_run = |command: &str, answer| with_run(command, |act| Rule::remember(act, &CLAUDE, answer));
    for command in
        ["git status", "git log 'a b' | head -n 5", "sudo git status", "bash -c 'ls; pwd'", "echo '*' '$' \"it's\""]
    {
        let rule = of_run(command, always(Allow)).unwrap();
        let policy =
            Policy::new(&[Layer { rules: vec![rule.clone()], ..layer("x", LayerTrust::Trusted, &[]) }], &[]).unwrap();
        assert_eq!(judge(&policy, &format!("run {command}")).ruling, Allow, "{rule:?}");
        for other in [format!("{command} x"), format!("{command}; rm x"), format!("A=1 {command}")] {
            assert_eq!(judge(&policy, &format!("run {other}")).ruling, Ask, "{rule:?} {other}");
        }
    }
    assert_eq!(of_run("git push", always(Deny)).unwrap().run, ["git push"]);
    assert_eq!(of_run("ls 'x", always(Allow)), Err(RememberError::NotUnderstood));
    assert!(matches!(of_run("ls $x", always(Allow)), Err(RememberError::UnknownWord { .. })));
    assert!(matches!(of_run("A=1 ls", always(Allow)), Err(RememberError::Assignment { .. })));

    let session = RememberAs { scope: RuleScope::Session, ruling: Later };
    let act = PolicyQuery::Write { targets: &[place("a[1].rs")] };
    let rule = Rule::remember(&act, &CLAUDE, session).unwrap();
    assert_eq!(rule.session.as_deref(), Some("s1"));
    let policy = Policy::new(&[Layer { rules: vec![rule], ..layer("x", LayerTrust::Trusted, &[]) }], &[]).unwrap();
    assert_eq!((judge(&policy, "write a[1].rs").ruling, judge(&policy, "write a1.rs").ruling), (Later, Ask));
    assert_eq!(Rule::remember(&act, &Principal::default(), session), Err(RememberError::NoSession));
    let outside = PolicyQuery::Write { targets: &[place("/etc/x")] };
    assert_eq!(Rule::remember(&outside, &CLAUDE, session).unwrap().write, ["/etc/x"]);
    let outside = PolicyQuery::Write { targets: &[place("../x")] };
    assert!(matches!(Rule::remember(&outside, &CLAUDE, session), Err(RememberError::UnknownPath { .. })));
}

#[test]
fn rules_and_rulings_survive_json() {
    let ruled = judge(&user(&["deny run rm"]), "run ls; rm x");
    assert_eq!(serde_json::from_value::<PolicyDecision>(json!(ruled)).unwrap(), ruled);
    let rule = rule("later write docs/** @claude");
    assert_eq!(json!(rule), json!({ "write": ["docs/**"], "agent": "claude", "then": "later" }));
    assert_eq!(Access::ALL.map(Access::name), ["read", "write", "run", "tool", "delegate", "send"]);
}
