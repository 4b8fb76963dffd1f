//! The whole way from two contents to unified text, over the corpus.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::clock::{self, Limit, median, microseconds, milliseconds, percentile};
use crate::corpus::{Corpus, Trees};
use crate::engines::Engine;
use crate::programs::Program;
use crate::table::{Check, Section, Target, thousands};
use crate::verify;

/// Pairs that one engine does before it is the next one's turn: few enough that a slow spell of the machine hits all alike.
const BLOCK: usize = 64;
/// difflib is slow and its target far away, so it runs less often.
const DIFFLIB_ROUNDS: usize = 2;

/// Output of each engine for the whole corpus.
pub struct Outputs {
    /// Changed lines and wrong diffs, as in [`Engine::ALL`].
    engines: Vec<(usize, usize)>,
}

/// Checks every diff of ours, and counts what the others get wrong. The bare engine's printer is ours too.
pub fn verify(corpus: &Corpus) -> Result<Outputs> {
    let mut engines = Vec::new();
    for engine in Engine::ALL {
        let (mut lines, mut wrong) = (0, 0);
        for pair in &corpus.pairs {
            let text = engine.unified(&pair.old, &pair.new)?;
            lines += verify::changed_lines(&text);
            if let Err(error) = verify::check(&text, &pair.old, &pair.new) {
                if matches!(engine, Engine::Ours | Engine::Bare) {
                    bail!("the diff of {} by `{}` is wrong: {error}", pair.path().display(), engine.name());
                }
                wrong += 1;
            }
        }
        engines.push((lines, wrong));
    }
    Ok(Outputs { engines })
}

struct Measured {
    name: &'static str,
    rounds: Vec<Duration>,
    /// Of each pair, where that can be told.
    each: Vec<Duration>,
    lines: usize,
    /// `None` for programs, whose text is of many files.
    wrong: Option<usize>,
}

impl Measured {
    fn new(name: &'static str) -> Self {
        Self { name, rounds: Vec::new(), each: Vec::new(), lines: 0, wrong: None }
    }
}

/// Measures every engine and program; two sections, of time and of length.
pub fn sections(corpus: &Corpus, outputs: &Outputs, rounds: usize) -> Result<Vec<Section>> {
    let mut engines = Engines::new(corpus, outputs);
    let mut programs = Programs::new(corpus)?;
    for round in 0..rounds {
        engines.round(round)?;
        programs.round(round)?;
    }
    engines.each_pair()?;
    let measured: Vec<Measured> = engines.measured.into_iter().chain(programs.measured).collect();
    let ours = measured[0].rounds.clone();
    let ratio = |peer: &Measured| {
        let ratios: Vec<f64> = peer.rounds.iter().zip(&ours).map(|(&peer, &ours)| clock::ratio(peer, ours)).collect();
        middle(ratios)
    };
    let title =
        format!("Whole unified text: {} pairs, {} MB", thousands(corpus.pairs.len()), corpus.size() / 1_000_000);
    let note = format!("CPU time, median of {rounds} interleaved rounds; programs net of their start");
    let columns = ["total ms", "p50 µs", "p99 µs", "wrong"];
    let mut time = Section::new(title, &columns, "peer/ours").note(note);
    let mut length =
        Section::new("Changed lines", &["+/- lines"], "of bare's").note("no winning by replacing everything");
    let bare_lines = measured[1].lines as f64;
    for mut peer in measured {
        let ratio = ratio(&peer);
        let check = match target(peer.name) {
            Some(target) => Some(Check::new(ratio, target)),
            None if peer.name == Engine::Ours.name() => None,
            None => Some(Check::note(ratio)),
        };
        let at = |each: &mut [Duration], percent| match each {
            [] => String::new(),
            each => microseconds(percentile(each, percent)),
        };
        let wrong = peer.wrong.map_or(String::new(), thousands);
        let total = milliseconds(median(&mut peer.rounds));
        time.row(peer.name, vec![total, at(&mut peer.each, 50), at(&mut peer.each, 99), wrong], check);
        let of_bare = peer.lines as f64 / bare_lines;
        let check = match peer.name {
            "ours" => Check::new(of_bare, Target::AtMost(1.02)),
            _ => Check::note(of_bare),
        };
        if peer.lines > 0 {
            length.row(peer.name, vec![thousands(peer.lines)], Some(check));
        }
    }
    Ok(vec![time, length])
}

