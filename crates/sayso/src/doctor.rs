//! `sayso doctor`: the engines that run and how they are.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sayso_api::client::{Client, Extent, Patience, Status};
use sayso_server::EnginePlace;
use serde_json::{Value, json};

use crate::cli::DoctorArguments;
use crate::failure::Failure;
use crate::history::ago;
use crate::hook::Running;
use crate::output::Output;
use crate::state::{now, state_home};
use crate::visible::visible;

/// What was found in the folder of a workspace.
enum Found {
    Runs(Box<Status>),
    /// Something listens and does not answer as it should.
    Sick(String),
    /// A socket that nobody listens at: an engine ended without taking it away.
    LeftBehind,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let home = state_home()?;
    let mut found = Vec::new();
    for folder in std::fs::read_dir(home.join("workspaces")).into_iter().flatten().flatten() {
        let folder = folder.path();
        found.extend(look(&folder)?.map(|found| (folder, found)));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let sick = found.iter().any(|(_, found)| matches!(found, Found::Sick(_)));
    let mut output = Output::stdout();
    if arguments.place.json {
        let engines: Vec<Value> = found.iter().map(|(folder, found)| object(folder, found)).collect();
        output.json(&json!({ "engines": engines }))?;
    } else if found.is_empty() {
        output.write(b"No engine runs. Every command starts one for itself; `sayso serve` starts one for all.\n")?;
    } else {
        for (folder, found) in &found {
            output.write(text(folder, found).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(if sick { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn look(folder: &Path) -> Result<Option<Found>, Failure> {
    let place = EnginePlace::new(folder);
    if !place.socket().exists() {
        return Ok(None);
    }
    match place.connect() {
        Ok(None) => return Ok(Some(Found::LeftBehind)),
        Err(error) => return Ok(Some(Found::Sick(error.to_string()))),
        Ok(Some(_)) => {}
    }
    let failed = |error: std::io::Error| Failure::bad_input("an engine cannot be asked").why(&error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let client = Client::new(Arc::new(Running(place)), None).with_patience(Patience::For(std::time::Duration::ZERO));
    let answer = runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(5), client.status(Extent::Details { most_waiting: 0 }))
            .await
    });
    Ok(Some(match answer {
        Ok(Ok(status)) => Found::Runs(Box::new(status)),
        Ok(Err(error)) => Found::Sick(error.to_string()),
        Err(_) => Found::Sick("it does not answer".to_owned()),
    }))
}

fn text(folder: &Path, found: &Found) -> String {
    match found {
        Found::Runs(status) => {
            let mut text = format!("{}\n", visible(&status.workspace));
            let url = status.url.as_deref().unwrap_or("its socket only, for as long as its command runs");
            text.push_str(&format!(
                "  engine    process {}, sayso {}, since {}\n",
                status.process,
                status.version,
                ago(now() - status.started)
            ));
            text.push_str(&format!("  reached   {url}\n"));
            text.push_str(&format!(
                "  changes   {}, {} waiting, {} {} attached\n",
                status.changes,
                status.pending,
                status.surfaces,
                if status.surfaces == 1 { "surface" } else { "surfaces" }
            ));
            text.push_str(&format!(
                "  journal   {}, {}\n",
                visible(&status.journal),
                crate::history::megabytes(status.stored_bytes)
            ));
            text
        }
        Found::Sick(why) => format!(
            "{}\n  something listens at its socket and does not answer: {}\n  end that process; nothing is lost\n",
            visible(&folder.to_string_lossy()),
            visible(why)
        ),
        Found::LeftBehind => format!(
            "{}\n  an engine ended here without a goodbye; the next start settles what it was at\n",
            visible(&folder.to_string_lossy())
        ),
    }
}

fn object(folder: &Path, found: &Found) -> Value {
    let folder = folder.to_string_lossy();
    match found {
        Found::Runs(status) => json!({
            "state": "runs", "workspace": status.workspace, "journal": status.journal, "process": status.process,
            "version": status.version, "started": status.started, "url": status.url, "changes": status.changes,
            "pending": status.pending, "surfaces": status.surfaces, "stored_bytes": status.stored_bytes,
        }),
        Found::Sick(why) => json!({ "state": "sick", "journal": folder, "why": why }),
        Found::LeftBehind => json!({ "state": "left_behind", "journal": folder }),
    }
}
