//! The expression of find: starting points, then primaries with their arguments.

use sayso_shell::{Certainty, Word};

use super::finding::{FindingKind, NestedCommand, Unclear};
use super::reading::Reader;
use super::vocabulary::{Kind, Spec, Trait};

/// Reads starting points and primaries.
pub(super) fn read(reader: &mut Reader<'_>, first: usize) {
    let mut at = first;
    let mut starts = Vec::new();
    let is_expression = |word: &Word| matches!(word.text.as_str(), "(" | "!" | "," | ")") || word.text.starts_with('-');
    while let Some(word) = reader.words.get(at) {
        if word.certainty == Certainty::Unknown {
            reader.unclear(at, &word.text, Unclear::MayBeOption);
        }
        match word.text.as_str() {
            "-H" | "-L" | "-P" => {}
            _ if is_expression(word) => break,
            _ => starts.push((at, word.clone())),
        }
        at += 1;
    }
    for (at, word) in &starts {
        reader.find(*at, &word.text, FindingKind::Reads(word.clone()));
    }
    while at < reader.words.len() {
        at = primary(reader, at, &starts);
    }
}

/// Reads one primary; gives the index behind its arguments.
fn primary(reader: &mut Reader<'_>, at: usize, starts: &[(usize, Word)]) -> usize {
    let word = &reader.words[at];
    let text = word.text.as_str();
    if word.certainty == Certainty::Unknown {
        reader.unclear(at, text, Unclear::MayBeOption);
        return at + 1;
    }
    if matches!(text, "(" | ")" | "!" | ",") {
        return at + 1;
    }
    let Some(spec) = reader.verb.exact(text) else {
        reader.unclear(at, text, Unclear::Option);
        return at + 1;
    };
    match spec.kind {
        Kind::Flag if spec.has(Trait::Recursive) => {
            for (_, start) in starts {
                reader.find(at, text, FindingKind::Deletes { word: start.clone(), recursive: true });
            }
            if starts.is_empty() {
                reader.find(at, text, FindingKind::Deletes { word: Word::literal("."), recursive: true });
            }
            at + 1
        }
        Kind::Flag => {
            reader.effects(at, text, spec.traits);
            at + 1
        }
        Kind::Command => {
            let behind = &reader.words[at + 1..];
            let end = behind.iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
            reader.find(
                at + 1,
                text,
                FindingKind::Runs(NestedCommand::CommandPattern { from: at + 1, assignments: Vec::new() }),
            );
            end.map_or(reader.words.len(), |end| at + end + 2)
        }
        _ => argument(reader, at, text, spec),
    }
}

/// Reads the argument of a primary; gives the index behind it.
fn argument(reader: &mut Reader<'_>, at: usize, primary: &str, spec: Spec) -> usize {
    let Some(value) = reader.words.get(at + 1) else {
        reader.unclear(at, primary, Unclear::MissingValue);
        return at + 1;
    };
    if value.certainty == Certainty::Unknown {
        reader.unclear(at + 1, &value.text, Unclear::MayBeOption);
    }
    reader.value(at + 1, primary, spec, value);
    // `-fprintf FILE FORMAT` has a second one.
    at + if primary == "-fprintf" { 3 } else { 2 }
}
