//! Any bytes as what an agent hands to a hook, with any contents before and after.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_adapters::hook::{Agent, HookCall, Permission, rewrite};
use sayso_review::{FileMode, FileState, PlanStep, WsPath};
use sayso_testkit::laws;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let [input, before, after] = laws::three_parts(data);
    for agent in [Agent::Claude, Agent::Codex] {
        let Ok(call) = HookCall::parse(agent, input) else { continue };
        call.intent();
        call.with_command("true");
        call.tell(&["told".to_owned()]);
        for permission in [
            Permission::Allow,
            Permission::AllowWith(json!({})),
            Permission::Deny { reason: String::new() },
            Permission::Ask,
            Permission::Abstain,
        ] {
            assert!(call.answer(&permission, Some("told")).is_object());
        }
        let file = |bytes: &[u8]| FileState::file(bytes, FileMode::PLAIN);
        let path = WsPath::parse("a").expect("it is a path");
        for (before, after) in
            [(file(before), file(after)), (FileState::Absent, file(after)), (file(before), FileState::Absent)]
        {
            // What it says is checked against models of the tools inside; here it must only not fall over.
            let _ = rewrite(&call, &[PlanStep { path: path.clone(), before, after }], "/w");
        }
    }
});
