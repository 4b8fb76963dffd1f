//! Disk use of the records, free space, and records of deleted workspaces.

use std::path::{Path, PathBuf};

use super::DoctorFinding;
use sayso_present::words::{count, format_size};

use crate::workspace_location::recorded_root;

/// Free space below which a change may not be recorded.
const MIN_FREE_BYTES: u64 = 100_000_000;

pub(super) fn findings(home: &Path, folders: &[PathBuf]) -> Vec<DoctorFinding> {
    let sizes: Vec<u64> = folders.iter().map(|folder| size(folder)).collect();
    let workspaces = count(folders.len() as u64, "workspace");
    let all = format_size(sizes.iter().sum());
    let mut findings = vec![DoctorFinding::fine(format!("{all} of records of {workspaces} in {}", home.display()))];
    if let Ok(system) = rustix::fs::statvfs(nearest(home)) {
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free < MIN_FREE_BYTES {
            let text = format!("{} are left on the disk of the records", format_size(free));
            let remedy =
                "make room, or delete old contents with `sayso gc`; nothing is applied that cannot be recorded";
            findings.push(DoctorFinding::problem(text, remedy));
        }
    }
    if let Some(error) = unwritable(home) {
        let text = format!("the records in {} are read-only: {error}", home.display());
        findings.push(DoctorFinding::problem(
            text,
            "look at the folder's owner and permissions; until then you can only look",
        ));
    }
    for (folder, size) in folders.iter().zip(sizes) {
        if let Some(root) = recorded_root(folder).filter(|root| !root.exists()) {
            let text = format!("the workspace {} is gone; its records take {}", root.display(), format_size(size));
            findings.push(DoctorFinding::note(
                text,
                format!("if you do not want to undo anything in it: remove {}", folder.display()),
            ));
        }
    }
    findings
}

/// Returns the size of all files in a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the nearest existing directory upwards.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn unwritable(home: &Path) -> Option<std::io::Error> {
    let access = rustix::fs::access(nearest(home), rustix::fs::Access::WRITE_OK);
    access.err().map(std::io::Error::from)
}
