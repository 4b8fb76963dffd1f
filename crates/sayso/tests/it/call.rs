//! `sayso call`: commands of hooked agents, as the agent's shell runs what the hook hands back.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sayso_api::client::{PreviewDetail, RetryBudget};
use sayso_review::{Answer, Decider, Verdict};
use serde_json::{Value, json};

use crate::Scene;
use crate::hooks::{answer, begin, call, decision, journal};
use crate::served::{LONG, Served};

/// A workspace, an engine, and an agent's shell.
struct Shell {
    scene: Scene,
    served: Served,
}

impl Shell {
    fn new(rules: &str) -> Self {
        let scene = Scene::new(&[("a.txt", b"alpha\n"), ("src/b.txt", b"beta\n")]);
        scene.configure(rules);
        let served = Served::start(&scene, &[]);
        Self { scene, served }
    }

    fn hook(&self, command: &str) -> Child {
        let input = call(self.scene.directory.path(), "Bash", &json!({ "command": command }));
        begin(&self.scene, &journal(&self.served), &[], &input)
    }

    /// The text that the agent's shell gets for a command that rules allow.
    fn allowed(&self, command: &str) -> String {
        let said = answer(self.hook(command));
        assert_eq!(decision(&said).0, "allow", "{said}");
        updated(&said)
    }

    /// The hook's answer for a command that a person approves.
    fn approved(&self, command: &str, verdict: Answer) -> Value {
        let hook = self.hook(command);
        self.decides(verdict);
        let said = answer(hook);
        assert_eq!(decision(&said).0, "allow", "{said}");
        said
    }

    fn decides(&self, answer: Answer) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = self.served.client(RetryBudget::Limited(LONG));
        let start = Instant::now();
        let record = loop {
            let pending = runtime.block_on(client.list_pending(None, PreviewDetail::Omitted)).unwrap();
            if let Some(progress) = pending.into_iter().next() {
                break progress.record;
            }
            assert!(start.elapsed() < LONG, "nothing waits");
            std::thread::sleep(Duration::from_millis(5));
        };
        let verdict =
            Verdict { preview: record.preview, answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        runtime.block_on(client.decide(record.change, verdict, None, PreviewDetail::Omitted)).unwrap();
    }

    /// Runs a text as Claude Code does: in bash, behind what it sources.
    fn bash(&self, prelude: &str, text: &str, directory: &str) -> Output {
        Command::new("/bin/bash")
            .arg("-c")
            .arg(format!("{prelude}\neval \"$1\" && pwd -P >&2"))
            .args(["bash", text])
            .current_dir(self.scene.path(directory))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.scene.environment())
            .stdin(Stdio::piped())
            .output()
            .unwrap()
    }

    /// Reports the end of a command, and returns its record.
    fn over(&self, text: &str) -> Value {
        let mut after = call(self.scene.directory.path(), "Bash", &json!({ "command": text }));
        (after["hook_event_name"], after["tool_response"]) = ("PostToolUse".into(), json!({}));
        answer(begin(&self.scene, &journal(&self.served), &[], &after));
        let log = self.scene.run(&["log", "--json"], b"");
        let log: Vec<Value> = serde_json::from_slice(&log.stdout).unwrap();
        log[0].clone()
    }
}

fn updated(said: &Value) -> String {
    said["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const CAT: &str = "[[rule]]\nrun = ['cat', 'echo', 'wc', 'cd']\nthen = 'allow'\n";

#[test]
fn allowed_command_runs_through_call() {
    let shell = Shell::new(CAT);
    let command = shell.allowed("for f in *.txt; do cat \"$f\" | wc -c; done; cat missing");
    assert!(command.contains("' 'call' '") && command.contains("# for f in"), "{command}");
    let ran = shell.bash("", &command, ".");
    assert_eq!((text(&ran.stdout).trim(), ran.status.code()), ("6", Some(1)), "{ran:?}");
    assert!(text(&ran.stderr).contains("missing"), "{ran:?}");
    let record = shell.over(&command);
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("applied"), &json!(1)), "{record:#}");
    // The call has ended, so that the order cannot run again.
    let again = shell.bash("", &command, ".");
    assert_eq!(again.status.code(), Some(126), "{again:?}");
    assert!(text(&again.stderr).contains("there is no order"), "{again:?}");
}

#[test]
fn planted_functions_and_variables_are_not_used() {
    let shell = Shell::new(CAT);
    let command = shell.allowed("cat a.txt");
    let planted = "cat() { echo planted; }\nexport -f cat\nexport BASH_ENV=/dev/stdin IFS=t\n\
                   shopt -s expand_aliases\nalias cat='echo planted'";
    let ran = shell.bash(planted, &command, ".");
    assert_eq!(text(&ran.stdout), "alpha\n", "{ran:?}");
}

