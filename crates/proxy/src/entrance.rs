//! Where agents come in: `/p/<capability>/<upstream>/…`.
//!
//! A capability is a random name. It authenticates an agent's requests, names its run, and is all that it can do. Those that were
//! opened are kept in a file beside the journal, so that an agent goes on when another engine takes over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::desk::{Run, SavedError};

/// How many are kept.
const MOST: usize = 256;

/// An entrance that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrance {
    /// The capability.
    pub capability: String,
    /// The agent that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where its requests go, by name, where that is not what the user has configured: an agent may have been told otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstreams: BTreeMap<String, String>,
    /// Whether it outlives its run.
    #[serde(default)]
    pub lasting: bool,
}

impl Entrance {
    /// Whether an address is its own.
    fn is_at(&self, url: &str) -> bool {
        let path = url.split_once("/p/").map(|(_, path)| path);
        path.is_some_and(|path| path.split('/').next() == Some(&self.capability))
    }

    /// The run that it was opened for.
    pub fn run(&self) -> Run {
        Run { name: self.capability.get(..8).unwrap_or(&self.capability).to_owned(), agent: self.agent.clone() }
    }
}

/// All entrances of a workspace.
#[derive(Debug)]
pub struct Entrances {
    file: PathBuf,
    open: Mutex<Vec<Entrance>>,
    /// How often they changed.
    changes: AtomicU64,
}

impl Entrances {
    /// Those that are open, as the journal's folder tells.
    pub fn load(journal: &Path) -> Self {
        let file = journal.join("entrances.json");
        let open = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { file, open: Mutex::new(open), changes: AtomicU64::new(0) }
    }

    /// Opens one for a run, with upstreams of its own.
    pub fn open(&self, agent: Option<String>, upstreams: BTreeMap<String, String>) -> Result<Entrance, SavedError> {
        let entrance = Entrance { capability: self.capability()?, agent, upstreams, lasting: false };
        self.change(|open| {
            let surplus = (open.len() + 1).saturating_sub(MOST);
            // The oldest runs are long over.
            let mut dropped = 0;
            open.retain(|entrance| {
                let goes = !entrance.lasting && dropped < surplus;
                dropped += usize::from(goes);
                !goes
            });
            open.push(entrance.clone());
        })?;
        Ok(entrance)
    }

    /// The one for an agent that a person starts by themselves, by where its requests go: always the same, so that settings stay
    /// true. An agent that was told to come here comes by the one that it was told.
    pub fn lasting(&self, agent: Option<String>, upstreams: BTreeMap<String, String>) -> Result<Entrance, SavedError> {
        let known = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = known.iter().filter(|entrance| entrance.lasting && entrance.agent == agent);
        let told = own.clone().find(|entrance| upstreams.values().any(|url| entrance.is_at(url)));
        let found = told.or_else(|| own.find(|entrance| entrance.upstreams == upstreams)).cloned();
        drop(known);
        if let Some(found) = found {
            return Ok(found);
        }
        let entrance = Entrance { capability: self.capability()?, agent, upstreams, lasting: true };
        self.change(|open| open.push(entrance.clone()))?;
        Ok(entrance)
    }

    /// Closes one: its run is over.
    pub fn close(&self, capability: &str) -> Result<Option<Entrance>, SavedError> {
        let mut closed = None;
        self.change(|open| {
            let place = open.iter().position(|entrance| entrance.capability == capability && !entrance.lasting);
            closed = place.map(|place| open.remove(place));
        })?;
        Ok(closed)
    }

    /// How often they changed: what was found before is still so while this is the same.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The one with a capability.
    pub fn find(&self, capability: &str) -> Option<Entrance> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Guessing one of 2^128 names by how long a comparison takes is nothing to fear on this machine, and all are compared alike.
        let mut found = None;
        for entrance in &*open {
            if same(entrance.capability.as_bytes(), capability.as_bytes()) {
                found = Some(entrance.clone());
            }
        }
        found
    }

    /// A name that nobody knows. Without randomness there is none, and no entrance.
    fn capability(&self) -> Result<String, SavedError> {
        random().map_err(|error| SavedError::new(&self.file, "given a name", error.to_string()))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entrance>)) -> Result<(), SavedError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = open.clone();
        change(&mut changed);
        crate::desk::write_file(&self.file, &changed)?;
        *open = changed;
        self.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// Compares in a time that depends on the lengths only.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn random() -> Result<String, rustix::io::Errno> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a path beneath `/p/` names: the capability, the upstream, and the path there.
pub(crate) fn parse(uri: &Uri) -> Option<(&str, &str, String)> {
    let rest = uri.path().strip_prefix("/p/")?;
    let (capability, rest) = rest.split_once('/')?;
    let (upstream, path) = match rest.split_once('/') {
        Some((upstream, _)) => (upstream, &rest[upstream.len()..]),
        None => (rest, ""),
    };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some((capability, upstream, format!("{path}{query}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn a_path_names_a_capability_an_upstream_and_a_path_there() {
        let uri = Uri::from_static("http://x/p/abc/anthropic/v1/messages?beta=true");
        assert_eq!(parse(&uri), Some(("abc", "anthropic", "/v1/messages?beta=true".to_owned())));
        assert_eq!(parse(&Uri::from_static("/p/abc/anthropic")), Some(("abc", "anthropic", String::new())));
        for other in ["/p/abc", "/p/", "/q/abc/anthropic/v1", "/"] {
            assert_eq!(parse(&other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn entrances_outlive_an_engine_and_end_with_their_run() {
        let folder = std::env::temp_dir().join(format!("sayso-entrances-{}", std::process::id()));
        let entrances = Entrances::load(&folder);
        let run = entrances.open(Some("claude".to_owned()), BTreeMap::new()).unwrap();
        let lasting = entrances.lasting(Some("claude".to_owned()), BTreeMap::new()).unwrap();
        assert_eq!(run.capability.len(), 32);
        let again = Entrances::load(&folder);
        assert_eq!(again.find(&run.capability), Some(run.clone()));
        assert_eq!(again.lasting(Some("claude".to_owned()), BTreeMap::new()).unwrap(), lasting);
        assert_eq!(again.close(&run.capability).unwrap(), Some(run.clone()));
        assert_eq!(again.find(&run.capability), None);
        assert_eq!(again.close(&lasting.capability).unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn there_is_one_lasting_entrance_for_each_place_that_requests_go_to() {
        let folder = std::env::temp_dir().join(format!("sayso-lasting-{}", std::process::id()));
        let entrances = Entrances::load(&folder);
        let lasting = |agent: &str, url: Option<&str>| {
            let upstreams = url.map(|url| ("anthropic".to_owned(), url.to_owned())).into_iter().collect();
            entrances.lasting(Some(agent.to_owned()), upstreams).unwrap()
        };
        let usual = lasting("claude", None);
        let gateway = lasting("claude", Some("https://gateway.example"));
        assert_ne!(gateway.capability, usual.capability);
        assert_eq!(gateway.upstreams["anthropic"], "https://gateway.example");
        assert_eq!(lasting("claude", Some("https://gateway.example")), gateway);
        // The settings are in force already.
        let here = format!("http://127.0.0.1:7777/p/{}/anthropic", gateway.capability);
        assert_eq!(lasting("claude", Some(&here)), gateway);
        assert_eq!(lasting("claude", None), usual);
        assert_ne!(lasting("codex", Some(&here)).capability, gateway.capability);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
