//! `sayso trust`: trusts the workspace's file as it is now.

use std::process::ExitCode;

use sayso_review::{Access, ContentHash, Layer};
use serde_json::json;

use crate::agents;
use crate::cli::TrustArguments;
use crate::config::{FileTrust, TrustStore, WORKSPACE_FILE, confirm, show, workspace_bytes, workspace_layer};
use crate::error::CliError;
use crate::output::Output;
use crate::workspace_location::WorkspaceLocation;
use sayso_present::escape::escape_unprintable;

pub(crate) fn run(arguments: &TrustArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    if !arguments.show {
        agents::refuse(&location)?;
    }
    if arguments.rules {
        return confirm_rules(&location, arguments);
    }
    let mut store = TrustStore::load(&location)?;
    let output = Output::stdout();
    let mut text = String::new();
    if arguments.revoke {
        store.revoke(&location.root)?;
    }
    let Some(bytes) = workspace_bytes(&location)? else {
        if arguments.revoke {
            return finish(output, arguments, FileTrust::NoFile, &[], "Nothing is trusted here.\n");
        }
        return Err(CliError::invalid_input(format!("{} has no {WORKSPACE_FILE}", location.root.display()))
            .hint(format!("there is nothing to trust; put rules for this workspace into {WORKSPACE_FILE}")));
    };
    // Trust is for the bytes that are shown here, even if the file changes meanwhile.
    let hash = ContentHash::of(&bytes);
    let loosens = loosens(&workspace_layer(&bytes)?);
    let before = store.about(&location.root, hash);
    if arguments.revoke {
        let text = format!("Not trusted any longer: {}/{WORKSPACE_FILE}\n", location.root.display());
        return finish(output, arguments, before, &loosens, &text);
    }
    text.push_str(
        &String::from_utf8_lossy(&bytes)
            .lines()
            .map(|line| format!("  | {}\n", escape_unprintable(line)))
            .collect::<String>(),
    );
    if loosens.is_empty() {
        text.push_str("\nIt loosens nothing: it does the same untrusted, except for settings that are not rules.\n");
    } else {
        text.push_str("\nIt loosens:\n");
        for line in &loosens {
            text.push_str(&format!("  {}\n", escape_unprintable(line)));
        }
    }
    if arguments.show {
        text.push_str(&format!("\n{}\n", show::trust_text(before).unwrap_or_default()));
        return finish(output, arguments, before, &loosens, &text);
    }
    store.trust(&location.root, hash)?;
    text.push_str(&format!("\nTrusted as it is now ({}). If it changes, it is untrusted again.\n", hash.short()));
    finish(output, arguments, FileTrust::Trusted, &loosens, &text)
}

/// Confirms rules that became milder while a command or an agent ran under the gate.
fn confirm_rules(location: &WorkspaceLocation, arguments: &TrustArguments) -> Result<ExitCode, CliError> {
    let confirmed = confirm(location)?;
    let mut output = Output::stdout();
    if arguments.common.json {
        let files: Vec<&str> = confirmed.iter().map(|(name, _, _)| name.as_str()).collect();
        output.json(&json!({ "confirmed": files }))?;
    } else if confirmed.is_empty() {
        output.write(b"All rules count already.\n")?;
    }
    for (name, before, now) in confirmed.iter().filter(|_| !arguments.common.json) {
        let diff = sayso_diff::Diff::new(before.as_bytes(), now.as_bytes());
        let options = sayso_diff::UnifiedOptions {
            context: 3,
            old_label: "counted until now",
            new_label: "counts from now on",
            rendering: sayso_diff::Rendering::Readable,
            limit: None,
        };
        output.write(format!("{}\n", escape_unprintable(name)).as_bytes())?;
        if let sayso_diff::Unified::Changes { text, .. } = diff.unified(&options) {
            for line in String::from_utf8_lossy(&text).lines() {
                output.write(format!("  {}\n", escape_unprintable(line)).as_bytes())?;
            }
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the settings and rules that would become milder, in a line each.
fn loosens(layer: &Layer) -> Vec<String> {
    let defaults = Access::ALL.into_iter().filter_map(|access| {
        let then = layer.defaults.ruling_for(access)?;
        (then < access.built_in_default()).then(|| format!("{:<5}  {access} without a matching rule", then.name()))
    });
    let rules = layer.rules.iter().filter(|rule| rule.loosens());
    defaults.chain(rules.map(|rule| format!("{:<5}  {}", rule.then.name(), show::rule_summary(rule)))).collect()
}

fn finish(
    mut output: Output,
    arguments: &TrustArguments,
    trust: FileTrust,
    loosens: &[String],
    text: &str,
) -> Result<ExitCode, CliError> {
    if arguments.common.json {
        output.json(&json!({ "workspace_file": trust, "loosens": loosens }))?;
    } else {
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
