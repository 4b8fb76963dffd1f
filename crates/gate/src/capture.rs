//! Snapshots by path and by call.

use sayso_review::Event;

/// The counter of snapshots, and the key of events about them.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// What an event about a snapshot can be found by.
pub(crate) fn keys(event: &Event) -> Vec<String> {
    match event {
        Event::Correlated { call, .. } => vec![crate::record::call_key(call)],
        _ => Vec::new(),
    }
}

impl crate::engine::Engine {
    pub(crate) fn free_orphans(&mut self, _session: &str, _now: i64) -> Result<(), crate::error::GateError> {
        Ok(())
    }

    pub(crate) fn captured(&self) -> Result<Vec<sayso_review::ContentHash>, crate::error::GateError> {
        Ok(Vec::new())
    }
}
