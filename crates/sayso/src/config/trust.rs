//! The user's trust in workspace files, by content.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sayso_review::{ContentHash, ErrorKind};
use serde::{Deserialize, Serialize};

use super::read_if_there;
use crate::error::CliError;
use crate::workspace_location::WorkspaceLocation;

/// Trust in a workspace's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileTrust {
    NoFile,
    /// Unchanged since it was trusted.
    Trusted,
    /// Changed since it was trusted.
    Changed,
    /// Never trusted.
    Untrusted,
}

/// The trusted files of all workspaces, in the folder of all records, which no workspace can write.
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
    /// Content hash of its `sayso.toml`.
    hash: String,
}

/// Returns the path of the file with all trust.
pub(crate) fn trust_file(location: &WorkspaceLocation) -> PathBuf {
    location.home.join("trusted.toml")
}

impl TrustStore {
    pub(crate) fn load(location: &WorkspaceLocation) -> Result<Self, CliError> {
        let path = trust_file(location);
        let bad = |cause: String| {
            CliError::invalid_input(format!("cannot read {}", path.display()))
                .because(cause)
                .hint("remove it and trust the workspaces again with `sayso trust`")
        };
        let file = match read_if_there(&path)? {
            None => TrustFile::default(),
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| bad(error.to_string()))?;
                toml::from_str(&text).map_err(|error| bad(error.message().to_owned()))?
            }
        };
        Ok(Self { path, file })
    }

    /// Returns the trust in a file with this content.
    pub(crate) fn about(&self, root: &Path, hash: ContentHash) -> FileTrust {
        match self.file.workspace.iter().find(|trusted| Some(trusted.path.as_str()) == root.to_str()) {
            Some(trusted) if trusted.hash == hash.to_string() => FileTrust::Trusted,
            Some(_) => FileTrust::Changed,
            None => FileTrust::Untrusted,
        }
    }

    /// Trusts this content, and no other, in a workspace.
    pub(crate) fn trust(&mut self, root: &Path, hash: ContentHash) -> Result<(), CliError> {
        let path = root.to_str().ok_or_else(|| {
            CliError::invalid_input(format!("cannot trust `{}`", root.display())).because("its name is not UTF-8")
        })?;
        self.file.workspace.retain(|trusted| trusted.path != path);
        self.file.workspace.push(Trusted { path: path.to_owned(), hash: hash.to_string() });
        self.save()
    }

    /// Removes the trust in a workspace's file.
    pub(crate) fn revoke(&mut self, root: &Path) -> Result<(), CliError> {
        self.file.workspace.retain(|trusted| Some(trusted.path.as_str()) != root.to_str());
        self.save()
    }

    fn save(&self) -> Result<(), CliError> {
        let text = toml::to_string(&self.file)
            .map_err(|error| CliError::new(ErrorKind::Internal, "cannot write the trust file").caused_by(&error))?;
        replace_file(&self.path, text.as_bytes())
    }
}

fn write_error(path: &Path, error: &io::Error) -> CliError {
    CliError::io(format!("cannot write {}", path.display()), error)
}

/// Replaces a file atomically. A new file is readable by the user only.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let failed = |error: io::Error| write_error(path, &error);
    // A symbolic link stays one, because some users keep such files elsewhere.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    if let Ok(old) = real.metadata() {
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(&real).map_err(|error| failed(error.error))?;
    Ok(())
}
