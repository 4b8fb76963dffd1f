//! Resolution of abbreviated session ids.

use std::collections::BTreeSet;

use sayso_api::convert::BadMessage;
use sayso_api::error::ErrorData;
use sayso_review::ErrorKind;

use crate::failure::Failure;
use crate::host::Host;

/// Recent sessions and recent requests that are searched.
const SEARCH_LIMIT: usize = 1_000;
/// Matching ids in an error.
const MAX_NAMED_MATCHES: usize = 5;

/// Returns the full id of the session whose id starts or ends with `given`. An exact match wins.
pub(super) fn resolve(host: &Host, given: &str) -> Result<String, Failure> {
    if given.is_empty() {
        return Err(BadMessage::new("given", "it is empty").into());
    }
    let known = known_sessions(host)?;
    if known.contains(given) {
        return Ok(given.to_owned());
    }
    let mut matches: Vec<String> =
        known.into_iter().filter(|session| session.starts_with(given) || session.ends_with(given)).collect();
    match matches.pop() {
        Some(session) if matches.is_empty() => Ok(session),
        Some(session) => {
            matches.push(session);
            Err(ambiguous(given, matches))
        }
        None => Err(ambiguous(given, matches)),
    }
}

/// Sessions that were started, that have changes, or that sent requests.
fn known_sessions(host: &Host) -> Result<BTreeSet<String>, Failure> {
    let mut known: BTreeSet<String> = host.gate.read(|history| {
        let started = history.sessions(SEARCH_LIMIT)?.into_iter().map(|record| record.session);
        let mut known: BTreeSet<String> = started.collect();
        for record in history.changes(None) {
            known.extend(record?.origin.session);
        }
        Ok(known)
    })?;
    let interceptor = &host.proxy.interceptor;
    known.extend(interceptor.sessions().into_iter().map(|view| view.session));
    let recorded = interceptor.records(None, None, SEARCH_LIMIT)?;
    known.extend(recorded.into_iter().filter_map(|record| record.received.origin.session));
    Ok(known)
}

/// The error for no match or several matches.
fn ambiguous(given: &str, mut matches: Vec<String>) -> Failure {
    let count = matches.len();
    matches.truncate(MAX_NAMED_MATCHES);
    let message = if count == 0 {
        format!("no session id starts or ends with `{given}`")
    } else {
        let mut names: Vec<String> = matches.iter().map(|session| format!("`{session}`")).collect();
        if count > matches.len() {
            names.push(format!("{} more", count - matches.len()));
        }
        format!("several session ids start or end with `{given}`: {}", names.join(", "))
    };
    let hint = if count == 0 { "run `sayso log` to list changes with their sessions" } else { "give more of the id" };
    let data = ErrorData::AmbiguousSession { given: given.to_owned(), matches, count: count as u64 };
    Failure::new(ErrorKind::InvalidArgs, message).hint(hint).data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_session_names_first_matches() {
        let matches: Vec<String> = (1..=7).map(|number| format!("s{number}")).collect();
        let failure = ambiguous("s", matches.clone());
        assert_eq!(failure.message, "several session ids start or end with `s`: `s1`, `s2`, `s3`, `s4`, `s5`, 2 more");
        let data = ErrorData::AmbiguousSession { given: "s".to_owned(), matches: matches[..5].to_vec(), count: 7 };
        assert_eq!(failure.data, Some(data));
        assert_eq!(ambiguous("x", Vec::new()).message, "no session id starts or ends with `x`");
    }
}
