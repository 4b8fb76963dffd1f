//! `sayso policy`.

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
fn files_commands_and_tools() {
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
fn a_workspace_s_file_before_and_after_it_is_trusted() {
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
fn json_has_the_parts_and_the_exit_code_tells_a_denial() {
    let scene = scene();
    let (value, code) = scene.json(&["policy", "explain", "run", "git status; rm x", "--json"]);
    assert_eq!((value["ruling"].as_str(), code), (Some("deny"), 3));
    assert_eq!(value["by"]["name"], "no deleting");
    assert_eq!(value["by"]["number"], 3);
    let rulings: Vec<_> =
        value["parts"].as_array().unwrap().iter().map(|part| part["ruling"].as_str().unwrap()).collect();
    assert_eq!(rulings, ["allow", "deny", "ask"], "what `rm` removes is judged as a write too");
    let (value, code) = scene.json(&["policy", "explain", "--json", "write", "docs/x"]);
    assert_eq!((value["ruling"].as_str(), code), (Some("later"), 0));
}

#[test]
fn a_link_is_judged_for_what_it_is_and_for_where_it_leads() {
    let scene = scene();
    std::fs::create_dir(scene.path(".git")).unwrap();
    std::os::unix::fs::symlink("../.git", scene.path("docs/link")).unwrap();
    let (value, code) = scene.json(&["policy", "explain", "--json", "write", "docs/link/config"]);
    assert_eq!((value["by"]["name"].as_str(), code), (Some("git's internals"), 3));
}

#[test]
fn sayso_s_own_files_in_a_workspace_are_out_of_reach() {
    let scene = scene();
    let state = scene.state_path().canonicalize().unwrap();
    let workspace = state.to_str().unwrap();
    scene.run(&["propose", "-", "--approve", "all"], br#"[{"operation":"write","path":"x","content":"x"}]"#);
    for path in ["sayso/trusted.toml", "config/sayso/config.toml", "config", "sayso"] {
        let (value, code) = scene.json(&["policy", "explain", "--json", "--workspace", workspace, "write", path]);
        assert_eq!((value["by"]["name"].as_str(), code), (Some("sayso's own records"), 3), "{path}");
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
