//! The command line of `sayso watch`.

use clap::Args;

use super::{Place, number};

/// Follows what happens in the workspace, one line for each event.
///
/// Goes on when the engine is replaced, and misses nothing. With --json each line is an event of the protocol as JSON. Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct WatchArguments {
    /// Begin after the event with this number, 0 for all; with what comes from now on, if not given.
    #[arg(long, value_name = "N", value_parser = number::event)]
    pub(crate) after: Option<u64>,
    #[command(flatten)]
    pub(crate) place: Place,
}
