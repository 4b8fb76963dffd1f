//! Agent endpoints: `/p/<capability>/<upstream>/…`.
//!
//! A capability is a random name. It authenticates an agent's requests and names its run; it grants no other access. Open endpoints are
//! stored in a file beside the journal, so an agent continues when another engine takes over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::interceptor::{AgentRun, StateFileError};
use crate::lock;

/// Endpoints per workspace. The oldest endpoints of runs are evicted; persistent ones are not.
const MAX_ENDPOINTS: usize = 256;

/// A capability URL of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEndpoint {
    pub capability: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Base URLs by upstream name. They precede the user's configuration: the agent may be configured for another server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstreams: BTreeMap<String, String>,
    /// `true` for an agent that a person starts without `sayso run`.
    #[serde(default)]
    pub persistent: bool,
}

impl AgentEndpoint {
    /// Returns `true` for a URL of this endpoint.
    fn owns(&self, url: &str) -> bool {
        let path = url.split_once("/p/").map(|(_, path)| path);
        path.is_some_and(|path| path.split('/').next() == Some(&self.capability))
    }

    pub fn run(&self) -> AgentRun {
        AgentRun { name: self.capability.get(..8).unwrap_or(&self.capability).to_owned(), agent: self.agent.clone() }
    }
}

/// The open endpoints of a workspace.
#[derive(Debug)]
pub struct AgentEndpoints {
    file: PathBuf,
    open: Mutex<Vec<AgentEndpoint>>,
    /// Incremented by each change; cached routes compare it.
    version: AtomicU64,
}

impl AgentEndpoints {
    /// Loads the endpoints from the folder of the journal.
    pub fn load(journal: &Path) -> Self {
        let file = journal.join("endpoints.json");
        let open = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { file, open: Mutex::new(open), version: AtomicU64::new(0) }
    }

    /// Opens an endpoint for a run.
    pub fn open(
        &self,
        agent: Option<String>,
        upstreams: BTreeMap<String, String>,
    ) -> Result<AgentEndpoint, StateFileError> {
        let endpoint = AgentEndpoint { capability: self.capability()?, agent, upstreams, persistent: false };
        self.change(|open| {
            let surplus = (open.len() + 1).saturating_sub(MAX_ENDPOINTS);
            // Endpoints are ordered by age, and the oldest runs have ended.
            let mut dropped = 0;
            open.retain(|endpoint| {
                let is_evicted = !endpoint.persistent && dropped < surplus;
                dropped += usize::from(is_evicted);
                !is_evicted
            });
            open.push(endpoint.clone());
        })?;
        Ok(endpoint)
    }

    /// Returns the persistent endpoint of an agent with these upstreams, and opens it if needed. The same arguments give the same endpoint,
    /// so the agent's settings stay valid. If one of the upstreams is itself a persistent endpoint, that endpoint is returned.
    pub fn persistent(
        &self,
        agent: Option<String>,
        upstreams: BTreeMap<String, String>,
    ) -> Result<AgentEndpoint, StateFileError> {
        let known = lock(&self.open);
        let mut own = known.iter().filter(|endpoint| endpoint.persistent && endpoint.agent == agent);
        let configured = own.clone().find(|endpoint| upstreams.values().any(|url| endpoint.owns(url)));
        let found = configured.or_else(|| own.find(|endpoint| endpoint.upstreams == upstreams)).cloned();
        drop(known);
        if let Some(found) = found {
            return Ok(found);
        }
        let endpoint = AgentEndpoint { capability: self.capability()?, agent, upstreams, persistent: true };
        self.change(|open| open.push(endpoint.clone()))?;
        Ok(endpoint)
    }

    /// Closes the endpoint of an ended run. Persistent endpoints stay open.
    pub fn close(&self, capability: &str) -> Result<Option<AgentEndpoint>, StateFileError> {
        let mut closed = None;
        self.change(|open| {
            let position = open.iter().position(|endpoint| endpoint.capability == capability && !endpoint.persistent);
            closed = position.map(|position| open.remove(position));
        })?;
        Ok(closed)
    }

