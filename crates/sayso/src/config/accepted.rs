//! Accepted configuration: rules that a gated process made milder do not count.
//!
//! sayso keeps a copy of each configuration file as last accepted. A file that became milder while a command or an agent ran counts only
//! after a person confirms it; until then the copy counts. `exec`, `run` and `hook` compare file and copy when a gated process ends.

use std::path::{Path, PathBuf};

use sayso_review::{Access, ContentHash, Rule};
use sayso_server::agents::Notes;

use super::file::{File, OnFailure};
use super::{WORKSPACE_FILE, read_if_there, user_file, workspace_bytes};
use crate::failure::Failure;
use crate::state::State;

/// The folder of the copies, among all of sayso's records.
const FOLDER: &str = "accepted";

/// A configuration file, with its copy.
pub(super) struct Accepted {
    /// The file's name for a person.
    pub(super) name: String,
    copy: PathBuf,
    /// Names the content that something under the gate left there.
    held: PathBuf,
    home: PathBuf,
}

/// What counts of a file.
pub(super) struct Counted {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) standing: Confirmed,
}

/// Whether a file counts as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    AsItIs,
    /// It does not: it became milder while something ran under the gate.
    NotYet,
}

impl Accepted {
    fn of(state: &State, path: &Path) -> Self {
        let folder = state.home.join(FOLDER);
        let key = ContentHash::of(path.as_os_str().as_encoded_bytes()).to_string();
        Self {
            name: path.display().to_string(),
            copy: folder.join(format!("{key}.toml")),
            held: folder.join(format!("{key}.held")),
            home: state.home.clone(),
        }
    }

    /// The user's own file, if the environment tells where it is.
    pub(super) fn user(state: &State) -> Option<Self> {
        user_file().map(|path| Self::of(state, &path))
    }

    /// The workspace's file.
    pub(super) fn workspace(state: &State) -> Self {
        Self::of(state, &state.root.join(WORKSPACE_FILE))
    }

    /// The files of which it depends what counts.
    pub(super) fn files(&self) -> [&Path; 2] {
        [&self.copy, &self.held]
    }

    /// Returns the content that counts, and accepts `current` unless it became milder while a gated process ran.
    pub(super) fn counted(&self, current: Option<Vec<u8>>, under_way: &dyn Fn() -> bool) -> Counted {
        let accepted = match std::fs::read(&self.copy) {
            Ok(accepted) if current.as_deref().unwrap_or_default() != accepted => accepted,
            Ok(_) => return Counted { bytes: current, standing: Confirmed::AsItIs },
            // Seen for the first time.
            Err(_) => return self.take(current),
        };
        if !is_milder(&accepted, current.as_deref().unwrap_or_default()) {
            return self.take(current);
        }
        let left_so = std::fs::read_to_string(&self.held).is_ok_and(|hash| hash == hash_of(current.as_deref()));
        if left_so || under_way() || Notes::new(&self.home).something_runs() {
            return Counted { bytes: Some(accepted), standing: Confirmed::NotYet };
        }
        self.take(current)
    }

    fn take(&self, current: Option<Vec<u8>>) -> Counted {
        self.accept(current.as_deref());
        Counted { bytes: current, standing: Confirmed::AsItIs }
    }

    /// Remembers that a content counts. Where nothing can be written, nothing runs under the gate either.
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

    /// Notes a content that became milder while something ran that is over now.
    fn inspect(&self, current: Option<&[u8]>) {
        let Ok(accepted) = std::fs::read(&self.copy) else { return };
        let now = current.unwrap_or_default();
        if accepted != now && is_milder(&accepted, now) {
            let _ = std::fs::write(&self.held, hash_of(current));
        }
    }
}

/// Looks at the configuration when something that ran under the gate is over.
pub(crate) fn inspect(state: &State) {
    if let (Some(accepted), Some(path)) = (Accepted::user(state), user_file())
        && let Ok(bytes) = read_if_there(&path)
    {
        accepted.inspect(bytes.as_deref());
    }
    if let Ok(bytes) = workspace_bytes(state) {
        Accepted::workspace(state).inspect(bytes.as_deref());
    }
}

/// Accepts the files as they are, since a person says so; gives the names of those that waited for it, with the content before and now.
pub(crate) fn confirm(state: &State) -> Result<Vec<(String, String, String)>, Failure> {
    let mut confirmed = Vec::new();
    let user = user_file().map(|path| read_if_there(&path)).transpose()?.flatten();
    let files = [(Accepted::user(state), user), (Some(Accepted::workspace(state)), workspace_bytes(state)?)];
    for (accepted, bytes) in files.into_iter().filter_map(|(accepted, bytes)| Some((accepted?, bytes))) {
        if let Some(now) = &bytes {
            File::parse(now, &accepted.name)?;
        }
        let before = std::fs::read(&accepted.copy).unwrap_or_default();
        if accepted.counted(bytes.clone(), &|| false).standing == Confirmed::NotYet {
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

/// Whether rules may let something happen that they did not. What cannot be read lets nothing happen.
fn is_milder(before: &[u8], now: &[u8]) -> bool {
    let (Ok(before), Ok(now)) = (File::parse(before, "before"), File::parse(now, "now")) else { return false };
    let default = |file: &File, access: Access| file.policy.of(access).unwrap_or(access.built_in_default());
    let defaults = Access::ALL.into_iter().any(|access| default(&now, access) < default(&before, access));
    let strictness = |file: &File| match file.hook.on_failure {
        Some(OnFailure::Allow) => 0,
        Some(OnFailure::Ask) => 1,
        Some(OnFailure::Deny) | None => 2,
    };
    let loosened = strictness(&now) < strictness(&before);
    defaults || loosened || rules_are_milder(&before.rule, &now.rule)
}

/// Whether a rule that loosens came, or one that does not went, or both changed their order.
fn rules_are_milder(before: &[Rule], now: &[Rule]) -> bool {
    // All that is left of the old rules, in the order in which they are now.
    let kept: Vec<&Rule> = now.iter().filter(|rule| before.contains(rule)).collect();
    let came = now.iter().any(|rule| rule.loosens() && !before.contains(rule));
    let went = before.iter().any(|rule| !rule.loosens() && !now.contains(rule));
    let as_before: Vec<&Rule> = before.iter().filter(|rule| now.contains(rule)).collect();
    came || went || kept != as_before
}

#[cfg(test)]
mod tests {
    use super::is_milder;

    #[test]
    fn what_lets_more_happen_is_milder() {
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
