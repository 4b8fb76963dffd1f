//! Snapshots in the journal: lookup by path and by call, release, and restoration.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{
    Cause, Event, EventBody, FileState, FreeReason, IfChanged, Snapshot, SnapshotId, SnapshotRecord, Tier, Transition,
    WsPath, reverse,
};

use crate::FILE_LIMIT;
use crate::capture::{ANSWER_SNAPSHOTS, SNAPSHOTS, path_key, session_call_key, snapshot_key};
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, decode_event};
use crate::record::{JournalBatch, call_key};
use crate::undo::UndoPlan;

const PAGE_SIZE: usize = 1_000;

/// The counter with the value of [`ANSWER_SNAPSHOTS`] when an engine last freed them at its start.
const ANSWER_SNAPSHOTS_FREED: &str = "answer snapshots freed";

impl History<'_> {
    /// Returns all snapshots, newest first.
    pub fn snapshots(&self) -> Result<Vec<SnapshotRecord>, GateError> {
        let mut records: BTreeMap<SnapshotId, SnapshotRecord> = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = self.reader().events_with(SNAPSHOTS, after, PAGE_SIZE)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in &page {
                let event = decode_event(event);
                if let EventBody::Known(body) = event.body {
                    apply_snapshot_event(&mut records, (event.number, event.time), body);
                }
            }
        }
        Ok(records.into_values().rev().collect())
    }

    /// Returns a snapshot.
    pub fn snapshot(&self, snapshot: SnapshotId) -> Result<SnapshotRecord, GateError> {
        let mut records = BTreeMap::new();
        for event in self.reader().events_with(&snapshot_key(snapshot), 0, PAGE_SIZE)? {
            let event = decode_event(&event);
            if let EventBody::Known(body) = event.body {
                apply_snapshot_event(&mut records, (event.number, event.time), body);
            }
        }
        records.remove(&snapshot).ok_or_else(|| GateError::NoSuchSnapshot(snapshot.to_string()))
    }

    /// Returns the snapshots of a call in any session.
    pub fn snapshots_of_call(&self, call: &str) -> Result<Vec<SnapshotRecord>, GateError> {
        self.snapshots_with_key(&call_key(call))
    }

    fn snapshots_with_key(self, key: &str) -> Result<Vec<SnapshotRecord>, GateError> {
        let mut records = Vec::new();
        for event in self.reader().events_with(key, 0, PAGE_SIZE)? {
            if let EventBody::Known(Event::SnapshotCorrelated { snapshot, .. }) = decode_event(&event).body {
                records.push(self.snapshot(snapshot)?);
            }
        }
        Ok(records)
    }

    /// Returns the file state of a snapshot; `None` if its content was deleted.
    pub fn snapshot_state(&self, record: &SnapshotRecord) -> Result<Option<FileState>, GateError> {
        self.state(&record.snapshot.state)
    }
}

fn apply_snapshot_event(records: &mut BTreeMap<SnapshotId, SnapshotRecord>, (number, time): (u64, i64), event: Event) {
    match event {
        Event::SnapshotCaptured(snapshot) => {
            let id = snapshot.snapshot;
            records.insert(id, SnapshotRecord { snapshot, time, correlated_call: None, freed: None, number });
        }
        Event::SnapshotCorrelated { snapshot, call, .. } => {
            if let Some(record) = records.get_mut(&snapshot) {
                record.correlated_call = Some(call);
            }
        }
        Event::SnapshotsFreed { snapshots, reason: because } => {
            for snapshot in snapshots {
                if let Some(record) = records.get_mut(&snapshot) {
                    record.freed = Some(because);
                }
            }
        }
        _ => {}
    }
}

impl Engine {
    /// Returns the snapshot of a path that no tool call has used yet.
    pub fn pending_snapshot(&self, session: Option<&str>, path: &WsPath) -> Result<Option<Snapshot>, GateError> {
        let last = self.journal.reader().latest_with(&path_key(session, path), None, 1)?.pop();
        let Some(EventBody::Known(Event::SnapshotCaptured(snapshot))) = last.map(|event| decode_event(&event).body)
        else {
            return Ok(None);
        };
        let record = self.history().snapshot(snapshot.snapshot)?;
        Ok(record.is_pending().then_some(record.snapshot))
    }

