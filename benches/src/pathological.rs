//! The pathological cases. Each engine runs in a separate process, so that a hanging engine can be killed.

use std::hint::black_box;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::clock::{self, Limit, TIME_LIMIT, median, milliseconds};
use crate::corpus::Trees;
use crate::engines::Engine;
use crate::programs::Program;
use crate::table::{Check, Section, Target};
use crate::{allocator, verify};

/// Outputs longer than this many times the shortest are not counted as solutions.
const LENGTH_LIMIT: f64 = 1.05;
/// Nets of programs below this are lost in the noise of their start.
const MEASURABLE: Duration = Duration::from_micros(500);
/// Time for which a child repeats a fast engine.
const REPEAT_FOR: Duration = Duration::from_millis(250);

/// Report of a child about one engine and one case.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// CPU time; `None` if the time limit came first.
    time: Option<Duration>,
    changed_lines: usize,
    peak: usize,
}

/// Result of one engine or program in one case.
pub struct Attempt {
    name: &'static str,
    /// Median CPU time; `None` where it hangs.
    time: Option<Duration>,
    changed_lines: usize,
}

/// One case: every attempt at it, ours first, and peak memory.
pub struct CaseResult {
    /// The case's name.
    pub name: &'static str,
    attempts: Vec<Attempt>,
    /// Peak bytes of ours and of the bare engine.
    pub peaks: (usize, usize),
    /// `true` if the bare engine hangs; its peak is then that of the first ten seconds.
    pub bare_hangs: bool,
}

/// Checks our diff of every case.
pub fn verify() -> Result<()> {
    for case in Case::ALL {
        let (old, new) = case.contents();
        let text = Engine::Ours.unified(&old, &new)?;
        verify::check(&text, &old, &new).with_context(|| format!("our diff of \"{}\" is wrong", case.name))?;
    }
    Ok(())
}

/// The hidden subcommand: measures one engine on one case and prints the answer.
pub fn answer(engine: Engine, case: &Case) -> Result<()> {
    let (old, new) = case.contents();
    let (finished, watched) = mpsc::channel::<()>();
    thread::spawn(move || {
        if watched.recv_timeout(TIME_LIMIT) == Err(RecvTimeoutError::Timeout) {
            let peak = allocator::so_far().peak;
            let answer = Answer { time: None, changed_lines: 0, peak };
            println!("{}", serde_json::to_string(&answer).unwrap_or_default());
            std::process::exit(0);
        }
    });
    let (text, usage) = allocator::count(|| engine.unified(&old, &new));
    drop(finished);
    let changed_lines = verify::changed_lines(&text?);
    let mut times = Vec::new();
    let start = Instant::now();
    while times.is_empty() || (start.elapsed() < REPEAT_FOR && times.len() < 25) {
        let (text, time) = clock::time(|| engine.unified(&old, &new).map(black_box).is_ok());
        ensure!(text, "{} fails", engine.name());
        times.push(time);
    }
    let answer = Answer { time: Some(median(&mut times)), changed_lines, peak: usage.peak };
    println!("{}", serde_json::to_string(&answer)?);
    Ok(())
}

fn ask(engine: Engine, case: &Case) -> Result<Answer> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["answer", engine.name(), case.name]);
    let run = clock::run(&mut command, Limit::Batch)?.context("a measuring child hangs")?;
    serde_json::from_slice(&run.output).with_context(|| format!("{} broke on \"{}\"", engine.name(), case.name))
}

/// Measures every case.
pub fn measure(rounds: usize) -> Result<Vec<CaseResult>> {
    let one = Trees::write("one", [(&b"a\n"[..], &b"b\n"[..])].into_iter())?;
    let mut overheads = Vec::new();
    for program in Program::ALL {
        overheads.push(program.overhead(&one, 11)?);
    }
    Case::ALL.iter().map(|case| measure_case(case, rounds, &overheads)).collect()
}

