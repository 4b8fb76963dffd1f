//! Counters that a repair of the journal could not save, counted anew from the events that it could.

use std::collections::BTreeSet;

use sayso_journal::{Batch, Journal, StoredEvent};
use sayso_review::{Event, EventBody};

use crate::capture::SNAPSHOTS;
use crate::error::GateError;
use crate::record::{CHANGES, ENDED, PLANS, PLANS_ENDED};

/// How many events are looked at in one go.
const SOME: usize = 1_000;
/// How many events are looked at to see whether that is needed.
const LAST: usize = 64;

/// Brings the counters up to the events, if they have fallen behind: a number must never be given twice.
pub(crate) fn mend(journal: &mut Journal) -> Result<(), GateError> {
    let reader = journal.reader();
    let known = |event: &StoredEvent| match EventBody::decode(&event.body) {
        EventBody::Known(event) => Some(event),
        EventBody::Unknown(_) => None,
    };
    // Whatever was recorded last was counted in the same batch, so that a few events tell.
    let last: Vec<Event> = reader.latest(None, LAST)?.iter().filter_map(known).collect();
    if last.iter().filter_map(Event::change).max() <= Some(reader.counter(CHANGES)?)
        && last.iter().filter_map(Event::snapshot).max() <= Some(reader.counter(SNAPSHOTS)?)
    {
        return Ok(());
    }
    let (mut changes, mut ended, mut plans, mut open, mut snapshots) = (0, BTreeSet::new(), 0, None, 0);
    let mut after = 0;
    loop {
        let events = reader.events(after, SOME)?;
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
    // What is behind what was counted already stays: a counter never goes back.
    let up = |name, value: u64| -> Result<(&str, u64), GateError> { Ok((name, value.max(reader.counter(name)?))) };
    let plans = up(PLANS, plans)?;
    let arrived = plans.1 - u64::from(open.is_some());
    let (ended, arrived) = (up(ENDED, ended.len() as u64)?, up(PLANS_ENDED, arrived)?);
    let counters = vec![up(CHANGES, changes)?, ended, plans, arrived, up(SNAPSHOTS, snapshots)?];
    journal.append(&Batch { blobs: Vec::new(), events: Vec::new(), counters })?;
    Ok(())
}
