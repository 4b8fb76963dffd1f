//! Accepted configuration: rules that a gated process made milder do not count.
//!
//! sayso keeps a copy of each configuration file as last accepted. A file that became milder while a command or an agent ran counts only
//! after a person confirms it; until then the copy counts. `exec`, `run` and `hook` compare file and copy when a gated process ends.

use std::path::{Path, PathBuf};

use sayso_review::{Access, ContentHash, Rule};
use sayso_server::agent_registry::AgentRegistry;

use super::file::{File, OnFailure};
use super::{WORKSPACE_FILE, read_if_there, user_file, workspace_bytes};
use crate::error::CliError;
use crate::workspace_location::WorkspaceLocation;

/// The folder of the copies, below the folder of all records.
const FOLDER: &str = "accepted";

/// A configuration file, with its copy.
pub(super) struct Accepted {
    /// The file's name for display.
    pub(super) name: String,
    copy: PathBuf,
    /// A file with the hash of a milder content that a gated process left behind.
    held: PathBuf,
    home: PathBuf,
}

/// The content of a file that counts.
pub(super) struct CountedConfiguration {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) confirmation: Confirmation,
}

/// Confirmation of a file's present content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// The present content counts.
    Confirmed,
    /// The accepted copy counts, because the file became milder while a gated process ran.
    Unconfirmed,
}

impl Accepted {
    fn of(location: &WorkspaceLocation, path: &Path) -> Self {
        let folder = location.home.join(FOLDER);
        let key = ContentHash::of(path.as_os_str().as_encoded_bytes()).to_string();
        Self {
            name: path.display().to_string(),
            copy: folder.join(format!("{key}.toml")),
            held: folder.join(format!("{key}.held")),
            home: location.home.clone(),
        }
    }

    /// Returns the user's file. `None` if the environment names no place for it.
    pub(super) fn user(location: &WorkspaceLocation) -> Option<Self> {
        user_file().map(|path| Self::of(location, &path))
    }

    /// The workspace's file.
    pub(super) fn workspace(location: &WorkspaceLocation) -> Self {
        Self::of(location, &location.root.join(WORKSPACE_FILE))
    }

    /// The files that decide which content counts.
    pub(super) fn files(&self) -> [&Path; 2] {
        [&self.copy, &self.held]
    }

    /// Returns the content that counts, and accepts `current` unless it became milder while a gated process ran.
    pub(super) fn counted(
        &self,
        current: Option<Vec<u8>>,
        has_running_writer: &dyn Fn() -> bool,
    ) -> CountedConfiguration {
        let accepted = match std::fs::read(&self.copy) {
            Ok(accepted) if current.as_deref().unwrap_or_default() != accepted => accepted,
            Ok(_) => return CountedConfiguration { bytes: current, confirmation: Confirmation::Confirmed },
            // Without a copy, the first content is accepted.
            Err(_) => return self.take(current),
        };
        if !is_milder(&accepted, current.as_deref().unwrap_or_default()) {
            return self.take(current);
        }
        let left_so = std::fs::read_to_string(&self.held).is_ok_and(|hash| hash == hash_of(current.as_deref()));
        if left_so || has_running_writer() || AgentRegistry::new(&self.home).has_running_children() {
            return CountedConfiguration { bytes: Some(accepted), confirmation: Confirmation::Unconfirmed };
        }
        self.take(current)
    }

    fn take(&self, current: Option<Vec<u8>>) -> CountedConfiguration {
        self.accept(current.as_deref());
        CountedConfiguration { bytes: current, confirmation: Confirmation::Confirmed }
    }

    /// Writes the copy. Best effort: without a writable records folder, no gated process can run either.
    fn accept(&self, current: Option<&[u8]>) {
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(self.home.join(FOLDER))?;
            let new = self.copy.with_extension(format!("new-{}", std::process::id()));
            std::fs::write(&new, current.unwrap_or_default())?;
            std::fs::rename(&new, &self.copy)
        };
        let _ = write();
        let _ = std::fs::remove_file(&self.held);
    }

    /// Records a content that became milder while a gated process ran.
    fn inspect(&self, current: Option<&[u8]>) {
        let Ok(accepted) = std::fs::read(&self.copy) else { return };
        let now = current.unwrap_or_default();
        if accepted != now && is_milder(&accepted, now) {
            let _ = std::fs::write(&self.held, hash_of(current));
        }
    }
}

