//! Sessions by a part of their id. The engine knows all of them.

use sayso_api::ErrorData;
use sayso_api::client::ClientError;

use crate::engine::EngineConnection;
use crate::error::CliError;

/// Returns the session that `given` names: an id, or the start or end of one. `None` if there is no such session.
pub(crate) fn find(engine: &EngineConnection, given: &str) -> Result<Option<String>, CliError> {
    if given.is_empty() {
        return Err(
            CliError::invalid_input("--session is empty").hint("`sayso request list` shows the ends of session ids")
        );
    }
    match engine.wait(engine.client().resolve_session(given)) {
        Ok(session) => Ok(Some(session)),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the session that `given` names, or `given` itself if there is no such session.
pub(crate) fn find_or_given(engine: &EngineConnection, given: Option<&str>) -> Result<Option<String>, CliError> {
    let Some(given) = given else { return Ok(None) };
    Ok(Some(find(engine, given)?.unwrap_or_else(|| given.to_owned())))
}

fn is_unknown(error: &ClientError) -> bool {
    matches!(error.data(), Some(ErrorData::AmbiguousSession { count: 0, .. }))
}
