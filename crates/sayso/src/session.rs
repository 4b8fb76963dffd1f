//! Sessions by the beginning of their id, which is all that anybody wants to type.

use std::collections::BTreeSet;

use crate::engine::Connected;
use crate::failure::Failure;
use crate::visible::visible;

/// Changes that are looked at in one call.
const SOME: u32 = 1_000;
/// Sessions that are named if several begin alike.
const MOST_NAMED: usize = 5;
/// As much of an id as is shown where there is little room: enough to tell apart those that chance has made.
const SHORT: usize = 8;

/// The beginning of a session's id.
pub(crate) fn short(session: &str) -> String {
    visible(&session.chars().take(SHORT).collect::<String>()).into_owned()
}

/// The session that is meant by its id, or by the beginning of it; `None` if there are no changes of any such.
pub(crate) fn meant(connected: &Connected, given: &str) -> Result<Option<String>, Failure> {
    let client = connected.client();
    // What is given in whole is meant, whatever begins with it.
    if !connected.block(client.list_changes(1, None, Some(given)))?.is_empty() {
        return Ok(Some(given.to_owned()));
    }
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut before = None;
    loop {
        let records = connected.block(client.list_changes(SOME, before, None))?;
        let Some(last) = records.last() else { break };
        before = Some(last.change);
        let sessions = records.into_iter().filter_map(|record| record.origin.session);
        found.extend(sessions.filter(|session| session.starts_with(given)));
    }
    if found.len() > 1 {
        let mut names: Vec<String> = found.iter().take(MOST_NAMED).map(|name| format!("`{}`", visible(name))).collect();
        if found.len() > MOST_NAMED {
            names.push(format!("{} more", found.len() - MOST_NAMED));
        }
        return Err(Failure::bad_input(format!(
            "several sessions begin with `{}`: {}",
            visible(given),
            names.join(", ")
        ))
        .hint("give more of the one that is meant"));
    }
    Ok(found.pop_first())
}

/// The same where it does not matter whether there is one.
pub(crate) fn meant_or_given(connected: &Connected, given: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(given) = given else { return Ok(None) };
    Ok(Some(meant(connected, given)?.unwrap_or_else(|| given.to_owned())))
}
