//! Recounts counters that a repair of the journal could not save.

use std::collections::BTreeSet;

use sayso_journal::{Batch, Journal, StoredEvent};
use sayso_review::{Event, EventBody};

use crate::capture::SNAPSHOTS;
use crate::error::GateError;
use crate::record::{CHANGES, ENDED, PLANS, PLANS_ENDED};

const PAGE_SIZE: usize = 1_000;
/// Number of last events that show whether the counters are behind.
const CHECKED_EVENTS: usize = 64;

/// Raises counters that are behind the events, so that no number is used twice.
pub(crate) fn repair_counters(journal: &mut Journal) -> Result<(), GateError> {
    let reader = journal.reader();
    let known = |event: &StoredEvent| match EventBody::decode(&event.body) {
        EventBody::Known(event) => Some(event),
        EventBody::Unknown(_) => None,
    };
    // Each event was counted in its own batch, so the last few events suffice.
    let last: Vec<Event> = reader.latest(None, CHECKED_EVENTS)?.iter().filter_map(known).collect();
    if last.iter().filter_map(Event::change).max() <= Some(reader.counter(CHANGES)?)
        && last.iter().filter_map(Event::snapshot).max() <= Some(reader.counter(SNAPSHOTS)?)
    {
        return Ok(());
    }
    let (mut changes, mut ended, mut plans, mut open, mut snapshots) = (0, BTreeSet::new(), 0, None, 0);
    let mut after = 0;
    loop {
        let events = reader.events(after, PAGE_SIZE)?;
        let Some(last) = events.last() else { break };
        after = last.number;
        for event in &events {
            let Some(event) = known(event) else { continue };
            snapshots = snapshots.max(event.snapshot().unwrap_or(0));
            changes = changes.max(event.change().unwrap_or(0));
            match &event {
                Event::Applying { change, .. } => {
                    plans += 1;
                    open = Some(*change);
                }
                Event::Ended { change, .. } | Event::Recovered { change, .. } | Event::Permitted { change, .. } => {
                    ended.insert(*change);
                    open = open.filter(|open| open != change);
                }
                _ => {}
            }
        }
    }
    // A counter never decreases, even if the events that it counted are lost.
    let up = |name, value: u64| -> Result<(&str, u64), GateError> { Ok((name, value.max(reader.counter(name)?))) };
    let plans = up(PLANS, plans)?;
    let arrived = plans.1 - u64::from(open.is_some());
    let (ended, arrived) = (up(ENDED, ended.len() as u64)?, up(PLANS_ENDED, arrived)?);
    let counters = vec![up(CHANGES, changes)?, ended, plans, arrived, up(SNAPSHOTS, snapshots)?];
    journal.append(&Batch { blobs: Vec::new(), events: Vec::new(), counters })?;
    Ok(())
}
