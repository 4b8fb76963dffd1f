//! The configuration files and their problems.

use super::DoctorFinding;
use crate::config::{Config, FileTrust, WORKSPACE_FILE, user_file};
use crate::workspace_location::WorkspaceLocation;

pub(super) fn findings(location: &WorkspaceLocation) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    match user_file() {
        Some(file) if file.exists() => findings.push(DoctorFinding::fine(format!("your file {}", file.display()))),
        Some(file) => findings.push(DoctorFinding::fine(format!("no file of yours; it would be {}", file.display()))),
        None => findings.push(DoctorFinding::note(
            "there is no place for a file of yours: neither XDG_CONFIG_HOME nor HOME is set to an absolute path",
            "set HOME to have rules of your own",
        )),
    }
    match Config::load(location).and_then(|config| config.rules().map(|_| config)) {
        Ok(config) => {
            findings.extend(trust(&config));
            for file in &config.unconfirmed {
                let text = format!("{file} became milder while a gated process ran; the rules before that count");
                findings.push(DoctorFinding::problem(text, "look at it, then `sayso trust --rules`"));
            }
            for ignored in &config.ignored {
                let text = format!("`{}` in {WORKSPACE_FILE} does not count: {}", ignored.key, ignored.reason);
                findings.push(DoctorFinding::note(text, "set it in your own file, or leave it out"));
            }
        }
        Err(error) => {
            let remedy = error.hint_text().unwrap_or("correct the file").to_owned();
            let text = format!("{}\neverything is denied until then", error.message());
            findings.push(DoctorFinding::problem(text, remedy));
        }
    }
    findings
}

fn trust(config: &Config) -> Option<DoctorFinding> {
    let remedy = format!("read {WORKSPACE_FILE}, then `sayso trust`");
    match config.trust {
        FileTrust::NoFile => None,
        FileTrust::Trusted => Some(DoctorFinding::fine(format!("{WORKSPACE_FILE} of this workspace is trusted"))),
        FileTrust::Changed => Some(DoctorFinding::note(
            format!("{WORKSPACE_FILE} changed since you trusted it, so that it can only make rules stricter"),
            remedy,
        )),
        FileTrust::Untrusted => Some(DoctorFinding::note(
            format!("{WORKSPACE_FILE} is not trusted, so that it can only make rules stricter"),
            remedy,
        )),
    }
}
