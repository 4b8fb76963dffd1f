//! Processes that speak for an agent: what `sayso exec` runs, and everything beneath. None of them decides.

use sayso_server::agents::Notes;
pub(crate) use sayso_server::agents::{MARK, Registered};

use crate::failure::Failure;
use crate::output::say;
use crate::state::State;

fn notes(state: &State) -> Notes {
    Notes::new(&state.home)
}

/// Notes that everything beneath this process speaks for an agent, on behalf of a change. Should this process be killed, the change
/// does not wait for ever.
pub(crate) fn register(state: &State, change: u64) -> Result<Registered, Failure> {
    notes(state).register(Some(change), &state.folder).map_err(|error| {
        Failure::bad_input("what runs under the gate cannot be noted").why(&error).hint("look at the disk's free space")
    })
}

/// Fails if this process was started by an agent: it cannot decide about what it does.
pub(crate) fn refuse(state: &State) -> Result<(), Failure> {
    Ok(notes(state).refuse(std::process::id())?)
}

/// Whether this process was started by an agent.
pub(crate) fn speaks_for_one(state: &State) -> bool {
    refuse(state).is_err()
}

/// Says which commands go on although whoever started them was killed.
pub(crate) fn tell_what_still_runs(state: &State) {
    for abandoned in notes(state).abandoned(&state.folder) {
        if let (Some(change), true) = (abandoned.change, abandoned.still_runs) {
            say(&format!(
                "note: change {change} still runs, though its `sayso exec` is gone; it is settled when it is over"
            ));
        }
    }
}
