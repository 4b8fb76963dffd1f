//! The disk: how much the records take, how much is left, and records of workspaces that are gone.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::history::megabytes;
use crate::state::root_of;

/// With less than this left, a change may not be recorded.
const LITTLE: u64 = 100_000_000;

pub(super) fn findings(home: &Path, folders: &[PathBuf]) -> Vec<Finding> {
    let sizes: Vec<u64> = folders.iter().map(|folder| size(folder)).collect();
    let count = match folders.len() {
        1 => "1 workspace".to_owned(),
        count => format!("{count} workspaces"),
    };
    let all = megabytes(sizes.iter().sum());
    let mut findings = vec![Finding::fine(format!("{all} of records of {count} in {}", home.display()))];
    if let Ok(system) = rustix::fs::statvfs(nearest(home)) {
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free < LITTLE {
            let text = format!("{} are left on the disk of the records", megabytes(free));
            let remedy =
                "make room, or let go of old contents with `sayso gc`; nothing is applied that cannot be recorded";
            findings.push(Finding::problem(text, remedy));
        }
    }
    if let Some(error) = unwritable(home) {
        let text = format!("the records in {} cannot be written to: {error}", home.display());
        findings
            .push(Finding::problem(text, "look at the folder's owner and permissions; until then you can only look"));
    }
    for (folder, size) in folders.iter().zip(sizes) {
        if let Some(root) = root_of(folder).filter(|root| !root.exists()) {
            let text = format!("the workspace {} is gone; its records take {}", root.display(), megabytes(size));
            findings.push(Finding::note(
                text,
                format!("if you do not want to undo anything in it: remove {}", folder.display()),
            ));
        }
    }
    findings
}

/// The bytes of all files in a folder.
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

/// The nearest directory upwards that is there.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn unwritable(home: &Path) -> Option<std::io::Error> {
    let access = rustix::fs::access(nearest(home), rustix::fs::Access::WRITE_OK);
    access.err().map(std::io::Error::from)
}
