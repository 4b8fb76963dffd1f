//! `sayso doctor`: what is right, what is wrong, and what to do about it.

mod agents;
mod disk;
mod engines;
mod marks;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::DoctorArguments;
use crate::diff::style::Styles;
use crate::failure::Failure;
use crate::output::Output;
use crate::state::{State, state_home};
use crate::terminal::Terminal;
use crate::visible::visible;

/// How something is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Fine,
    /// To be known, and nothing to do about it now.
    Note,
    /// To be mended.
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

/// Something that was found.
struct Finding {
    health: Health,
    /// One sentence, or several lines.
    text: String,
    /// What to do about it.
    remedy: Option<String>,
}

impl Finding {
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
    findings: Vec<Finding>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let home = state_home()?;
    let state = State::find(&arguments.place)?;
    let folders = workspaces(&home);
    let engines = engines::look_at_all(&folders)?;
    let sections = [
        Section { title: "Configuration", findings: settings::findings(&state) },
        Section { title: "Agents", findings: agents::findings() },
        Section { title: "Engines", findings: engines::findings(&engines) },
        Section { title: "Marks", findings: marks::findings() },
        Section { title: "Processes", findings: agents::processes(&home, &folders) },
        Section { title: "Disk", findings: disk::findings(&home, &folders) },
    ];
    let sick = sections.iter().flat_map(|section| &section.findings).any(|one| one.health == Health::Problem);
    let mut output = Output::stdout();
    if arguments.place.json {
        let engines: Vec<Value> = engines.iter().map(engines::Engine::object).collect();
        output
            .json(&json!({ "engines": engines, "findings": sections.iter().flat_map(objects).collect::<Vec<_>>() }))?;
    } else {
        let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
        for section in &sections {
            output.write(text(section, terminal).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(if sick { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The folders of all workspaces that have records.
fn workspaces(home: &std::path::Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(home.join("workspaces")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).filter(|folder| folder.is_dir()).collect();
    folders.sort();
    folders
}

fn objects(section: &Section) -> Vec<Value> {
    let object = |one: &Finding| json!({ "about": section.title.to_lowercase(), "state": one.health.name(), "text": one.text, "remedy": one.remedy });
    section.findings.iter().map(object).collect()
}

fn text(section: &Section, terminal: Terminal) -> String {
    let styles = Styles::of(terminal);
    let mut text = String::new();
    styles.paint(&mut text, styles.title, section.title);
    text.push('\n');
    for one in &section.findings {
        let mut lines = one.text.lines();
        let style = match one.health {
            Health::Fine => styles.added.marker,
            Health::Note => styles.note,
            Health::Problem => styles.removed.marker,
        };
        text.push_str("  ");
        styles.paint(&mut text, style, &format!("{:<7}", one.health.name()));
        text.push_str(&format!("  {}\n", visible(lines.next().unwrap_or_default())));
        for line in lines.chain(one.remedy.as_deref()) {
            text.push_str(&format!("           {}\n", visible(line)));
        }
    }
    text
}