#[test]
fn command_in_another_directory_is_judged_again() {
    // Codex starts a command where its `workdir` says, which its hook does not tell.
    let shell = Shell::new(CAT);
    let command = shell.allowed("cat hostname; echo done");
    let ran = Command::new("/bin/bash")
        .args(["-c", &command])
        .current_dir("/etc")
        .env_clear()
        .envs(shell.scene.environment())
        .output()
        .unwrap();
    assert_eq!((text(&ran.stdout).as_str(), ran.status.code()), ("", Some(126)), "{ran:?}");
    assert!(text(&ran.stderr).contains("stopped before `cat hostname`"), "{ran:?}");
    let record = shell.over(&command);
    assert!(record["run_note"].as_str().unwrap().contains("stopped before"), "{record:#}");
}

#[test]
fn approved_command_runs_marked_with_its_own_text() {
    let shell = Shell::new("");
    let said = shell
        .approved("x=1; eval 'echo $((x+1))'; grep NoNewPrivs /proc/self/status; read y || echo none", Answer::Approve);
    let ran = shell.bash("", &updated(&said), ".");
    assert_eq!(text(&ran.stdout), "2\nNoNewPrivs:\t1\nnone\n", "{ran:?}");
    assert_eq!(shell.over(&updated(&said))["exit_code"], json!(0));
    // A person approved it for one directory.
    let said = shell.approved("cat b.txt", Answer::Approve);
    let elsewhere = shell.bash("", &updated(&said), "src");
    assert_eq!(elsewhere.status.code(), Some(126), "{elsewhere:?}");
    assert!(text(&elsewhere.stderr).contains("it was approved for"), "{elsewhere:?}");
}

#[test]
fn edited_command_runs_as_edited() {
    let shell = Shell::new("");
    let said = shell.approved("echo original", Answer::Command { command: "echo edited".to_owned() });
    let ran = shell.bash("", &updated(&said), ".");
    assert_eq!(text(&ran.stdout), "edited\n", "{ran:?}");
}

#[test]
fn directory_of_a_command_is_kept_for_claude() {
    let shell = Shell::new(CAT);
    let src = shell.scene.path("src").canonicalize().unwrap();
    let command = shell.allowed("cd src && cat b.txt");
    let ran = shell.bash("", &command, ".");
    assert_eq!((text(&ran.stdout).as_str(), text(&ran.stderr).trim()), ("beta\n", src.to_str().unwrap()), "{ran:?}");
    let said = shell.approved("pushd src >/dev/null; true", Answer::Approve);
    let ran = shell.bash("", &updated(&said), ".");
    assert_eq!(text(&ran.stderr).trim(), src.to_str().unwrap(), "{ran:?}");
}

#[test]
fn function_of_the_user_runs_in_place_and_is_recorded() {
    let shell = Shell::new("");
    let said = shell.approved("greet-from-my-profile you", Answer::Approve);
    assert_eq!(said["hookSpecificOutput"]["updatedInput"], Value::Null, "{said}");
    let record = shell.over("greet-from-my-profile you");
    assert!(record["run_note"].as_str().unwrap().contains("without marks"), "{record:#}");
}

#[test]
fn own_rules_of_the_agent_apply_to_the_original() {
    let shell = Shell::new(CAT);
    let settings = json!({ "permissions": { "deny": ["Bash(cat:*)"], "ask": ["Bash(echo:*)"] } });
    shell.scene.write(".claude/settings.json", settings.to_string().as_bytes());
    let said = answer(shell.hook("wc -c a.txt && cat a.txt"));
    assert_eq!(decision(&said).0, "deny", "{said}");
    assert!(decision(&said).1.contains("Bash(cat:*)"), "{said}");
    let hook = shell.hook("echo hi");
    shell.decides(Answer::Deny { reason: Some("not now".to_owned()) });
    assert_eq!(decision(&answer(hook)).0, "deny");
}

#[test]
fn script_outside_the_grammar_is_asked_about_with_its_part() {
    let shell = Shell::new(CAT);
    let hook = shell.hook("cat a.txt; eval cat src/b.txt");
    shell.decides(Answer::Deny { reason: None });
    assert_eq!(decision(&answer(hook)).0, "deny");
    let shown = text(&shell.scene.run(&["show", "1"], b"").stdout);
    assert!(shown.contains("`eval`"), "{shown}");
}