/// Minimum time of a peer relative to sayso.
fn target(peer: &str) -> Option<Target> {
    Some(Target::AtLeast(match peer {
        "similar" => 2.0,
        "diffy" => 3.0,
        "libgit2" | "git Myers" | "git histogram" => 5.0,
        "difflib" => 30.0,
        // At most 1.25 times GNU diff's time.
        "GNU diff" => 0.8,
        _ => return None,
    }))
}

struct Engines<'c> {
    corpus: &'c Corpus,
    /// As in [`Engine::ALL`].
    measured: Vec<Measured>,
}

impl<'c> Engines<'c> {
    fn new(corpus: &'c Corpus, outputs: &Outputs) -> Self {
        let measured = |(engine, &(lines, wrong)): (Engine, &(usize, usize))| Measured {
            lines,
            wrong: Some(wrong),
            ..Measured::new(engine.name())
        };
        Self { corpus, measured: Engine::ALL.into_iter().zip(&outputs.engines).map(measured).collect() }
    }

    fn round(&mut self, round: usize) -> Result<()> {
        let all = Engine::ALL;
        let mut times = [Duration::ZERO; Engine::ALL.len()];
        for (number, block) in self.corpus.pairs.chunks(BLOCK).enumerate() {
            for turn in 0..all.len() {
                // The first engine finds the contents outside the CPU cache, so the order rotates.
                let at = (turn + number + round) % all.len();
                let (result, time) = clock::time(|| -> Result<()> {
                    for pair in block {
                        black_box(all[at].unified(&pair.old, &pair.new)?);
                    }
                    Ok(())
                });
                result?;
                times[at] += time;
            }
        }
        self.measured.iter_mut().zip(times).for_each(|(measured, time)| measured.rounds.push(time));
        Ok(())
    }

    fn each_pair(&mut self) -> Result<()> {
        let clock_cost = clock::cost();
        for pair in &self.corpus.pairs {
            for (engine, measured) in Engine::ALL.into_iter().zip(&mut self.measured) {
                let (text, time) = clock::time(|| engine.unified(&pair.old, &pair.new));
                black_box(text?);
                measured.each.push(time.saturating_sub(clock_cost));
            }
        }
        Ok(())
    }
}

struct Programs {
    trees: Trees,
    /// Start-up cost of each program, as in [`Program::ALL`].
    starts: Vec<Duration>,
    /// Cost of GNU diff to start and to open as many files.
    gnu_opening: Duration,
    /// As in [`Program::ALL`], and GNU diff once more without what opening costs.
    measured: Vec<Measured>,
}

impl Programs {
    fn new(corpus: &Corpus) -> Result<Self> {
        let trivial = (&b"a\n"[..], &b"b\n"[..]);
        let one = Trees::write("one", [trivial].into_iter())?;
        let many = Trees::write("many", corpus.pairs.iter().map(|_| trivial))?;
        let starts = Program::ALL.into_iter().map(|program| program.overhead(&one, 11)).collect::<Result<_>>()?;
        let names = Program::ALL.map(Program::name).into_iter().chain(["GNU diff, opening files not counted"]);
        Ok(Self {
            trees: corpus.write_trees()?,
            starts,
            gnu_opening: Program::Gnu.overhead(&many, 3)?,
            measured: names.map(Measured::new).collect(),
        })
    }

    fn round(&mut self, round: usize) -> Result<()> {
        for (at, program) in Program::ALL.into_iter().enumerate() {
            if program == Program::Difflib && round >= DIFFLIB_ROUNDS {
                continue;
            }
            let Some(run) = program.measure(&self.trees, Limit::Batch)? else { bail!("{} hangs", program.name()) };
            let lines = verify::changed_lines(&run.text);
            ensure!(lines > 0, "{} found no changes", program.name());
            self.measured[at].lines = lines;
            self.measured[at].rounds.push(run.cpu.saturating_sub(self.starts[at]));
            self.measured[at].each = run.each;
            if program == Program::Gnu {
                self.measured[Program::ALL.len()].rounds.push(run.cpu.saturating_sub(self.gnu_opening));
            }
        }
        Ok(())
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
