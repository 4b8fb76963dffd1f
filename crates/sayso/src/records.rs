//! What `log` and `show` read: the engine or, where nothing can be written, the journal's file itself.

use rustix::fs::Access;
use sayso_api::client::{Shown, View};
use sayso_gate::{GateError, History};
use sayso_journal::Reader;
use sayso_review::{ChangeRecord, Preview};

use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::say;
use crate::session;
use crate::state::State;

pub(crate) enum Records {
    Engine(Box<Connected>),
    File(Box<Reader>),
}

impl Records {
    /// Opens the records of a workspace. Those that cannot be written to are read as they are.
    pub(crate) fn open(state: &State) -> Result<Self, Failure> {
        let failure = match Connected::to(state) {
            Ok(connected) => return Ok(Self::Engine(Box::new(connected))),
            Err(failure) => failure,
        };
        if rustix::fs::access(&state.folder, Access::WRITE_OK).is_ok() {
            return Err(failure);
        }
        // Whatever is wrong with reading, that nothing can be written comes first.
        let Ok(reader) = Reader::open_unwritable(&state.folder) else { return Err(failure) };
        say(&format!("note: nothing can be written to {}; it is shown as it is", state.folder.display()));
        Ok(Self::File(Box::new(reader)))
    }

    /// Some changes before one, newest first.
    pub(crate) fn changes(
        &self,
        most: u32,
        before: Option<u64>,
        session: Option<&str>,
    ) -> Result<Vec<ChangeRecord>, Failure> {
        match self {
            Self::Engine(connected) => connected.block(connected.client().list_changes(most, before, session)),
            Self::File(reader) => {
                let (history, most) = (History::new(reader), most as usize);
                Ok(match session {
                    Some(session) => history.changes_of(session, before, most)?,
                    None => history.changes(before).take(most).collect::<Result<_, GateError>>()?,
                })
            }
        }
    }

    /// A change, with what it would do to files or did.
    pub(crate) fn change(&self, change: u64, shown: Shown) -> Result<(ChangeRecord, Option<Preview>), Failure> {
        match self {
            Self::Engine(connected) => {
                let progress = connected.block(connected.client().get_change(change, View::Content, shown))?;
                Ok((progress.record, progress.preview))
            }
            Self::File(reader) => {
                let history = History::new(reader);
                let record = history.change(change)?;
                let preview = match shown {
                    Shown::Applied => history.applied(&record),
                    Shown::Proposed => history.preview(&record),
                };
                match preview {
                    Ok(preview) => Ok((record, Some(preview))),
                    Err(GateError::ContentGone(_)) => Ok((record, None)),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// The session that is meant; `None` if there are no changes of any such.
    pub(crate) fn session(&self, given: &str) -> Result<Option<String>, Failure> {
        match self {
            Self::Engine(connected) => session::meant(connected, given),
            Self::File(_) => Ok(Some(given.to_owned())),
        }
    }
}
