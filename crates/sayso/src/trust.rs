//! `sayso trust`: lets the workspace's file loosen, as it is now.

use std::process::ExitCode;

use sayso_review::{Access, ContentHash, Layer};
use serde_json::json;

use crate::agents;
use crate::cli::TrustArguments;
use crate::config::{Trust, TrustStore, WORKSPACE_FILE, confirm, show, workspace_bytes, workspace_layer};
use crate::failure::Failure;
use crate::output::Output;
use crate::state::State;
use crate::visible::visible;

pub(crate) fn run(arguments: &TrustArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    if !arguments.show {
        agents::refuse(&state)?;
    }
    if arguments.rules {
        return confirm_rules(&state, arguments);
    }
    let mut store = TrustStore::load(&state)?;
    let output = Output::stdout();
    let mut text = String::new();
    if arguments.revoke {
        store.revoke(&state.root)?;
    }
    let Some(bytes) = workspace_bytes(&state)? else {
        if arguments.revoke {
            return finish(output, arguments, Trust::NoFile, &[], "Nothing is trusted here.\n");
        }
        return Err(Failure::bad_input(format!("{} has no {WORKSPACE_FILE}", state.root.display()))
            .hint(format!("there is nothing to trust; put rules for this workspace into {WORKSPACE_FILE}")));
    };
    // Whoever trusts a file trusts what was shown: these bytes, and not what may stand there a moment later.
    let hash = ContentHash::of(&bytes);
    let loosens = loosens(&workspace_layer(&bytes)?);
    let before = store.about(&state.root, hash);
    if arguments.revoke {
        let told = format!("Not trusted any longer: {}/{WORKSPACE_FILE}\n", state.root.display());
        return finish(output, arguments, before, &loosens, &told);
    }
    text.push_str(
        &String::from_utf8_lossy(&bytes).lines().map(|line| format!("  | {}\n", visible(line))).collect::<String>(),
    );
    if loosens.is_empty() {
        text.push_str("\nIt loosens nothing: it does the same untrusted, except for settings that are not rules.\n");
    } else {
        text.push_str("\nIt loosens:\n");
        for line in &loosens {
            text.push_str(&format!("  {}\n", visible(line)));
        }
    }
    if arguments.show {
        text.push_str(&format!("\n{}\n", show::standing(before).unwrap_or_default()));
        return finish(output, arguments, before, &loosens, &text);
    }
    store.trust(&state.root, hash)?;
    text.push_str(&format!("\nTrusted as it is now ({}). If it changes, it is untrusted again.\n", hash.short()));
    finish(output, arguments, Trust::Trusted, &loosens, &text)
}

/// Lets rules count that became milder while something ran under the gate.
fn confirm_rules(state: &State, arguments: &TrustArguments) -> Result<ExitCode, Failure> {
    let confirmed = confirm(state)?;
    let mut output = Output::stdout();
    if arguments.place.json {
        let files: Vec<&str> = confirmed.iter().map(|(name, _, _)| name.as_str()).collect();
        output.json(&json!({ "confirmed": files }))?;
    } else if confirmed.is_empty() {
        output.write(b"All rules count already.\n")?;
    }
    for (name, before, now) in confirmed.iter().filter(|_| !arguments.place.json) {
        let diff = sayso_diff::Diff::new(before.as_bytes(), now.as_bytes());
        let options = sayso_diff::UnifiedOptions {
            context: 3,
            old_label: "counted until now",
            new_label: "counts from now on",
            rendering: sayso_diff::Rendering::Readable,
            limit: None,
        };
        output.write(format!("{}\n", visible(name)).as_bytes())?;
        if let sayso_diff::Unified::Changes { text, .. } = diff.unified(&options) {
            for line in String::from_utf8_lossy(&text).lines() {
                output.write(format!("  {}\n", visible(line)).as_bytes())?;
            }
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// What would become milder, a line each.
fn loosens(layer: &Layer) -> Vec<String> {
    let defaults = Access::ALL.into_iter().filter_map(|access| {
        let then = layer.defaults.of(access)?;
        (then < access.built_in_default())
            .then(|| format!("{:<5}  {access} anything that no rule is about", then.name()))
    });
    let rules = layer.rules.iter().filter(|rule| rule.loosens());
    defaults.chain(rules.map(|rule| format!("{:<5}  {}", rule.then.name(), show::about(rule)))).collect()
}

fn finish(
    mut output: Output,
    arguments: &TrustArguments,
    trust: Trust,
    loosens: &[String],
    text: &str,
) -> Result<ExitCode, Failure> {
    if arguments.place.json {
        output.json(&json!({ "workspace_file": trust, "loosens": loosens }))?;
    } else {
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
