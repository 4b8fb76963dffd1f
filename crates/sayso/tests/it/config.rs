//! Tests of `sayso config` and of broken files.

use crate::Scene;

const MINE: &str = "\
[policy]\nwrite = 'later'\n[snapshot]\nquota = '2 GB'\n[notify]\ncommand = ['notify-send', 'sayso']\n\
[decide]\ndeadline = '10 min'\n[[rule]]\nname = 'looking'\nrun = ['git status', 'ls']\nagent = 'claude'\nthen = 'allow'\n";

const THEIRS: &[u8] = b"[policy]\nrun = 'allow'\nread = 'ask'\n[branch]\nprefix = 'x/'\n[notify]\ncommand = 'evil'\n\
[[rule]]\nname = 'anything'\nwrite = '**'\nthen = 'allow'\n[[rule]]\nwrite = 'gen'\nthen = 'deny'\n";

#[test]
fn config_names_origin_of_every_value() {
    let scene = Scene::new(&[]);
    let nothing = scene.transcript(&["config"]);
    scene.configure(MINE);
    let mine = scene.transcript(&["config"]);
    scene.write("sayso.toml", THEIRS);
    let untrusted = scene.transcript(&["config"]);
    scene.run(&["trust"], b"");
    let trusted = scene.transcript(&["config"]);
    insta::assert_snapshot!([nothing, mine, untrusted, trusted].join("\n"));
}

#[test]
fn config_json_has_values_and_origins() {
    let scene = Scene::new(&[("sayso.toml", THEIRS)]);
    scene.configure(MINE);
    let (value, code) = scene.json(&["config", "--json"]);
    assert_eq!(code, 0);
    let settings = &value["settings"];
    assert_eq!(settings["policy.write"]["value"], "later");
    assert!(settings["policy.write"]["origin"].as_str().unwrap().ends_with("config/sayso/config.toml"));
    assert_eq!(settings["policy.read"], serde_json::json!({ "value": "ask", "origin": "sayso.toml" }));
    assert_eq!(settings["policy.run"], serde_json::json!({ "value": "ask", "origin": null }));
    assert_eq!(settings["snapshot.quota"]["value"], 2_000_000_000_u64);
    assert_eq!(settings["decide.deadline"]["value"], 600);
    assert_eq!(settings["branch.prefix"]["value"], "sayso/");
    assert_eq!(value["ignored_rules"].as_array().unwrap().len(), 2);
    assert_eq!(value["ignored_settings"].as_array().unwrap().len(), 2);
    assert_eq!(value["workspace_file"], "untrusted");
}

#[test]
fn configuration_error_is_named() {
    let mistakes = [
        "[[rule]]\nwirte = 'secrets/**'\nthen = 'deny'\n",
        "[[rule]]\nwrite = 'secrets/**'\nthen = 'denny'\n",
        "[[rule]]\nwrite = '../x'\nthen = 'deny'\n",
        "[[rule]]\nname = 'x'\nthen = 'deny'\n",
        "[[rule]]\nrun = 'test-*'\nthen = 'deny'\n",
        "[polcy]\nwrite = 'deny'\n",
        "[policy]\nwrites = 'deny'\n",
        "[snapshot]\nquota = 'lots'\n",
        "[decide]\ndeadline = 'soon'\n",
        "[[rule]\n",
    ];
    let mut transcripts = Vec::new();
    for mistake in mistakes {
        let scene = Scene::new(&[("sayso.toml", mistake.as_bytes())]);
        transcripts.push(format!("{mistake}{}", scene.transcript(&["policy", "explain", "read", "a"])));
    }
    let scene = Scene::new(&[]);
    scene.configure(mistakes[0]);
    transcripts.push(scene.transcript(&["config"]));
    insta::assert_snapshot!(transcripts.join("\n"));
}

#[test]
fn workspace_file_linked_outside_is_refused() {
    let scene = Scene::new(&[]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.toml"), "").unwrap();
    std::os::unix::fs::symlink(outside.path().join("x.toml"), scene.path("sayso.toml")).unwrap();
    let output = scene.run(&["config"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("leads out"), "{output:?}");
    std::fs::remove_file(scene.path("sayso.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere", scene.path("sayso.toml")).unwrap();
    assert_eq!(scene.run(&["config"], b"").status.code(), Some(2));
}
