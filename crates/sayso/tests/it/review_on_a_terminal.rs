//! Reviews on a real terminal: what was typed before a question is no answer to it, and an editor has the terminal to itself.

use serde_json::json;

use crate::Scene;
use crate::concurrent_clients::Terminal;
use crate::pty::Pty;

const TOUCH_IS_FINE: &str = "[[rule]]\nname = \"touch is fine\"\nrun = \"touch\"\nthen = \"allow\"\n[[rule]]\nname = \"anywhere\"\nwrite = \"**\"\nthen = \"allow\"\n[[rule]]\nname = \"ask about make\"\nrun = \"make\"\nthen = \"ask\"\n";

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let change = json!([{"operation": "update", "path": "a.txt", "new_content": "two\n"}]);
    scene.write("a.json", change.to_string().as_bytes());
    scene
}

#[test]
fn half_typed_answer_is_discarded() {
    let scene = scene();
    let mut follows = Pty::start(&scene, &["review", "--follow"], &[]);
    follows.until("Ctrl-C ends it");
    let first = Terminal::start(&scene, &["exec", "make one"]);
    follows.until("Run it");
    let mut second = Terminal::start(&scene, &["exec", "make two"]);
    second.until("waits for a decision");
    follows.types("y");
    follows.until("y");
    scene.run(&["review", "1", "--deny", "no"], b"");
    let shown = follows.until("Run it");
    let (told, asked) = (shown.find("Somebody else decided first.").unwrap(), shown.find("make two").unwrap());
    assert!(told < asked, "what was decided elsewhere is told before the next question: {shown}");
    follows.types("\n");
    follows.until("One of these keys");
    assert_eq!(scene.json(&["status", "--json"]).0["pending"], 1);
    follows.until("Run it");
    follows.types("q\n");
    assert_eq!(follows.ended(), Some(0));
    assert_eq!(scene.json(&["status", "--json"]).0["pending"], 1, "it waits on");
    scene.run(&["review", "2", "--deny", "no"], b"");
    assert_eq!((first.ended(), second.ended()), (Some(1), Some(1)));
}

#[test]
fn typed_ahead_input_is_discarded() {
    let scene = scene();
    let mut asks = Pty::start(&scene, &["propose", "a.json"], &[]);
    // Two lines at once: the second was typed before its question.
    asks.until("]? ");
    asks.types("n\ny\n");
    asks.until("Why?");
    asks.types("not like this\n");
    asks.until("not like this");
    asks.until("denied this tool call: not like this");
    assert_eq!(asks.ended(), Some(1));
    assert_eq!(scene.read("a.txt"), "one\n");
}

/// An editor that leaves the terminal raw: it takes six keys for the content of the file.
const RAW: &str = "#!/bin/sh\nstty raw -echo\nprintf READY\nhead -c 6 >\"$1.new\"\nmv \"$1.new\" \"$1\"\n";
/// An editor that is killed while the terminal is raw.
const KILLED: &str = "#!/bin/sh\nstty raw -echo\nkill -9 $$\n";

fn editor(scene: &Scene, text: &str) -> String {
    scene.write("editor", text.as_bytes());
    format!("sh {}", scene.path("editor").display())
}

#[test]
fn editor_gets_terminal_and_modes_are_restored() {
    let scene = scene();
    let editor = editor(&scene, RAW);
    let mut follows = Pty::start(&scene, &["review", "--follow"], &[("EDITOR", &editor)]);
    follows.until("Ctrl-C ends it");
    let proposes = Terminal::start(&scene, &["exec", "make one"]);
    follows.until("Run it");
    follows.types("e\n");
    follows.until("READY");
    assert!(!follows.is_cooked());
    for key in ["m", "a", "k", "e", " ", "2"] {
        follows.types(key);
    }
    follows.until("make 2");
    follows.until("Run this instead");
    assert!(follows.is_cooked());
    follows.types("n\n");
    follows.until("Run it");
    follows.types("n\n");
    follows.until("Why?");
    follows.types("\n");
    assert_eq!(proposes.ended(), Some(1));
    follows.types("\u{3}");
    assert_eq!(follows.ended(), Some(0));
}

#[test]
fn killed_editor_restores_terminal_modes() {
    let scene = scene();
    let editor = editor(&scene, KILLED);
    for arguments in [&["propose", "a.json"][..], &["exec", "make one"]] {
        let mut asks = Pty::start(&scene, arguments, &[("EDITOR", &editor)]);
        asks.until("]? ");
        asks.types("e\n");
        asks.until("nothing was taken");
        asks.until("]? ");
        assert!(asks.is_cooked(), "{arguments:?}");
        asks.types("q\n");
        assert_eq!(asks.ended(), Some(1), "{arguments:?}");
    }
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn follow_names_rule_decisions_without_asking() {
    let scene = scene();
    scene.configure(TOUCH_IS_FINE);
    let mut follows = Pty::start(&scene, &["review", "--follow"], &[]);
    follows.until("Ctrl-C ends it");
    assert!(scene.run(&["exec", "touch b.txt"], b"").status.success());
    let shown = follows.until("Change 1 is");
    assert!(!shown.contains("]? "), "{shown}");
    assert!(scene.run(&["undo", "1"], b"").status.success());
    let waits = Terminal::start(&scene, &["exec", "make one"]);
    let shown = follows.until("Run it");
    assert!(shown.contains("touch is fine"), "{shown}");
    assert_eq!(shown.matches("]? ").count() + shown.matches("Nobody decided").count(), 0, "{shown}");
    assert!(!shown.contains("Change 2"), "a person's own undo is not news: {shown}");
    follows.types("n\n");
    follows.until("Why?");
    follows.types("\n");
    assert_eq!(waits.ended(), Some(1));
    follows.types("\u{3}");
    assert_eq!(follows.ended(), Some(0));
}
