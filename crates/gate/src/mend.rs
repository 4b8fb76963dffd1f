//! Counters that a repair of the journal could not save, counted anew from the events that it could.

use std::collections::BTreeSet;

use sayso_journal::{Batch, Journal};
use sayso_review::{Event, EventBody};

use crate::error::GateError;
use crate::history::{CHANGES, ENDED, PLANS, PLANS_ENDED};

/// How many events are looked at in one go.
const SOME: usize = 1_000;

/// Brings the counters up to the events, if they have fallen behind: a number must never be given twice.
pub(crate) fn mend(journal: &mut Journal) -> Result<(), GateError> {
    let reader = journal.reader();
    let last = reader.latest(None, 1)?.pop();
    let Some(EventBody::Known(last)) = last.map(|event| EventBody::decode(&event.body)) else { return Ok(()) };
    if last.change() <= reader.counter(CHANGES)? {
        return Ok(());
    }
    let (mut changes, mut ended, mut plans, mut open) = (0, BTreeSet::new(), 0, None);
    let mut after = 0;
    loop {
        let events = reader.events(after, SOME)?;
        let Some(last) = events.last() else { break };
        after = last.number;
        for event in &events {
            let EventBody::Known(event) = EventBody::decode(&event.body) else { continue };
            changes = changes.max(event.change());
            match &event {
                Event::Applying { change, .. } => {
                    plans += 1;
                    open = Some(*change);
                }
                Event::Ended { change, .. } | Event::Recovered { change, .. } => {
                    ended.insert(*change);
                    open = open.filter(|open| open != change);
                }
                Event::Proposed { .. } | Event::Decided { .. } | Event::Undone { .. } | Event::Redone { .. } => {}
            }
        }
    }
    // What is behind what was counted already stays: a counter never goes back.
    let up = |name, value: u64| -> Result<(&str, u64), GateError> { Ok((name, value.max(reader.counter(name)?))) };
    let plans = up(PLANS, plans)?;
    let arrived = plans.1 - u64::from(open.is_some());
    let counters = vec![up(CHANGES, changes)?, up(ENDED, ended.len() as u64)?, plans, up(PLANS_ENDED, arrived)?];
    journal.append(&Batch { blobs: Vec::new(), events: Vec::new(), counters })?;
    Ok(())
}
