//! Snapshots as the journal tells of them: by path, by call, and put back.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{
    Cause, Event, EventBody, FileState, Freed, IfChanged, Snapshot, SnapshotId, SnapshotRecord, Transition, WsPath,
    reverse,
};

use crate::FILE_LIMIT;
use crate::capture::{SNAPSHOTS, path_key, session_call_key, snapshot_key};
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, recorded};
use crate::record::{Entry, call_key};
use crate::undo::UndoPlan;

/// Events that are looked at in one go.
const SOME: usize = 1_000;

impl History<'_> {
    /// The snapshots, newest first.
    pub fn snapshots(&self) -> Result<Vec<SnapshotRecord>, GateError> {
        let mut records: BTreeMap<SnapshotId, SnapshotRecord> = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = self.reader().events_with(SNAPSHOTS, after, SOME)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in &page {
                let event = recorded(event);
                if let EventBody::Known(body) = event.body {
                    play(&mut records, (event.number, event.time), body);
                }
            }
        }
        Ok(records.into_values().rev().collect())
    }

    /// One snapshot.
    pub fn snapshot(&self, snapshot: SnapshotId) -> Result<SnapshotRecord, GateError> {
        let mut records = BTreeMap::new();
        for event in self.reader().events_with(&snapshot_key(snapshot), 0, SOME)? {
            let event = recorded(&event);
            if let EventBody::Known(body) = event.body {
                play(&mut records, (event.number, event.time), body);
            }
        }
        records.remove(&snapshot).ok_or_else(|| GateError::NoSuchSnapshot(snapshot.to_string()))
    }

    /// What was kept for a call, file by file, whatever session it is of.
    pub fn snapshots_of(&self, call: &str) -> Result<Vec<SnapshotRecord>, GateError> {
        self.correlated(&call_key(call))
    }

    fn correlated(self, key: &str) -> Result<Vec<SnapshotRecord>, GateError> {
        let mut records = Vec::new();
        for event in self.reader().events_with(key, 0, SOME)? {
            if let EventBody::Known(Event::Correlated { snapshot, .. }) = recorded(&event).body {
                records.push(self.snapshot(snapshot)?);
            }
        }
        Ok(records)
    }

    /// What a file was when a snapshot of it was taken; `None` if that is no longer kept.
    pub fn snapshot_state(&self, record: &SnapshotRecord) -> Result<Option<FileState>, GateError> {
        self.state(&record.snapshot.state)
    }
}

fn play(records: &mut BTreeMap<SnapshotId, SnapshotRecord>, (number, time): (u64, i64), event: Event) {
    match event {
        Event::Captured(snapshot) => {
            let id = snapshot.snapshot;
            records.insert(id, SnapshotRecord { snapshot, time, of_call: None, freed: None, number });
        }
        Event::Correlated { snapshot, call, .. } => {
            if let Some(record) = records.get_mut(&snapshot) {
                record.of_call = Some(call);
            }
        }
        Event::Freed { snapshots, because } => {
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
    /// The snapshot of a path for which no tool has started.
    pub fn pending_snapshot(&self, session: Option<&str>, path: &WsPath) -> Result<Option<Snapshot>, GateError> {
        let last = self.journal.reader().latest_with(&path_key(session, path), None, 1)?.pop();
        let Some(EventBody::Known(Event::Captured(snapshot))) = last.map(|event| recorded(&event).body) else {
            return Ok(None);
        };
        let record = self.history().snapshot(snapshot.snapshot)?;
        Ok(record.is_pending().then_some(record.snapshot))
    }

    /// What was kept of a file for a call.
    pub(crate) fn snapshot_of(
        &self,
        session: Option<&str>,
        call: &str,
        path: &WsPath,
    ) -> Result<Option<Snapshot>, GateError> {
        let records = self.history().correlated(&session_call_key(session, call))?;
        Ok(records.into_iter().map(|record| record.snapshot).find(|snapshot| snapshot.path == *path))
    }

    /// Frees the snapshots of a session that no tool started for.
    pub(crate) fn free_orphans(&mut self, session: &str, now: i64) -> Result<(), GateError> {
        self.free(now, Freed::SessionEnded, |snapshot| snapshot.session.as_deref() == Some(session))
    }

    /// Frees the snapshots that no tool started for, after whoever took them is gone.
    pub fn free_all_orphans(&mut self, now: i64) -> Result<(), GateError> {
        self.free(now, Freed::Restarted, |_| true)
    }

    fn free(&mut self, now: i64, because: Freed, which: impl Fn(&Snapshot) -> bool) -> Result<(), GateError> {
        let records = self.history().snapshots()?;
        let orphans = records.iter().filter(|record| record.is_pending() && which(&record.snapshot));
        let snapshots: Vec<SnapshotId> = orphans.map(|record| record.snapshot.snapshot).collect();
        if !snapshots.is_empty() {
            self.write(Entry::of([Event::Freed { snapshots, because }]), now)?;
        }
        Ok(())
    }

    /// The events that keep what snapshots which were freed are about, and those of snapshots that a tool may still ask for.
    pub(crate) fn freed_and_pending(&self) -> Result<(BTreeSet<u64>, BTreeSet<u64>), GateError> {
        let records = self.history().snapshots()?;
        let freed = records.iter().filter(|record| record.freed.is_some()).map(|record| record.number).collect();
        let pending = records.iter().filter(|record| record.is_pending()).map(|record| record.number).collect();
        Ok((freed, pending))
    }

    /// What putting a file back would do to what a snapshot kept of it.
    pub fn plan_restore(&self, snapshot: SnapshotId) -> Result<UndoPlan, GateError> {
        let record = self.history().snapshot(snapshot)?;
        let location = record.snapshot.location.clone();
        let sight = self.workspace().look([location.clone()], FILE_LIMIT);
        let now = sight.files.get(&location).and_then(|seen| seen.state().ok());
        let kept = if record.freed.is_some() { None } else { self.history().snapshot_state(&record)? };
        let step = Transition { change: 0, path: location, from: now, to: kept };
        let preview = reverse(&[step], &sight.files, IfChanged::Refuse);
        Ok(UndoPlan::new(Cause::Restore { snapshot }, preview))
    }
}
