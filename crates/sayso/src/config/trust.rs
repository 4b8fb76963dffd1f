//! Which workspace files the user trusts, by content.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sayso_review::ContentHash;
use serde::{Deserialize, Serialize};

use super::read_if_there;
use crate::failure::Failure;
use crate::state::State;

/// How a workspace's file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trust {
    /// There is none.
    NoFile,
    /// It is as it was when it was trusted.
    Trusted,
    /// It was trusted and has changed since.
    Changed,
    /// It was never trusted.
    Untrusted,
}

/// What the user trusts, in the state folder where no workspace reaches.
#[derive(Debug)]
pub(crate) struct TrustStore {
    path: PathBuf,
    file: TrustFile,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    workspace: Vec<Trusted>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trusted {
    path: String,
    /// BLAKE3 of the bytes of its `sayso.toml`.
    hash: String,
}

/// Where trust is kept.
pub(crate) fn trust_file(state: &State) -> PathBuf {
    state.home.join("trusted.toml")
}

impl TrustStore {
    pub(crate) fn load(state: &State) -> Result<Self, Failure> {
        let path = trust_file(state);
        let bad = |why: &dyn ToString| {
            Failure::bad_input(format!("{} is not understood", path.display()))
                .why(&why.to_string())
                .hint("remove it and trust the workspaces again with `sayso trust`")
        };
        let file = match read_if_there(&path)? {
            None => TrustFile::default(),
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| bad(&error))?;
                toml::from_str(&text).map_err(|error| bad(&error.message()))?
            }
        };
        Ok(Self { path, file })
    }

    /// How a file with these bytes stands in a workspace.
    pub(crate) fn about(&self, root: &Path, hash: ContentHash) -> Trust {
        match self.file.workspace.iter().find(|trusted| Some(trusted.path.as_str()) == root.to_str()) {
            Some(trusted) if trusted.hash == hash.to_string() => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Untrusted,
        }
    }

    /// Trusts a file with these bytes, and no other, in a workspace.
    pub(crate) fn trust(&mut self, root: &Path, hash: ContentHash) -> Result<(), Failure> {
        let path = root.to_str().ok_or_else(|| {
            Failure::bad_input(format!("`{}` cannot be trusted", root.display())).why(&"its name is not UTF-8")
        })?;
        self.file.workspace.retain(|trusted| trusted.path != path);
        self.file.workspace.push(Trusted { path: path.to_owned(), hash: hash.to_string() });
        self.save()
    }

    /// Trusts nothing in a workspace.
    pub(crate) fn revoke(&mut self, root: &Path) -> Result<(), Failure> {
        self.file.workspace.retain(|trusted| Some(trusted.path.as_str()) != root.to_str());
        self.save()
    }

    fn save(&self) -> Result<(), Failure> {
        let text = toml::to_string(&self.file).map_err(|error| failed(&self.path, &error))?;
        write_whole(&self.path, text.as_bytes())
    }
}

fn failed(path: &Path, why: &impl ToString) -> Failure {
    Failure::bad_input(format!("{} cannot be written", path.display())).why(why)
}

/// Replaces a file of the user's at once, or leaves it as it was; a new one is readable by the user only.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt as _;
    let error = |error: &std::io::Error| failed(path, error);
    // A link, as people have who keep such files elsewhere, stays one.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().ok_or_else(|| failed(path, &"it has no folder"))?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| error(&e))?;
    // Only its owner can read what this makes.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| error(&e))?;
    if let Ok(old) = real.metadata() {
        file.as_file().set_permissions(old.permissions()).map_err(|e| error(&e))?;
    }
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| error(&e))?;
    file.persist(&real).map_err(|e| error(&e.error))?;
    Ok(())
}
