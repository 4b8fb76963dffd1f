//! Examples of the manual: every `console` block of `docs/*.md` is executed, and its output compared with the page.
//!
//! The blocks of a page run in order, in one empty workspace. A line that starts with `$ ` is a command for `sh`; lines that start
//! with `> ` continue it. The lines below are its output, standard error included. `…` in a line stands for any text. With
//! `SAYSO_UPDATE_DOCS=1` the pages are rewritten with the real output.

use std::path::Path;
use std::process::{Command, Stdio};

use sayso_testkit::programs::root;

use crate::Scene;

/// One command of a page with the output that the page shows.
#[derive(Debug, PartialEq)]
struct Example {
    command: String,
    output: Vec<String>,
}

/// Splits the lines of a `console` block into its commands.
fn examples(block: &[&str]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_command = false;
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            examples.push(Example { command: command.to_owned(), output: Vec::new() });
            in_command = true;
        } else if let (Some(example), true, Some(rest)) = (examples.last_mut(), in_command, line.strip_prefix("> ")) {
            example.command.push('\n');
            example.command.push_str(rest);
        } else if let Some(example) = examples.last_mut() {
            example.output.push((*line).to_owned());
            in_command = false;
        }
    }
    examples
}

/// `true` if a line of output fits a line of a page, in which `…` stands for any text.
fn line_matches(shown: &str, real: &str) -> bool {
    let mut rest = real;
    let mut parts = shown.split('…');
    let Some(remaining) = parts.next().and_then(|first| rest.strip_prefix(first)) else { return false };
    rest = remaining;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn run(scene: &Scene, command: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_sayso")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.display());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(scene.directory.path())
        .env_clear()
        .envs(scene.environment())
        .env("PATH", path)
        .env("HOME", scene.state_path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs the examples of a page. Returns the page with the real output and the commands whose output differs.
fn check(page: &str) -> (String, Vec<String>) {
    let scene = Scene::new(&[]);
    let (mut rewritten, mut differences) = (String::new(), Vec::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        rewritten.push_str(&format!("{line}\n"));
        if line != "```console" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        for Example { command, output } in examples(&block) {
            let real = run(&scene, &command);
            let fits =
                output.len() == real.len() && output.iter().zip(&real).all(|(shown, real)| line_matches(shown, real));
            if !fits {
                differences.push(format!("$ {command}\npage: {output:#?}\nreal: {real:#?}"));
            }
            let kept = if fits { &output } else { &real };
            rewritten.push_str(&format!("$ {}\n", command.replace('\n', "\n> ")));
            for line in kept {
                rewritten.push_str(&format!("{line}\n"));
            }
        }
        rewritten.push_str("```\n");
    }
    (rewritten, differences)
}

#[test]
fn manual_examples_print_what_the_pages_show() {
    let mut executed = 0;
    let mut differences = Vec::new();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&file).unwrap();
        executed += page.matches("\n$ ").count();
        let (rewritten, differs) = check(&page);
        if std::env::var_os("SAYSO_UPDATE_DOCS").is_some() {
            std::fs::write(&file, rewritten).unwrap();
        } else {
            differences.extend(differs.into_iter().map(|difference| format!("{}\n{difference}", file.display())));
        }
    }
    assert!(executed > 10, "the manual has examples");
    assert!(
        differences.is_empty(),
        "{}\nrun again with SAYSO_UPDATE_DOCS=1 and read the diff",
        differences.join("\n\n")
    );
}

#[test]
fn ellipsis_in_an_example_matches_any_text() {
    assert!(line_matches("change … of …", "change 1 of 2"));
    assert!(line_matches("…", ""));
    assert!(!line_matches("change …", "chance 1"));
    assert!(!line_matches("exact", "exactly"));
}
