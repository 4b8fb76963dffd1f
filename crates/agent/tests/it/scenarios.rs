//! Scenario files: the built-in ones, and errors with file and line.

use sayso_agent::{Limits, Scenario, Scenarios};

use super::scene::tool_names;

const GOOD: &str =
    "name: REVIEW\ndescription: Reviews changes\nprompt: Review the changes.\ntools: [Read, Grep, mcp__docs__*]\n";

#[test]
fn built_in_scenarios_have_their_rights() {
    let scenarios = Scenarios::built_in(&tool_names());
    assert_eq!(scenarios.problems(), []);
    let shown: Vec<String> = scenarios
        .all()
        .map(|scenario| {
            let (read_only, proposes_only) = (scenario.is_read_only(), scenario.proposes_only());
            format!("{} {read_only} {proposes_only} {}", scenario.name, scenario.tools.join(","))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn user_scenario_replaces_a_built_in() {
    let mut scenarios = Scenarios::built_in(&tool_names());
    let limited = format!("{GOOD}model: claude-opus-4-5\nlimits: {{turns: 5, cost_usd: 1.5, minutes: 2}}\n");
    let ask = GOOD.replace("REVIEW", "ASK");
    scenarios.add_files([("review.yaml", limited.as_str()), ("ask.yaml", ask.as_str())], &tool_names());
    assert_eq!(scenarios.problems(), []);
    let review = scenarios.find("REVIEW").unwrap();
    assert_eq!(review.limits, Some(Limits { turns: 5, cost_micro_usd: 1_500_000, time_ms: 120_000 }));
    assert!(review.has_tool("mcp__docs__search") && !review.has_tool("mcp__other__search"));
    assert_eq!(scenarios.find("ASK").unwrap().file.as_deref(), Some("ask.yaml"));
}

#[test]
fn errors_name_file_and_line() {
    let cases = [
        GOOD.replace("tools:", "tool:"),
        GOOD.replace("Grep", "Grepp"),
        GOOD.replace("Grep", "Read"),
        GOOD.replace("prompt: Review the changes.", "prompt: \"  \""),
        GOOD.replace("Review the changes.", "Review {{files}}."),
        GOOD.replace("REVIEW", "review it"),
        GOOD.replace("description: Reviews changes", "description: |\n  Two\n  lines"),
        format!("{GOOD}limits: {{turns: -1}}\n"),
        format!("{GOOD}limits: {{cost_usd: -1}}\n"),
        format!("{GOOD}limits: {{hours: 1}}\n"),
        format!("{GOOD}model: \"\"\n"),
        "name: [".to_owned(),
        "name: X\n".to_owned(),
        format!("{GOOD}prompt: again\n"),
    ];
    let shown: Vec<String> = cases
        .iter()
        .map(|text| {
            let error = Scenario::parse(text, "review.yaml", &["Read".to_owned(), "Grep".to_owned()]).unwrap_err();
            format!("{error}\n  hint: {}", error.hint())
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}
