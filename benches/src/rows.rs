//! Rows of a change of 100,000 lines: the first page, and 1,000 pages in order.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use sayso_diff::{Diff, DiffRows, PageLimit, RowLayout, RowOptions};

use crate::allocator;
use crate::clock::{self, median, milliseconds, ratio};
use crate::table::{Check, Section, Target, thousands};

const CHANGED_LINES: usize = 100_000;
const PAGES: usize = 1_000;
/// Pages at either end of the list that are compared.
const END_PAGES: usize = 100;
/// CPU time that the first page may take.
const FIRST_PAGE_MILLISECONDS: f64 = 5.0;

/// Order of changed and unchanged lines.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One change.
    Block,
    /// Changes of 1,000 lines, whose words are compared: close to the engine's limit.
    Blocks,
    /// Every second line, all in one hunk.
    Alternating,
    /// Every tenth line, each in a hunk of its own.
    Scattered,
}

impl Shape {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Block, "one change"),
        (Self::Blocks, "100 changes of 1,000 lines"),
        (Self::Alternating, "every second line"),
        (Self::Scattered, "every tenth line"),
    ];

    fn content(self, word: &str) -> Vec<u8> {
        let between = |number: usize| match self {
            Self::Block => 0,
            Self::Blocks => usize::from(number % 1_000 == 999) * 10,
            Self::Alternating => 1,
            Self::Scattered => 9,
        };
        let line = |number: usize| {
            let same = (0..between(number)).map(move |at| format!("    same({number}, {at});\n"));
            let changed = format!("    let {word} = call({number:06}, \"some text\");\n");
            std::iter::once(changed).chain(same)
        };
        (0..CHANGED_LINES).flat_map(line).collect::<String>().into_bytes()
    }
}

/// Times of one shape.
#[derive(Default)]
struct Times {
    compare: Vec<Duration>,
    index: Vec<Duration>,
    /// The index and the first page of both layouts.
    first_page: Vec<Duration>,
    all_pages: Vec<Duration>,
    first_pages: Vec<Duration>,
    last_pages: Vec<Duration>,
}

/// Measures every shape.
pub fn sections(rounds: usize) -> Result<Vec<Section>> {
    let columns = ["rows", "compare ms", "index ms", "index kB"];
    let mut first = Section::new("Rows: first page of 100,000 changed lines", &columns, "first page ms")
        .note("the first page is the index and 100 rows of either layout; the comparison itself is not part of it");
    let columns = ["page rows", "1,000 pages ms", "first 100 ms", "last 100 ms"];
    let mut all = Section::new("Rows: 1,000 pages in order", &columns, "last/first")
        .note("pages at the end of the list cost what pages at its start do");
    for (shape, name) in Shape::ALL {
        measure(shape, name, rounds, &mut first, &mut all)?;
    }
    Ok(vec![first, all])
}

fn measure(shape: Shape, name: &str, rounds: usize, first: &mut Section, all: &mut Section) -> Result<()> {
    let (old, new) = (shape.content("before"), shape.content("after"));
    let options = RowOptions::default();
    let mut times = Times::default();
    for _ in 0..rounds {
        let (diff, time) = clock::time(|| Diff::new(&old[..], &new[..]));
        times.compare.push(time);
        times.index.push(clock::time(|| black_box(DiffRows::of_diff(&diff, options)).index_bytes()).1);
        let hundred = PageLimit { rows: 100, text_bytes: usize::MAX };
        let first_page = || {
            let rows = DiffRows::of_diff(&diff, options);
            black_box((rows.unified_page(0, hundred), rows.side_by_side_page(0, hundred)));
        };
        times.first_page.push(clock::time(first_page).1);
        pages(&DiffRows::of_diff(&diff, options), &mut times)?;
    }
    let diff = Diff::new(&old[..], &new[..]);
    let (rows, usage) = allocator::count(|| DiffRows::of_diff(&diff, options));
    let facts = rows.facts();
    ensure!(facts.counts.added == CHANGED_LINES && facts.counts.removed == CHANGED_LINES, "{:?}", facts.counts);
    let count = rows.row_count(RowLayout::Unified);
    let first_page = median(&mut times.first_page).as_secs_f64() * 1e3;
    let cells = vec![
        thousands(count),
        milliseconds(median(&mut times.compare)),
        milliseconds(median(&mut times.index)),
        thousands(usage.peak / 1_000),
    ];
    first.row(name, cells, Some(Check::new(first_page, Target::AtMost(FIRST_PAGE_MILLISECONDS))));
    let (first_pages, last_pages) = (median(&mut times.first_pages), median(&mut times.last_pages));
    let cells = vec![
        thousands(count.div_ceil(PAGES)),
        milliseconds(median(&mut times.all_pages)),
        milliseconds(first_pages),
        milliseconds(last_pages),
    ];
    all.row(name, cells, Some(Check::new(ratio(last_pages, first_pages), Target::AtMost(1.5))));
    Ok(())
}

/// Reads all pages in order, then the pages at either end.
fn pages(rows: &DiffRows<&[u8]>, times: &mut Times) -> Result<()> {
    let count = rows.row_count(RowLayout::Unified);
    let limit = PageLimit { rows: count.div_ceil(PAGES), text_bytes: usize::MAX };
    let read = |pages: std::ops::Range<usize>| {
        clock::time(|| {
            pages.map(|page| black_box(rows.unified_page(page * limit.rows, limit)).rows.len()).sum::<usize>()
        })
    };
    let (read_rows, time) = read(0..PAGES);
    ensure!(read_rows == count, "{read_rows} of {count} rows were read");
    times.all_pages.push(time);
    times.first_pages.push(read(0..END_PAGES).1);
    // The last page may be short, and pages after it are empty.
    let full = count / limit.rows;
    times.last_pages.push(read(full - END_PAGES..full).1);
    Ok(())
}
