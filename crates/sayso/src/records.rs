//! Changes from the engine or, if the records cannot be written, from the journal's file.

use rustix::fs::Access;
use sayso_api::client::{PreviewDetail, PreviewOf};
use sayso_gate::{GateError, History};
use sayso_journal::Reader;
use sayso_present::inbox::waits_text;
use sayso_review::{ChangeRecord, Preview};

use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::say;
use crate::session;
use crate::workspace_location::WorkspaceLocation;

/// The records of a workspace.
pub(crate) enum Records {
    Engine(Box<EngineConnection>),
    File(Box<Reader>),
}

impl Records {
    /// Opens the records of a workspace. Read-only records are read without an engine.
    pub(crate) fn open(location: &WorkspaceLocation) -> Result<Self, CliError> {
        let error = match EngineConnection::open(location) {
            Ok(engine) => return Ok(Self::Engine(Box::new(engine))),
            Err(error) => error,
        };
        if rustix::fs::access(&location.folder, Access::WRITE_OK).is_ok() {
            return Err(error);
        }
        // If the file cannot be read either, the first error tells more.
        let Ok(reader) = Reader::open_unwritable(&location.folder) else { return Err(error) };
        say(&format!("note: nothing can be written to {}; it is shown as it is", location.folder.display()));
        Ok(Self::File(Box::new(reader)))
    }

    /// Lists changes with a lower number than `before`, newest first.
    pub(crate) fn changes(
        &self,
        limit: u32,
        before: Option<u64>,
        session: Option<&str>,
    ) -> Result<Vec<ChangeRecord>, CliError> {
        match self {
            Self::Engine(engine) => engine.block(engine.client().list_changes(limit, before, session)),
            Self::File(reader) => {
                let (history, limit) = (History::new(reader), limit as usize);
                Ok(match session {
                    Some(session) => history.changes_of(session, before, limit)?,
                    None => history.changes(before).take(limit).collect::<Result<_, GateError>>()?,
                })
            }
        }
    }

    /// Returns a change.
    pub(crate) fn change(&self, change: u64) -> Result<ChangeRecord, CliError> {
        match self {
            Self::Engine(engine) => {
                let details = engine.client().get_change(change, PreviewDetail::Omitted, PreviewOf::Applied);
                Ok(engine.block(details)?.record)
            }
            Self::File(reader) => Ok(History::new(reader).change(change)?),
        }
    }

    /// Returns a change and its preview. No preview if its contents are no longer stored.
    pub(crate) fn change_with_preview(
        &self,
        change: u64,
        preview_of: PreviewOf,
    ) -> Result<(ChangeRecord, Option<Preview>), CliError> {
        match self {
            Self::Engine(engine) => {
                let details = engine.client().get_change(change, PreviewDetail::Contents, preview_of);
                let details = engine.block(details)?;
                Ok((details.record, details.preview))
            }
            Self::File(reader) => {
                let history = History::new(reader);
                let record = history.change(change)?;
                let preview = match preview_of {
                    PreviewOf::Applied => history.applied_preview(&record),
                    PreviewOf::Proposed => history.preview(&record),
                };
                match preview {
                    Ok(preview) => Ok((record, Some(preview))),
                    Err(GateError::ContentGone(_)) => Ok((record, None)),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Returns the session that a part of its id names. `None` if there is none.
    pub(crate) fn session(&self, given: &str) -> Result<Option<String>, CliError> {
        match self {
            Self::Engine(engine) => session::find(engine, given),
            Self::File(_) => Ok(Some(given.to_owned())),
        }
    }
}

/// Lists nested workspaces with pending changes, and their number, such as `2 wait`.
///
/// Reads their journals without starting an engine. An unreadable journal is left out, because it is not this workspace's.
pub(crate) fn pending_in_nested(location: &WorkspaceLocation) -> Vec<(WorkspaceLocation, String)> {
    let count = |nested: &WorkspaceLocation| {
        let reader = Reader::open(&nested.folder).ok()?;
        History::new(&reader).status().ok().map(|status| status.pending).filter(|pending| *pending > 0)
    };
    let nested = location.nested().into_iter();
    nested.filter_map(|nested| count(&nested).map(|pending| (nested, waits_text(pending)))).collect()
}
