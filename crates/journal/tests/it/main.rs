//! Tests of the journal with real folders, processes and kills.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests panic to fail, make files and processes, and talk to their parents"
)]

mod blobs;
mod collecting;
mod damage;
mod events;
mod format;
mod model;
mod permissions;
mod writers;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use sayso_journal::{Batch, Journal, NewEvent, Options, Reader};
use sayso_review::ContentHash;

static NO_BLOBS: BTreeSet<ContentHash> = BTreeSet::new();

static NO_EVENTS: BTreeSet<u64> = BTreeSet::new();

const AT_ONCE: Options = Options { wait: Duration::ZERO };

fn open(folder: &Path) -> Journal {
    Journal::open(folder, AT_ONCE).unwrap()
}

/// Creates an event with this body.
fn event(body: &str, keys: &[&str]) -> NewEvent {
    NewEvent {
        version: 1,
        time: 0,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        blobs: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

/// Appends one event that refers to these contents.
fn append_contents(journal: &mut Journal, time: i64, contents: &[&[u8]]) -> u64 {
    let blobs: Vec<_> = contents.iter().map(|bytes| (ContentHash::of(bytes), *bytes)).collect();
    let event = NewEvent { time, blobs: blobs.iter().map(|(hash, _)| *hash).collect(), ..event("with contents", &[]) };
    journal.append(&Batch { blobs, events: vec![event], counters: Vec::new() }).unwrap().start
}

/// Returns the numbers and bodies of all events.
fn all(reader: &Reader) -> Vec<(u64, String)> {
    let events = reader.events(0, usize::MAX).unwrap();
    events.into_iter().map(|event| (event.number, String::from_utf8(event.body).unwrap())).collect()
}

/// Returns incompressible bytes for a seed.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