/// Compares the configuration with the copies when a gated process ends.
pub(crate) fn inspect(location: &WorkspaceLocation) {
    if let (Some(accepted), Some(path)) = (Accepted::user(location), user_file())
        && let Ok(bytes) = read_if_there(&path)
    {
        accepted.inspect(bytes.as_deref());
    }
    if let Ok(bytes) = workspace_bytes(location) {
        Accepted::workspace(location).inspect(bytes.as_deref());
    }
}

/// Accepts the present files for a person. Returns the names of unconfirmed files, with the content before and now.
pub(crate) fn confirm(location: &WorkspaceLocation) -> Result<Vec<(String, String, String)>, CliError> {
    let mut confirmed = Vec::new();
    let user = user_file().map(|path| read_if_there(&path)).transpose()?.flatten();
    let files = [(Accepted::user(location), user), (Some(Accepted::workspace(location)), workspace_bytes(location)?)];
    for (accepted, bytes) in files.into_iter().filter_map(|(accepted, bytes)| Some((accepted?, bytes))) {
        if let Some(now) = &bytes {
            File::parse(now, &accepted.name)?;
        }
        let before = std::fs::read(&accepted.copy).unwrap_or_default();
        if accepted.counted(bytes.clone(), &|| false).confirmation == Confirmation::Unconfirmed {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            confirmed.push((accepted.name.clone(), text(&before), text(bytes.as_deref().unwrap_or_default())));
            accepted.accept(bytes.as_deref());
        }
    }
    Ok(confirmed)
}

fn hash_of(bytes: Option<&[u8]>) -> String {
    ContentHash::of(bytes.unwrap_or_default()).to_string()
}

/// `true` if a file may allow an action that it did not allow before. An unreadable file allows no action.
fn is_milder(before: &[u8], now: &[u8]) -> bool {
    let (Ok(before), Ok(now)) = (File::parse(before, "before"), File::parse(now, "now")) else { return false };
    let default = |file: &File, access: Access| file.policy.ruling_for(access).unwrap_or(access.built_in_default());
    let defaults = Access::ALL.into_iter().any(|access| default(&now, access) < default(&before, access));
    let strictness = |file: &File| match file.hook.on_failure {
        Some(OnFailure::Allow) => 0,
        Some(OnFailure::Ask) => 1,
        Some(OnFailure::Deny) | None => 2,
    };
    let loosened = strictness(&now) < strictness(&before);
    defaults || loosened || rules_are_milder(&before.rule, &now.rule)
}

/// `true` if a loosening rule was added, a strict one was removed, or the order changed.
fn rules_are_milder(before: &[Rule], now: &[Rule]) -> bool {
    // The remaining old rules, in their present order.
    let kept: Vec<&Rule> = now.iter().filter(|rule| before.contains(rule)).collect();
    let has_looser = now.iter().any(|rule| rule.loosens() && !before.contains(rule));
    let lacks_strict = before.iter().any(|rule| !rule.loosens() && !now.contains(rule));
    let as_before: Vec<&Rule> = before.iter().filter(|rule| now.contains(rule)).collect();
    has_looser || lacks_strict || kept != as_before
}

#[cfg(test)]
mod tests {
    use super::is_milder;

    #[test]
    fn file_that_allows_more_is_milder() {
        let rule = |what: &str, then: &str| format!("[[rule]]\nrun = \"{what}\"\nthen = \"{then}\"\n");
        let (allow, deny, ask) = (rule("ls", "allow"), rule("rm", "deny"), rule("git push", "ask"));
        let milder = |before: &str, now: &str| is_milder(before.as_bytes(), now.as_bytes());
        assert!(milder("", &allow));
        assert!(milder(&deny, ""));
        assert!(milder(&format!("{deny}{ask}"), &ask));
        assert!(milder("", "[policy]\nwrite = \"allow\"\n"));
        assert!(milder("[policy]\nread = \"ask\"\n", ""));
        assert!(milder(&format!("{deny}{allow}"), &format!("{allow}{deny}")));
        assert!(milder("[hook]\non_failure = \"deny\"\n", "[hook]\non_failure = \"ask\"\n"));
        assert!(!milder("[hook]\non_failure = \"allow\"\n", "[hook]\non_failure = \"ask\"\n"));
        assert!(!milder("", &deny));
        assert!(!milder(&ask, &format!("{ask}{deny}")));
        assert!(!milder(&allow, ""));
        assert!(!milder(&format!("{allow}{deny}"), &deny));
        assert!(!milder("", "[policy]\nwrite = \"deny\"\n"));
        assert!(!milder(&deny, "not toml ["));
    }
}
