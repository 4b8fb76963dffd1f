//! Measures sayso side by side with its peers and prints a table of ratios; see `README.md`.
//!
//! A missed target does not fail the run, since times are noise on a busy machine. A wrong diff does.

mod allocator;
mod bare;
mod call;
mod cases;
mod changes;
mod clock;
mod corpus;
mod engines;
mod gate;
mod inline;
mod instructions;
mod journal;
mod memory;
mod pathological;
mod policy;
mod programs;
mod proxy;
mod rows;
mod scans;
mod served;
mod source;
mod startup;
mod table;
mod verify;
mod whole;
mod wire;
mod wire_stream;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use cases::Case;
use corpus::{Corpus, Distance, Extent};
use engines::Engine;
use instructions::Work;
use table::Section;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

const USAGE: &str = "usage: sayso-bench [--quick] [--json FILE] [--only PART]…
parts: whole, instructions, cases, words, inline, rows, memory, startup, call, changes, journal, policy, scans, gate, served, wire,
wire-stream, proxy, proxy-memory";

const PARTS: [&str; 19] = [
    "whole",
    "instructions",
    "cases",
    "words",
    "inline",
    "rows",
    "memory",
    "startup",
    "call",
    "changes",
    "journal",
    "policy",
    "scans",
    "gate",
    "served",
    "wire",
    "wire-stream",
    "proxy",
    "proxy-memory",
];
/// The parts that compare contents, and so need the corpus and a check that comparing is right.
const DIFF_PARTS: [&str; 6] = ["whole", "instructions", "cases", "words", "inline", "memory"];

struct Options {
    extent: Extent,
    json: Option<PathBuf>,
    /// The parts to run; empty for all.
    only: Vec<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { extent: Extent::Full, json: None, only: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.extent = Extent::Quick,
                "--json" => options.json = Some(arguments.next().context(USAGE)?.into()),
                "--only" => {
                    let part = arguments.next().context(USAGE)?;
                    if !PARTS.contains(&part.as_str()) {
                        bail!("there is no part `{part}`\n{USAGE}");
                    }
                    options.only.push(part);
                }
                _ => bail!("unknown argument `{argument}`\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    /// Returns the number of repetitions of a part that a full run repeats `full` times.
    fn rounds(&self, full: usize) -> usize {
        if self.extent == Extent::Quick { 1 } else { full }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // These four are this program calling itself.
        ["once", work, list] => Work::named(work).context("no such work")?.once(Path::new(list)),
        ["answer", engine, case] => pathological::answer(
            Engine::named(engine).context("no such engine")?,
            &Case::named(case).context("no such case")?,
        ),
        ["change", who, files, rounds] => changes::once(who, files, rounds),
        ["gate", count] => gate::once(count),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => run(&Options::parse(arguments.into_iter())?),
    }
}

fn run(options: &Options) -> Result<()> {
    let mut sections = Vec::new();
    let mut add = |section: Section| {
        println!("{}", section.render());
        sections.push(section);
    };
    if DIFF_PARTS.iter().any(|part| options.wants(part)) {
        diff_parts(options, &mut add)?;
    }
    if options.wants("startup") {
        add(startup::section(options.rounds(20) * 10)?);
    }
    if options.wants("call") {
        add(call::section(options.rounds(20) * 10)?);
    }
    if options.wants("rows") {
        rows::sections(options.rounds(5))?.into_iter().for_each(&mut add);
    }
    if options.wants("changes") {
        changes::sections(options.rounds(9))?.into_iter().for_each(&mut add);
    }
    if options.wants("journal") {
        journal::sections(options.extent, options.rounds(3))?.into_iter().for_each(&mut add);
    }
    if options.wants("policy") {
        add(policy::section(options.rounds(9))?);
    }
    if options.wants("gate") {
        gate::sections(options.rounds(3))?.into_iter().for_each(&mut add);
    }
    if options.wants("scans") {
        scans::sections(options.rounds(5))?.into_iter().for_each(&mut add);
    }
    if options.wants("served") {
        served::sections(options.rounds(5))?.into_iter().for_each(&mut add);
    }
    if options.wants("wire") {
        wire::sections(options.rounds(9))?.into_iter().for_each(&mut add);
    }
    if options.wants("wire-stream") {
        add(wire_stream::section(options.rounds(15))?);
    }
    if options.wants("proxy") {
        proxy::sections(options.extent, options.rounds(5))?.into_iter().for_each(&mut add);
    }
    if options.wants("proxy-memory") {
        proxy::memory()?.into_iter().for_each(&mut add);
    }
    print!("{}", table::summary(&sections));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&sections)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn diff_parts(options: &Options, add: &mut impl FnMut(Section)) -> Result<()> {
    let corpus = Corpus::fetch(Distance::Near, options.extent)?;
    let far = Corpus::fetch(Distance::Far, options.extent)?;
    // Before any timing: what is wrong need not be fast.
    let outputs = whole::verify(&corpus)?;
    whole::verify(&far)?;
    pathological::verify()?;
    let pairs = corpus.pairs.len() + far.pairs.len();
    println!("every diff of ours gives the exact new bytes: {pairs} pairs, {} cases\n", Case::ALL.len());
    if options.wants("whole") {
        whole::sections(&corpus, &outputs, options.rounds(5))?.into_iter().for_each(&mut *add);
    }
    if options.wants("instructions") {
        add(instructions::section(&corpus.write_list("near")?, &far.write_list("far")?)?);
    }
    if options.wants("cases") || options.wants("memory") {
        let cases = pathological::measure(options.rounds(3))?;
        if options.wants("cases") {
            add(pathological::section(&cases));
        }
        if options.wants("memory") {
            add(memory::section(&corpus, &cases)?);
        }
    }
    if options.wants("words") {
        add(words::section(&corpus, options.rounds(5)));
    }
    if options.wants("inline") {
        add(inline::section(options.rounds(5))?);
    }
    Ok(())
}
