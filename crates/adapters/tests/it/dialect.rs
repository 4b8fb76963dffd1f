//! Hook inputs captured from Claude Code 2.1.197 and Codex 0.166.0, and hook outputs.

use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, HookError, HookEvent, Permission, Stopped};
use sayso_review::{Bytes, FileIntent, Intent, Proposal};
use serde_json::{Value, json};

/// Parses an event of Claude Code, with the fields that all of them have.
fn claude(mut event: Value) -> HookCall {
    let always = json!({
        "session_id": "0f0de330-b7e6-4634-94ee-cee9c62eba73",
        "transcript_path": "/h/.claude/projects/-w/0f0de330-b7e6-4634-94ee-cee9c62eba73.jsonl",
        "cwd": "/w", "prompt_id": "01f89861-d0c6-4b1b-9bcc-58a98bd87ff9", "permission_mode": "default",
        "effort": {"level": "high"},
    });
    for (field, value) in always.as_object().unwrap() {
        event[field] = value.clone();
    }
    HookCall::parse(Agent::Claude, event.to_string().as_bytes()).unwrap()
}

fn codex(mut event: Value) -> HookCall {
    let always = json!({
        "session_id": "01a1e2e4-a764-7091-bb2c-85b78d9cc025", "turn_id": "01a1e2e4-a78a-7173-b955-b56032025fc3",
        "transcript_path": "/h/.codex/sessions/2026/11/16/rollout.jsonl", "cwd": "/w/sub", "model": "gpt-5.5",
        "permission_mode": "bypassPermissions",
    });
    for (field, value) in always.as_object().unwrap() {
        event[field] = value.clone();
    }
    HookCall::parse(Agent::Codex, event.to_string().as_bytes()).unwrap()
}

fn claude_before(tool: &str, input: &Value) -> HookCall {
    claude(json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1_0"}))
}

fn codex_before(tool: &str, input: &Value) -> HookCall {
    codex(json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "call_0_0"}))
}

/// Returns the file changes of a call's intent.
fn changes(call: &HookCall) -> Vec<FileIntent> {
    match call.intent() {
        Some(Intent::ChangeFiles(Proposal { changes })) => changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn claude_events_are_parsed() {
    let call = claude_before("Write", &json!({"file_path": "/w/a.txt", "content": "x\ny"}));
    assert_eq!((call.session.as_str(), call.cwd.as_str()), ("0f0de330-b7e6-4634-94ee-cee9c62eba73", "/w"));
    assert_eq!((call.turn.as_deref(), call.subagent), (Some("01f89861-d0c6-4b1b-9bcc-58a98bd87ff9"), None));
    assert!(
        matches!(&call.event, HookEvent::PreToolUse { call: Some(call), tool, .. } if call == "toolu_1_0" && tool == "Write")
    );

    let event = |event: Value| claude(event).event;
    assert_eq!(
        event(json!({"hook_event_name": "SessionStart", "source": "startup"})),
        HookEvent::SessionStart { source: "startup".to_owned() }
    );
    assert_eq!(event(json!({"hook_event_name": "SessionEnd", "reason": "other"})), HookEvent::SessionEnd);
    assert_eq!(
        event(json!({"hook_event_name": "UserPromptSubmit", "prompt": "do it"})),
        HookEvent::UserPromptSubmit { prompt: "do it".to_owned() }
    );
    let done = json!({
        "hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "bye", "background_tasks": [],
        "session_crons": [],
    });
    assert_eq!(event(done), HookEvent::Stop(Stopped { stop_hook_active: true, last_message: Some("bye".to_owned()) }));
    let response =
        json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false});
    let after = json!({
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "true"},
        "tool_response": response, "tool_use_id": "toolu_4_0", "duration_ms": 45,
    });
    assert!(
        matches!(event(after), HookEvent::PostToolUse { tool, response: parsed, .. } if tool == "Bash" && parsed == response)
    );
    let failed = json!({
        "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "false"},
        "tool_use_id": "toolu_5_0", "error": "Exit code 1", "is_interrupt": false, "duration_ms": 84,
    });
    assert!(matches!(event(failed), HookEvent::PostToolUseFailure { error, .. } if error == "Exit code 1"));
    let other = json!({"hook_event_name": "SubagentStart", "agent_id": "aa17", "agent_type": "general-purpose"});
    assert_eq!(event(other), HookEvent::Other { name: "SubagentStart".to_owned() });
}

#[test]
fn subagent_id_is_parsed() {
    let call = claude(json!({
        "hook_event_name": "SubagentStop", "agent_id": "a24abb09fae8815f4", "agent_type": "general-purpose",
        "stop_hook_active": false, "agent_transcript_path": "/h/x.jsonl", "last_assistant_message": "sub done",
    }));
    assert_eq!(call.subagent.as_deref(), Some("a24abb09fae8815f4"));
    assert_eq!(
        call.event,
        HookEvent::SubagentStop(Stopped { stop_hook_active: false, last_message: Some("sub done".to_owned()) })
    );
}

