//! Arguments of `sayso watch`.

use clap::Args;

use super::{CommonOptions, number};

/// Print each event of the workspace when it is recorded
///
/// Continues across restarts of the engine without missing an event. With --json each line is an event of the protocol. Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct WatchArguments {
    /// Start after the event with this number, 0 for all [default: new events only]
    #[arg(long, value_name = "N", value_parser = number::event)]
    pub(crate) after: Option<u64>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}
