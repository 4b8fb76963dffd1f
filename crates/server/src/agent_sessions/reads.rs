//! File contents that the model saw, kept in the journal: after a restart the agent may edit what it has read, and a file that changed
//! since is still detected.

use std::collections::BTreeMap;

use sayso_review::{AgentEntryKind, ContentHash, WsPath};
use sayso_tools::ReadLogEntries;

use super::PAGE_SIZE;
use crate::failure::Failure;
use crate::host::Host;

/// Version of the content of an entry.
pub(crate) const READS_VERSION: u32 = 1;

/// Hashes by path. `None` for a file that is no longer known.
type AddedReads = BTreeMap<WsPath, Option<ContentHash>>;

/// Reads that are not in the journal.
#[derive(Debug)]
pub(crate) struct NewReads {
    pub(super) reads: ReadLogEntries,
    pub(super) added: AddedReads,
}

impl NewReads {
    /// Returns the content of an entry; `None` if there is nothing to record.
    pub(crate) fn content(&self) -> Option<serde_json::Value> {
        // Cannot fail: the keys are text.
        if self.added.is_empty() { None } else { serde_json::to_value(&self.added).ok() }
    }
}

/// Returns the difference between two states.
pub(super) fn added_reads(recorded: &ReadLogEntries, reads: &ReadLogEntries) -> AddedReads {
    let changed = reads.0.iter().filter(|(path, hash)| recorded.0.get(*path) != Some(*hash));
    let removed = recorded.0.keys().filter(|path| !reads.0.contains_key(*path));
    let changed = changed.map(|(path, hash)| (path.clone(), Some(*hash)));
    changed.chain(removed.map(|path| (path.clone(), None))).collect()
}

/// Reads the entries of a session.
pub(super) fn recorded(host: &Host, session: &str) -> Result<ReadLogEntries, Failure> {
    let (mut reads, mut after) = (BTreeMap::new(), 0);
    loop {
        let page = host.gate.read(|history| history.agent_entries(session, AgentEntryKind::Reads, after, PAGE_SIZE))?;
        let Some(last) = page.last() else { return Ok(ReadLogEntries(reads)) };
        after = last.number;
        for entry in page {
            // Without an entry the agent is asked to read the files again.
            let added = entry.content.and_then(|content| serde_json::from_value::<AddedReads>(content).ok());
            for (path, hash) in added.unwrap_or_default() {
                match hash {
                    Some(hash) => reads.insert(path, hash),
                    None => reads.remove(&path),
                };
            }
        }
    }
}
