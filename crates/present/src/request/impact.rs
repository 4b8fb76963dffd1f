//! Side effects of edits, and defects of a request.

use sayso_api::request::{ImpactReport, RequestDefect};

use crate::escape::escape_unprintable;
use crate::words::count;

/// Describes what the edits of a request mean for its upstream. Empty without edits.
pub fn impact_text(impact: Option<&ImpactReport>) -> String {
    let Some(impact) = impact else { return String::new() };
    let mut text = String::new();
    let (before, after) = (impact.before.count, impact.after.count);
    if before != after {
        let saved = before.cast_signed() - after.cast_signed();
        text.push_str(&format!("edits: {} than what came\n", token_difference(saved)));
    }
    if impact.reread.count > 0 {
        let lost = match impact.breakpoints_lost.len() {
            0 => String::new(),
            1 => "; 1 breakpoint of the cache is lost".to_owned(),
            lost => format!("; {lost} breakpoints of the cache are lost"),
        };
        let reread = impact.reread;
        text.push_str(&format!("cache cost: {reread} tokens are read anew{lost}\n"));
    }
    for path in &impact.sealed_after {
        let path = escape_unprintable(path);
        text.push_str(&format!("may be refused: what is signed comes after an edit: {path}\n"));
    }
    if let Some(alternative) = &impact.alternative {
        text.push_str(&format!("instead: {}\n", escape_unprintable(alternative)));
    }
    text
}

/// Formats a number of saved tokens: `3 tokens fewer`, or `1 token more` for a negative one.
pub(super) fn token_difference(saved: i64) -> String {
    format!("{} {}", count(saved.unsigned_abs(), "token"), if saved < 0 { "more" } else { "fewer" })
}

/// Describes defects and their repairs. Repairs are numbered over all defects.
pub fn problems_text(request: u64, problems: &[RequestDefect]) -> String {
    let mut text = String::new();
    let mut number = 0;
    for problem in problems {
        let word = if problem.blocking { "problem" } else { "note: it came like this" };
        let path =
            if problem.path.is_empty() { String::new() } else { format!("{}: ", escape_unprintable(&problem.path)) };
        text.push_str(&format!("{word}: {path}{}\n", escape_unprintable(&problem.message)));
        for repair in &problem.repairs {
            number += 1;
            let (name, path) = (escape_unprintable(&repair.name), escape_unprintable(&repair.path));
            text.push_str(&format!("  repair {number}: {name} ({path}): `sayso request repair {request} {number}`\n"));
        }
    }
    text
}