    /// Returns the snapshot of a file for a call.
    pub(crate) fn snapshot_for_call(
        &self,
        session: Option<&str>,
        call: &str,
        path: &WsPath,
    ) -> Result<Option<Snapshot>, GateError> {
        let records = self.history().snapshots_with_key(&session_call_key(session, call))?;
        Ok(records.into_iter().map(|record| record.snapshot).find(|snapshot| snapshot.path == *path))
    }

    /// Frees the pending snapshots of a session.
    pub(crate) fn free_session_orphans(&mut self, session: &str, now: i64) -> Result<(), GateError> {
        self.free(JournalBatch::default(), FreeReason::SessionEnded, now, |snapshot| {
            snapshot.session.as_deref() == Some(session)
        })
    }

    /// Frees the pending snapshots of all sessions.
    pub(crate) fn free_all_orphans(&mut self, now: i64) -> Result<(), GateError> {
        self.free(JournalBatch::default(), FreeReason::Restarted, now, |_| true)
    }

    /// Frees the pending snapshots that an earlier engine took from model answers: their streams ended with that engine.
    ///
    /// Snapshots of hooks stay. Engines in short commands follow one another within one tool call, so its later hooks still
    /// need them.
    pub(crate) fn free_answer_orphans(&mut self, now: i64) -> Result<(), GateError> {
        let reader = self.journal.reader();
        let taken = reader.counter(ANSWER_SNAPSHOTS)?;
        // Compares two counters instead of reading all snapshots: most engines run for one short command, and find no
        // orphan.
        if reader.counter(ANSWER_SNAPSHOTS_FREED)? >= taken {
            return Ok(());
        }
        let mut entry = JournalBatch::default();
        entry.set_counter(ANSWER_SNAPSHOTS_FREED, taken);
        self.free(entry, FreeReason::Restarted, now, |snapshot| snapshot.tier == Tier::Answer)
    }

    /// Frees the pending snapshots that `is_orphan` selects, and writes `entry` with them.
    fn free(
        &mut self,
        mut entry: JournalBatch<'_>,
        reason: FreeReason,
        now: i64,
        is_orphan: impl Fn(&Snapshot) -> bool,
    ) -> Result<(), GateError> {
        let records = self.history().snapshots()?;
        let orphans = records.iter().filter(|record| record.is_pending() && is_orphan(&record.snapshot));
        let snapshots: Vec<SnapshotId> = orphans.map(|record| record.snapshot.snapshot).collect();
        if !snapshots.is_empty() {
            entry.push_event(Event::SnapshotsFreed { snapshots, reason }, &[]);
        }
        if !entry.is_empty() {
            self.write(entry, now)?;
        }
        Ok(())
    }

    /// Returns the events of freed snapshots, which release their blobs, and the events of pending snapshots, which
    /// keep them.
    pub(crate) fn freed_and_pending(&self) -> Result<(BTreeSet<u64>, BTreeSet<u64>), GateError> {
        let records = self.history().snapshots()?;
        let freed = records.iter().filter(|record| record.freed.is_some()).map(|record| record.number).collect();
        let pending = records.iter().filter(|record| record.is_pending()).map(|record| record.number).collect();
        Ok((freed, pending))
    }

    /// Returns the plan to restore a file to a snapshot.
    pub fn plan_restore(&self, snapshot: SnapshotId) -> Result<UndoPlan, GateError> {
        let record = self.history().snapshot(snapshot)?;
        let location = record.snapshot.location.clone();
        let sight = self.workspace().observe([location.clone()], FILE_LIMIT);
        let now = sight.files.get(&location).and_then(|seen| seen.state().ok());
        let kept = if record.freed.is_some() { None } else { self.history().snapshot_state(&record)? };
        let step = Transition { change: 0, path: location, from: now, to: kept };
        let preview = reverse(&[step], &sight.files, IfChanged::Refuse);
        Ok(UndoPlan::new(Cause::Restore { snapshot }, preview))
    }
}
