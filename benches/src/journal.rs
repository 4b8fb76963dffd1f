//! Time to append events, and cost of opening a long journal beyond opening a short one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sayso_journal::{Batch, Journal, NewEvent, Options};

use crate::changes::{file_system, work_directory};
use crate::clock::{self, median, microseconds, milliseconds, ratio};
use crate::corpus::Extent;
use crate::table::{Check, Section, Target, thousands};

const BATCH: u64 = 1_000;
const BODY_BYTES: usize = 200;
const APPENDED: u64 = 100_000;
const SHORT: u64 = 1_000;

fn open(folder: &Path) -> Result<Journal> {
    Ok(Journal::open(folder, Options { wait: Duration::ZERO })?)
}

fn event(number: u64) -> NewEvent {
    let mut body = format!(r#"{{"event":"ended","change":{number},"outcome":"applied","agent_message":""#).into_bytes();
    body.resize_with(BODY_BYTES - 2, || b'.');
    body.extend_from_slice(b"\"}");
    NewEvent {
        version: 1,
        time: number.cast_signed(),
        // As in use: some events of each change, many of each session.
        keys: vec![format!("change:{}", number / 4), format!("session:{}", number / 500)],
        blobs: Vec::new(),
        body,
    }
}

fn append(journal: &mut Journal, numbers: std::ops::Range<u64>) -> Result<()> {
    let mut from = numbers.start;
    while from < numbers.end {
        let to = numbers.end.min(from + BATCH);
        journal.append(&Batch { events: (from..to).map(event).collect(), ..Batch::default() })?;
        from = to;
    }
    Ok(())
}

fn fresh(name: &str) -> Result<PathBuf> {
    let folder = work_directory().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(work_directory())?;
    Ok(folder)
}

/// A journal of so many events, kept from one run to the next.
fn of_length(events: u64) -> Result<PathBuf> {
    let folder = work_directory().join(format!("journal-of-{events}"));
    // Opening migrates a journal of an earlier version.
    if folder.exists() && open(&folder).is_ok_and(|journal| journal.reader().last_number().is_ok_and(|n| n == events)) {
        return Ok(folder);
    }
    let unfinished = fresh("journal-unfinished")?;
    append(&mut open(&unfinished)?, 0..events)?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::rename(&unfinished, &folder)?;
    Ok(folder)
}

/// Appending, and opening.
pub fn sections(extent: Extent, rounds: usize) -> Result<Vec<Section>> {
    Ok(vec![appending(rounds)?, opening(extent, rounds)?])
}

fn appending(rounds: usize) -> Result<Section> {
    let (mut walls, mut times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let folder = fresh("journal-appended")?;
        let mut journal = open(&folder)?;
        let start = Instant::now();
        let (result, time) = clock::time(|| append(&mut journal, 0..APPENDED));
        result?;
        walls.push(start.elapsed());
        times.push(time);
        ensure!(journal.reader().last_number()? == APPENDED, "events are missing from the journal");
    }
    let (wall, time) = (median(&mut walls), median(&mut times));
    let columns = ["events", "wall ms", "CPU ms", "CPU µs an event"];
    let mut section = Section::new("Journal: appending", &columns, "events a second").note(format!(
        "batches of {BATCH}, each on disk before the next; {BODY_BYTES} bytes and two keys an event. Wall time, since the disk \
         is part of it. On {}, median of {rounds}",
        file_system(&work_directory())
    ));
    let each = microseconds(time / APPENDED as u32);
    let cells = vec![thousands(APPENDED as usize), milliseconds(wall), milliseconds(time), each];
    let rate = (APPENDED as f64 / wall.as_secs_f64()).round();
    section.row("appended", cells, Some(Check::new(rate, Target::AtLeast(20_000.0))));
    Ok(section)
}

fn opening(extent: Extent, rounds: usize) -> Result<Section> {
    let long = if extent == Extent::Quick { 100_000 } else { 1_000_000 };
    let folders = [of_length(long)?, of_length(SHORT)?];
    let mut times = [Vec::new(), Vec::new()];
    // The first rounds bring both into memory.
    for round in 0..rounds * 20 + 2 {
        for (folder, times) in folders.iter().zip(&mut times) {
            let (number, time) = clock::time(|| -> Result<u64> { Ok(open(folder)?.reader().last_number()?) });
            ensure!(number? > 0, "the journal is empty");
            if round >= 2 {
                times.push(time);
            }
        }
    }
    let [long_time, short_time] = times.each_mut().map(|times| median(times));
    let columns = ["long, CPU µs", "short, CPU µs"];
    let mut section = Section::new("Journal: opening, asking for the last number, closing", &columns, "long/short");
    let name = format!("{} events beside {}", thousands(long as usize), thousands(SHORT as usize));
    let cells = vec![microseconds(long_time), microseconds(short_time)];
    section.row(name, cells, Some(Check::new(ratio(long_time, short_time), Target::AtMost(5.0))));
    Ok(section)
}
