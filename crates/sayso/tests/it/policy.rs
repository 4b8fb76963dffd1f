//! Tests of `sayso policy explain` and the starter rules.

use crate::Scene;

const MINE: &str = r#"
[[rule]]
name = "looking is fine"
run = ["git status", "git log", "ls"]
then = "allow"

[[rule]]
name = "docs are reviewed at the end of the turn"
write = ["docs/**", "*.md"]
then = "later"

[[rule]]
name = "no deleting"
run = "rm"
then = "deny"
reason = "we use `git rm`"

[[rule]]
write = "docs/**"
agent = "codex"
then = "ask"

[[rule]]
tool = "mcp__github__*"
then = "allow"
"#;

const THEIRS: &[u8] = b"[policy]\nrun = 'allow'\n[[rule]]\nname = 'anything'\nwrite = '**'\nthen = 'allow'\n\
    [[rule]]\nname = 'generated'\nwrite = 'gen/**'\nthen = 'deny'\nreason = 'run make gen'\n";

fn scene() -> Scene {
    let scene = Scene::new(&[("docs/a.md", b""), ("src/a.rs", b"")]);
    scene.configure(MINE);
    scene
}

fn explain(scene: &Scene, runs: &[&[&str]]) -> String {
    let transcripts = runs.iter().map(|words| scene.transcript(&[&["policy", "explain"], *words].concat()));
    transcripts.collect::<Vec<_>>().join("\n")
}

#[test]
fn policy_explains_files_commands_and_tools() {
    let runs: &[&[&str]] = &[
        &["write", "src/a.rs"],
        &["write", "docs/a.md"],
        &["write", "docs/a.md", "--agent", "codex"],
        &["write", "docs/a.md", ".git/hooks/pre-commit", ".github/workflows/ci.yml"],
        &["read", "src/a.rs", "/etc/../etc/secret"],
        &["run", "git status"],
        &["run", "git status && sudo rm -r x > /etc/x"],
        &["run", "FOO=1 git status"],
        &["run", "git log $(cat x) 'y"],
        &["tool", "mcp__github__list"],
        &["tool", "Write", "--args", r#"{"file_path":"docs/b.md","content":""}"#],
        &["tool", "Write", "--args", "{"],
        &["run", "rm \x1b[2J", "--color", "always"],
    ];
    insta::assert_snapshot!(explain(&scene(), runs));
}

#[test]
fn workspace_rules_loosen_only_when_trusted() {
    let scene = scene();
    scene.write("sayso.toml", THEIRS);
    let runs: &[&[&str]] = &[&["write", "src/a.rs"], &["write", "gen/x"], &["run", "make"]];
    let before = explain(&scene, runs);
    assert_eq!(scene.run(&["trust"], b"").status.code(), Some(0));
    let after = explain(&scene, runs);
    scene.write("sayso.toml", &[THEIRS, b"# changed\n"].concat());
    let changed = explain(&scene, &runs[..1]);
    insta::assert_snapshot!(format!("{before}\n===== trusted\n\n{after}\n===== changed\n\n{changed}"));
}

#[test]
fn policy_json_has_parts_and_denial_code() {
    let scene = scene();
    let (value, code) = scene.json(&["policy", "explain", "run", "git status; rm x", "--json"]);
    assert_eq!((value["ruling"].as_str(), code), (Some("deny"), 3));
    assert_eq!(value["rule"]["name"], "no deleting");
    assert_eq!(value["rule"]["number"], 3);
    let rulings: Vec<_> =
        value["parts"].as_array().unwrap().iter().map(|part| part["ruling"].as_str().unwrap()).collect();
    assert_eq!(rulings, ["allow", "deny", "ask"], "what `rm` removes is judged as a write too");
    let (value, code) = scene.json(&["policy", "explain", "--json", "write", "docs/x"]);
    assert_eq!((value["ruling"].as_str(), code), (Some("later"), 0));
}

#[test]
fn link_is_judged_with_its_target() {
    let scene = scene();
    std::fs::create_dir(scene.path(".git")).unwrap();
    std::os::unix::fs::symlink("../.git", scene.path("docs/link")).unwrap();
    let (value, code) = scene.json(&["policy", "explain", "--json", "write", "docs/link/config"]);
    assert_eq!((value["rule"]["name"].as_str(), code), (Some("git's internals"), 3));
}

#[test]
fn own_files_in_workspace_are_protected() {
    let scene = scene();
    let state = scene.state_path().canonicalize().unwrap();
    let workspace = state.to_str().unwrap();
    scene.run(&["propose", "-", "--approve", "all"], br#"[{"operation":"write","path":"x","content":"x"}]"#);
    for path in ["sayso/trusted.toml", "config/sayso/config.toml", "config", "sayso"] {
        let (value, code) = scene.json(&["policy", "explain", "--json", "--workspace", workspace, "write", path]);
        assert_eq!((value["rule"]["name"].as_str(), code), (Some("sayso's own records"), 3), "{path}");
    }
}

#[test]
fn starter_rules_are_printed_and_count_as_configuration() {
    let scene = Scene::new(&[("src/a.rs", b"")]);
    let printed = scene.run(&["policy", "starter"], b"");
    assert_eq!(printed.status.code(), Some(0));
    let rules = String::from_utf8(printed.stdout).unwrap();
    assert!(rules.starts_with("# Rules to begin with"), "{rules}");
    scene.configure(&rules);
    for (command, ruling) in [("cargo test 2>&1 | tail -5", "allow"), ("git diff --output=x", "ask")] {
        let (value, _) = scene.json(&["policy", "explain", "run", command, "--json"]);
        assert_eq!(value["ruling"], ruling, "{command}");
    }
}