#[test]
fn codex_events_are_parsed() {
    let patch = "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n";
    let call = codex(json!({
        "hook_event_name": "PostToolUse", "tool_name": "apply_patch", "tool_input": {"command": patch},
        "tool_response": "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nA hello.txt\n",
        "tool_use_id": "call_0_0",
    }));
    assert_eq!(call.turn.as_deref(), Some("01a1e2e4-a78a-7173-b955-b56032025fc3"));
    assert!(
        matches!(&call.event, HookEvent::PostToolUse { response, .. } if response.as_str().unwrap().contains("A hello.txt"))
    );
    assert_eq!(call.intent(), None, "it has happened");
}

#[test]
fn claude_tool_calls_become_intents() {
    let write = claude_before("Write", &json!({"file_path": "/w/a.txt", "content": "x\ny"}));
    assert!(
        matches!(&changes(&write)[..], [FileIntent::Write(new)] if new.path == "/w/a.txt" && new.new_content == "x\ny" && !new.exact)
    );
    let edit = json!({"file_path": "/w/e.txt", "old_string": "b", "new_string": "B", "replace_all": true});
    assert_eq!(
        changes(&claude_before("Edit", &edit)),
        [FileIntent::Edit {
            path: "/w/e.txt".to_owned(),
            old_string: "b".to_owned(),
            new_string: "B".to_owned(),
            replace_all: true
        }]
    );
    let edits = json!({"file_path": "e.txt", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]});
    let several = changes(&claude_before("MultiEdit", &edits));
    assert!(
        matches!(&several[..], [FileIntent::Edit { path, .. }, FileIntent::Edit { new_string, .. }] if path == "/w/e.txt" && new_string == "d")
    );
    let bash = json!({"command": "echo hi > b.txt", "description": "say hi"});
    assert_eq!(
        claude_before("Bash", &bash).intent(),
        Some(Intent::RunCommand {
            command: "echo hi > b.txt".to_owned(),
            directory: Some("/w".to_owned()),
            description: Some("say hi".to_owned())
        })
    );
    for tool in ["Read", "Grep", "NotebookEdit", "Agent", "mcp__server__tool"] {
        let arguments = json!({"file_path": "/w/a"});
        let intent = claude_before(tool, &arguments).intent();
        assert_eq!(intent, Some(Intent::CallTool { name: tool.to_owned(), arguments }));
    }
}

#[test]
fn malformed_file_tool_input_becomes_tool_call() {
    for (tool, input) in [
        ("Write", json!({"file_path": "/w/a"})),
        ("Edit", json!({"file_path": 7, "old_string": "a", "new_string": "b"})),
        ("MultiEdit", json!({"file_path": "/w/a", "edits": []})),
        ("MultiEdit", json!({"file_path": "/w/a", "edits": [{"old_string": "a"}]})),
        ("Bash", json!(["rm"])),
        // A tool of Codex.
        ("apply_patch", json!({"command": "*** Begin Patch\n*** End Patch\n"})),
    ] {
        let call = claude_before(tool, &input);
        assert_eq!(call.intent(), Some(Intent::CallTool { name: tool.to_owned(), arguments: input }));
    }
}

#[test]
fn codex_tool_calls_become_intents() {
    let patch = "*** Begin Patch\n*** Add File: a\n+*** Add File: b\n*** Update File: /w/c\n*** Move to: ../d\n@@\n-x\n+y\n\
                 *** Delete File: e\n*** End Patch\n";
    let whole = "*** Begin Patch\n*** Add File: /w/sub/a\n+*** Add File: b\n*** Update File: /w/c\n*** Move to: /w/sub/../d\n\
                 @@\n-x\n+y\n*** Delete File: /w/sub/e\n*** End Patch\n";
    let expected = [FileIntent::Patch { patch: Bytes::Text(whole.to_owned()) }];
    assert_eq!(changes(&codex_before("apply_patch", &json!({"command": patch}))), expected);
    let script = format!("apply_patch <<'EOF'\n{patch}EOF\n");
    assert_eq!(changes(&codex_before("Bash", &json!({"command": script}))), expected);
    let elsewhere = format!("cd /w/sub && apply_patch <<'EOF'\n{patch}EOF\n");
    assert_eq!(changes(&codex_before("Bash", &json!({"command": elsewhere}))), expected);
    let more = format!("{script}rm -rf x\n");
    assert!(matches!(
        codex_before("Bash", &json!({"command": more})).intent(),
        Some(Intent::RunCommand { directory: Some(directory), description: None, .. }) if directory == "/w/sub"
    ));
    let shell = claude_before("Bash", &json!({"command": script}));
    assert!(matches!(shell.intent(), Some(Intent::RunCommand { .. })), "Claude Code has no patches");
}

