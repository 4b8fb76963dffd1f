//! Parses hook input, and rewrites calls for any approved content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, Permission, rewrite};
use sayso_review::{FileMode, FileState, PlanStep, WsPath};
use sayso_testkit::laws;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let [input, before, after] = laws::three_parts(data);
    for agent in Agent::WITH_HOOKS {
        let Ok(call) = HookCall::parse(agent, input) else { continue };
        call.intent();
        call.with_command("true");
        call.message_output(&["message".to_owned()]);
        for permission in [
            Permission::Allow,
            Permission::AllowWith(json!({})),
            Permission::Deny { reason: String::new() },
            Permission::Ask,
            Permission::Abstain,
        ] {
            assert!(call.permission_output(&permission, Some("message")).is_object());
        }
        let file = |bytes: &[u8]| FileState::file(bytes, FileMode::PLAIN);
        let path = WsPath::parse("a").expect("it is a path");
        for (before, after) in
            [(file(before), file(after)), (FileState::Absent, file(after)), (file(before), FileState::Absent)]
        {
            // `rewrite` checks its result against models of the tools, and must not panic.
            let _ = rewrite(&call, &[PlanStep { path: path.clone(), before, after }], "/w");
        }
    }
});
