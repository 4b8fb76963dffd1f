//! The most memory that is live at once beyond the two contents, the text that comes out included.

use crate::allocator;
use crate::corpus::Corpus;
use crate::engines::Engine;
use crate::pathological::CaseResult;
use crate::table::{Check, Section, Target, thousands};
use anyhow::Result;

/// Number of the largest pairs to measure.
const LARGEST: usize = 5;

/// The table of peaks, over the pathological cases and the largest pairs of the corpus.
pub fn section(corpus: &Corpus, cases: &[CaseResult]) -> Result<Section> {
    let note = "bytes by a counting allocator; where bare hangs, what it took in ten seconds, without any text";
    let mut section = Section::new("Peak memory above the inputs", &["ours kB", "bare kB"], "ours/bare").note(note);
    let cells = |(ours, bare): (usize, usize)| vec![thousands(ours / 1000), thousands(bare / 1000)];
    let ratio = |(ours, bare): (usize, usize)| ours as f64 / bare as f64;
    for case in cases {
        let (name, check) = if case.bare_hangs {
            (format!("{} (bare hangs)", case.name), Check::note(ratio(case.peaks)))
        } else {
            (case.name.to_owned(), Check::new(ratio(case.peaks), Target::AtMost(1.0)))
        };
        section.row(name, cells(case.peaks), Some(check));
    }
    let mut pairs: Vec<_> = corpus.pairs.iter().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.size()));
    for pair in pairs.into_iter().take(LARGEST) {
        let peak = |engine: Engine| -> Result<usize> {
            let (text, usage) = allocator::count(|| engine.unified(&pair.old, &pair.new));
            text?;
            Ok(usage.peak)
        };
        let name = pair.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let peaks = (peak(Engine::Ours)?, peak(Engine::Bare)?);
        let check = Check::new(ratio(peaks), Target::AtMost(1.0));
        section.row(format!("{name}, {} kB", pair.size() / 1000), cells(peaks), Some(check));
    }
    Ok(section)
}