#[test]
fn patch_with_ambiguous_paths_is_not_file_change() {
    let tight = "*** Begin Patch\n*** Add File:a\n+x\n*** End Patch\n";
    let whole = "*** Begin Patch\n*** Add File: /w/sub/a\n+x\n*** End Patch\n";
    let expected = [FileIntent::Patch { patch: Bytes::Text(whole.to_owned()) }];
    assert_eq!(changes(&codex_before("apply_patch", &json!({"command": tight}))), expected);
    // An indented path line is not rewritten, so the path would be resolved against the workspace instead of the agent's directory.
    let indented = "  *** Begin Patch\n  *** Add File: a\n  +x\n  *** End Patch\n";
    let call = codex_before("apply_patch", &json!({"command": indented}));
    assert!(matches!(call.intent(), Some(Intent::CallTool { .. })));
    let no_patch = codex_before("Bash", &json!({"command": "apply_patch <<'EOF'\nhello\nEOF\n"}));
    assert!(matches!(no_patch.intent(), Some(Intent::RunCommand { .. })));
}

#[test]
fn with_command_replaces_only_the_command() {
    let bash = claude_before("Bash", &json!({"command": "rm -rf x", "description": "d", "timeout": 5}));
    assert_eq!(bash.with_command("ls"), Some(json!({"command": "ls", "description": "d", "timeout": 5})));
    assert_eq!(claude_before("Read", &json!({"command": "x"})).with_command("ls"), None);
}

#[test]
fn permission_output_follows_each_agents_format() {
    let input = json!({"command": "ls"});
    let answer = |call: &HookCall, permission: &Permission| call.permission_output(permission, None);
    let specific = |mut output: Value| {
        output["hookEventName"] = "PreToolUse".into();
        json!({"hookSpecificOutput": output})
    };
    let (claude, codex) = (claude_before("Bash", &input), codex_before("Bash", &input));
    let deny = Permission::Deny { reason: "no\nreally".to_owned() };
    assert_eq!(answer(&claude, &Permission::Allow), specific(json!({"permissionDecision": "allow"})));
    assert_eq!(answer(&codex, &Permission::Allow), json!({}), "a bare `allow` is an error to Codex");
    assert_eq!(answer(&claude, &Permission::Ask), specific(json!({"permissionDecision": "ask"})));
    for call in [&claude, &codex] {
        assert_eq!(answer(call, &Permission::Abstain), json!({}));
        assert_eq!(
            answer(call, &deny),
            specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "no\nreally"}))
        );
        let updated = specific(json!({"permissionDecision": "allow", "updatedInput": {"command": "pwd"}}));
        assert_eq!(answer(call, &Permission::AllowWith(json!({"command": "pwd"}))), updated);
        let told = call.permission_output(&Permission::Allow, Some("only the first hunk"));
        assert_eq!(told["hookSpecificOutput"]["additionalContext"], "only the first hunk");
        let silent = answer(call, &Permission::Deny { reason: " ".to_owned() });
        assert_ne!(silent["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap().trim(), "");
    }
    let ask = answer(&codex, &Permission::Ask);
    assert_eq!(ask["hookSpecificOutput"]["permissionDecision"], "deny", "Codex lets through what it should ask about");
}

#[test]
fn message_output_depends_on_event() {
    let messages = ["one".to_owned(), "two".to_owned()];
    let tell = |event: Value| claude(event).message_output(&messages);
    for event in ["SessionStart", "UserPromptSubmit"] {
        let told = tell(json!({"hook_event_name": event, "prompt": "p"})).unwrap();
        assert_eq!(told, json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": "one\n\ntwo"}}));
    }
    for event in ["PostToolUse", "PostToolUseFailure"] {
        let told = tell(json!({"hook_event_name": event, "tool_name": "Bash"})).unwrap();
        assert_eq!(told["hookSpecificOutput"]["hookEventName"], event);
    }
    let stop = |active: bool| tell(json!({"hook_event_name": "Stop", "stop_hook_active": active}));
    assert_eq!(stop(false), Some(json!({"decision": "block", "reason": "one\n\ntwo"})));
    assert_eq!(stop(true), None, "an agent must not loop forever");
    assert_eq!(tell(json!({"hook_event_name": "SessionEnd"})), None);
    assert_eq!(claude(json!({"hook_event_name": "Stop"})).message_output(&[]), None, "nothing to say");
}

#[test]
fn malformed_input_error_names_the_field() {
    let error = |input: &str| HookCall::parse(Agent::Codex, input.as_bytes()).unwrap_err();
    assert!(matches!(error("{"), HookError::NotJson { .. }));
    assert!(matches!(error("[]"), HookError::NotAnObject { .. }));
    assert_eq!(
        error("{}").to_string(),
        "cannot parse the hook input of Codex: the event has no text field `hook_event_name`"
    );
    let without_tool = r#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w"}"#;
    assert_eq!(
        error(without_tool).to_string(),
        "cannot parse the hook input of Codex: `PreToolUse` has no text field `tool_name`"
    );
    let without_session = r#"{"hook_event_name":"Stop","cwd":"/w"}"#;
    assert!(error(without_session).to_string().contains("`session_id`") && !error(without_session).hint().is_empty());
}
