//! `sayso doctor`: checks the installation, and names remedies.

mod agents;
mod disk;
mod engines;
mod marks;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;

use sayso_present::escape::escape_unprintable;
use sayso_present::span::{Style, StyledText};
use serde_json::{Value, json};

use crate::cli::DoctorArguments;
use crate::error::CliError;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::workspace_location::{WorkspaceLocation, state_home};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Fine,
    /// Worth knowing; needs no action.
    Note,
    /// Needs action.
    Problem,
}

impl Health {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// A result of a check.
struct DoctorFinding {
    health: Health,
    /// One sentence, or several lines.
    text: String,
    /// An imperative sentence.
    remedy: Option<String>,
}

impl DoctorFinding {
    fn fine(text: impl Into<String>) -> Self {
        Self { health: Health::Fine, text: text.into(), remedy: None }
    }

    fn note(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Note, text: text.into(), remedy: Some(remedy.into()) }
    }

    fn problem(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { health: Health::Problem, text: text.into(), remedy: Some(remedy.into()) }
    }
}

/// The findings about one subject.
struct Section {
    title: &'static str,
    findings: Vec<DoctorFinding>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, CliError> {
    let home = state_home()?;
    let location = WorkspaceLocation::find(&arguments.common)?;
    let folders = workspaces(&home);
    let engines = engines::inspect_all(&folders)?;
    let sections = [
        Section { title: "Configuration", findings: settings::findings(&location) },
        Section { title: "Agents", findings: agents::findings() },
        Section { title: "Engines", findings: engines::findings(&engines) },
        Section { title: "Marks", findings: marks::findings() },
        Section { title: "Processes", findings: agents::processes(&home, &folders) },
        Section { title: "Disk", findings: disk::findings(&home, &folders) },
    ];
    let has_problem = sections.iter().flat_map(|section| &section.findings).any(|one| one.health == Health::Problem);
    let mut output = Output::stdout();
    if arguments.common.json {
        let engines: Vec<Value> = engines.iter().map(engines::InspectedEngine::object).collect();
        output
            .json(&json!({ "engines": engines, "findings": sections.iter().flat_map(objects).collect::<Vec<_>>() }))?;
    } else {
        let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
        for section in &sections {
            output.styled(&text(section), terminal)?;
        }
    }
    output.finish()?;
    Ok(if has_problem { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Lists the records folders of all workspaces.
fn workspaces(home: &std::path::Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(home.join("workspaces")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).filter(|folder| folder.is_dir()).collect();
    folders.sort();
    folders
}

fn objects(section: &Section) -> Vec<Value> {
    let object = |one: &DoctorFinding| json!({ "about": section.title.to_lowercase(), "state": one.health.name(), "text": one.text, "remedy": one.remedy });
    section.findings.iter().map(object).collect()
}

fn text(section: &Section) -> StyledText {
    let mut text = StyledText::new();
    text.line(Style::Title, section.title);
    for finding in &section.findings {
        let mut lines = finding.text.lines();
        let style = match finding.health {
            Health::Fine => Style::Added,
            Health::Note => Style::Note,
            Health::Problem => Style::Removed,
        };
        text.plain("  ");
        text.push(style, format!("{:<7}", finding.health.name()));
        text.plain(format!("  {}\n", escape_unprintable(lines.next().unwrap_or_default())));
        for line in lines.chain(finding.remedy.as_deref()) {
            text.plain(format!("           {}\n", escape_unprintable(line)));
        }
    }
    text
}