    /// Version of the endpoints. Equal versions mean equal endpoints.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Finds an endpoint by its capability.
    pub fn find(&self, capability: &str) -> Option<AgentEndpoint> {
        let open = lock(&self.open);
        // Every endpoint is compared in constant time, so the duration reveals no capability.
        let mut found = None;
        for endpoint in &*open {
            if equal_in_constant_time(endpoint.capability.as_bytes(), capability.as_bytes()) {
                found = Some(endpoint.clone());
            }
        }
        found
    }

    /// Generates a capability. Without a source of randomness, no endpoint is opened.
    fn capability(&self) -> Result<String, StateFileError> {
        random_hex().map_err(|error| StateFileError::new(&self.file, "generate a capability for", error.to_string()))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<AgentEndpoint>)) -> Result<(), StateFileError> {
        let mut open = lock(&self.open);
        let mut changed = open.clone();
        change(&mut changed);
        crate::interceptor::write_file(&self.file, &changed)?;
        *open = changed;
        self.version.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// Compares in a time that depends on the lengths only.
pub(crate) fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn random_hex() -> Result<String, rustix::io::Errno> {
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

/// Splits a request path into capability, upstream, and path with query.
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
    fn path_is_split_at_capability_and_upstream() {
        let uri = Uri::from_static("http://x/p/abc/anthropic/v1/messages?beta=true");
        assert_eq!(parse(&uri), Some(("abc", "anthropic", "/v1/messages?beta=true".to_owned())));
        assert_eq!(parse(&Uri::from_static("/p/abc/anthropic")), Some(("abc", "anthropic", String::new())));
        for other in ["/p/abc", "/p/", "/q/abc/anthropic/v1", "/"] {
            assert_eq!(parse(&other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn endpoints_survive_reload_until_closed() {
        let folder = std::env::temp_dir().join(format!("sayso-endpoints-{}", std::process::id()));
        let endpoints = AgentEndpoints::load(&folder);
        let run = endpoints.open(Some("claude".to_owned()), BTreeMap::new()).unwrap();
        let persistent = endpoints.persistent(Some("claude".to_owned()), BTreeMap::new()).unwrap();
        assert_eq!(run.capability.len(), 32);
        let again = AgentEndpoints::load(&folder);
        assert_eq!(again.find(&run.capability), Some(run.clone()));
        assert_eq!(again.persistent(Some("claude".to_owned()), BTreeMap::new()).unwrap(), persistent);
        assert_eq!(again.close(&run.capability).unwrap(), Some(run.clone()));
        assert_eq!(again.find(&run.capability), None);
        assert_eq!(again.close(&persistent.capability).unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn persistent_endpoint_is_unique_per_upstreams() {
        let folder = std::env::temp_dir().join(format!("sayso-persistent-{}", std::process::id()));
        let endpoints = AgentEndpoints::load(&folder);
        let persistent = |agent: &str, url: Option<&str>| {
            let upstreams = url.map(|url| ("anthropic".to_owned(), url.to_owned())).into_iter().collect();
            endpoints.persistent(Some(agent.to_owned()), upstreams).unwrap()
        };
        let usual = persistent("claude", None);
        let gateway = persistent("claude", Some("https://gateway.example"));
        assert_ne!(gateway.capability, usual.capability);
        assert_eq!(gateway.upstreams["anthropic"], "https://gateway.example");
        assert_eq!(persistent("claude", Some("https://gateway.example")), gateway);
        // The agent's settings point at this endpoint already.
        let here = format!("http://127.0.0.1:7777/p/{}/anthropic", gateway.capability);
        assert_eq!(persistent("claude", Some(&here)), gateway);
        assert_eq!(persistent("claude", None), usual);
        assert_ne!(persistent("codex", Some(&here)).capability, gateway.capability);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