fn measure_case(case: &Case, rounds: usize, overheads: &[Duration]) -> Result<CaseResult> {
    let (old, new) = case.contents();
    let trees = Trees::write("case", [(old.as_slice(), new.as_slice())].into_iter())?;
    let mut tries = vec![Tries::default(); Engine::ALL.len() + Program::ALL.len()];
    let mut peaks = [0; Engine::ALL.len()];
    for _ in 0..rounds {
        for (at, engine) in Engine::ALL.into_iter().enumerate() {
            if !tries[at].hangs {
                let Answer { time, changed_lines, peak } = ask(engine, case)?;
                tries[at].add(time, changed_lines);
                peaks[at] = peak;
            }
        }
        for (program, (tries, &overhead)) in
            Program::ALL.into_iter().zip(tries[Engine::ALL.len()..].iter_mut().zip(overheads))
        {
            if !tries.hangs {
                match program.measure(&trees, Limit::Hanging)? {
                    Some(run) => {
                        tries.add(Some(run.cpu.saturating_sub(overhead)), verify::changed_lines(&run.text));
                    }
                    None => tries.add(None, 0),
                }
            }
        }
    }
    let bare_hangs = tries[1].hangs;
    let names = Engine::ALL.map(Engine::name).into_iter().chain(Program::ALL.map(Program::name));
    let attempts = names.zip(tries).map(|(name, tries)| tries.attempt(name)).collect();
    Ok(CaseResult { name: case.name, attempts, peaks: (peaks[0], peaks[1]), bare_hangs })
}

#[derive(Clone, Default)]
struct Tries {
    times: Vec<Duration>,
    changed_lines: usize,
    hangs: bool,
}

impl Tries {
    fn add(&mut self, time: Option<Duration>, changed_lines: usize) {
        self.times.extend(time);
        self.changed_lines = changed_lines;
        self.hangs |= time.is_none();
    }

    fn attempt(mut self, name: &'static str) -> Attempt {
        let time = (!self.hangs).then(|| median(&mut self.times));
        Attempt { name, time, changed_lines: self.changed_lines }
    }
}

impl CaseResult {
    /// The fewest changed lines of any attempt that ended.
    fn shortest(&self) -> f64 {
        let lines = self.attempts.iter().filter(|attempt| attempt.time.is_some()).map(|attempt| attempt.changed_lines);
        lines.min().unwrap_or(0) as f64
    }

    fn counts(&self, attempt: &Attempt) -> bool {
        attempt.changed_lines as f64 <= self.shortest() * LENGTH_LIMIT
    }

    /// The fastest peer whose output is short enough.
    fn fastest(&self) -> Option<(&Attempt, Duration)> {
        let peers = self.attempts[1..].iter().filter(|attempt| self.counts(attempt));
        let timed = peers.filter_map(|attempt| Some((attempt, attempt.time.filter(|&time| time >= MEASURABLE)?)));
        timed.min_by_key(|&(_, time)| time)
    }

    fn cell(&self, attempt: &Attempt) -> String {
        match attempt.time {
            None => "> 10 s".to_owned(),
            Some(time) if self.counts(attempt) => milliseconds(time),
            Some(time) => format!("{}*", milliseconds(time)),
        }
    }
}

/// The table of times.
pub fn section(results: &[CaseResult]) -> Section {
    let names: Vec<&str> =
        results.first().map_or(Vec::new(), |result| result.attempts.iter().map(|a| a.name).collect());
    let columns: Vec<&str> = names.into_iter().chain(["our length", "fastest"]).collect();
    let note = "CPU ms; * marks an output more than 1.05 times longer than the shortest, which is not counted; \
                \"our length\" is our changed lines over the shortest";
    let mut section = Section::new("Pathological cases", &columns, "ours/fastest").note(note);
    for result in results {
        let ours = &result.attempts[0];
        let mut cells: Vec<String> = result.attempts.iter().map(|attempt| result.cell(attempt)).collect();
        cells.push(format!("{:.3}", ours.changed_lines as f64 / result.shortest()));
        let fastest = result.fastest();
        cells.push(fastest.map_or("none", |(attempt, _)| attempt.name).to_owned());
        let time = ours.time.unwrap_or(TIME_LIMIT);
        let check = fastest.map(|(_, fastest)| Check::new(clock::ratio(time, fastest), Target::AtMost(1.5)));
        section.row(result.name, cells, check);
    }
    section
}
