//! The cost of edits: content that the server must process again, and sealed content that may become invalid.

use std::collections::BTreeSet;

use crate::dialect::ItemKind;
use crate::json::{Document, JsonKind, Target};
use crate::request::{ModelRequest, RequestBody};
use crate::tokens::{TokenCounter, Tokenizer, Tokens};

/// The consequences of the edits of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditImpact {
    /// Offset of the first byte that differs from the received body.
    pub first_changed: Option<usize>,
    /// Cache breakpoints whose cached prefix is lost.
    pub breakpoints_lost: Vec<Target>,
    /// Number of tokens that the server must process again.
    pub reread: Tokens,
    /// Signed or encrypted values after an edit, which the server may reject.
    pub sealed_after: Vec<Target>,
    /// Tokens before the edits.
    pub before: Tokens,
    /// Tokens after the edits.
    pub after: Tokens,
}

impl EditImpact {
    /// Suggests an edit without these consequences, if there are any.
    pub fn alternative(&self) -> Option<&'static str> {
        let costs = !self.breakpoints_lost.is_empty() || !self.sealed_after.is_empty();
        costs.then_some("append a message: what received before it stays valid and kept")
    }
}

impl ModelRequest {
    /// Counts the tokens of a value as written in the request.
    pub fn tokens(&self, counter: &mut TokenCounter, target: Target) -> Tokens {
        let Some(document) = self.document() else {
            return counter.count_bytes(Tokenizer::ESTIMATE, &self.to_bytes());
        };
        if !document.contains(target) {
            return Tokens::ZERO;
        }
        count_value(document, counter, self.tokenizer(), target)
    }

    /// Returns the tokenizer of the request's model.
    pub fn tokenizer(&self) -> Tokenizer {
        self.identity().model.map_or(Tokenizer::ESTIMATE, |model| Tokenizer::for_model(&model))
    }

    /// Counts the tokens of the whole request.
    pub fn total_tokens(&self, counter: &mut TokenCounter) -> Tokens {
        match self.document() {
            Some(document) => count_value(document, counter, self.tokenizer(), document.root()),
            None => counter.count_bytes(Tokenizer::ESTIMATE, &self.to_bytes()),
        }
    }

    /// Returns the impact of the edits; `None` without edits or if the format is unknown.
    pub fn edit_impact(&self, counter: &mut TokenCounter) -> Option<EditImpact> {
        let RequestBody::Known { dialect, document, .. } = &self.body else { return None };
        if document.is_original() {
            return None;
        }
        let received = document.as_received();
        let tokenizer = self.tokenizer();
        let sent = document.to_bytes();
        let first_changed = first_difference(document.original(), &sent);
        // Split both versions into units in the server's reading order and compare them.
        let (old, new) =
            (cache_units(&received, dialect.reading_order()), cache_units(document, dialect.reading_order()));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new && !self.is_edited(**new)).count();
        let kept: BTreeSet<Target> = old[..same].iter().copied().collect();
        let changed: BTreeSet<Target> = old[same..].iter().chain(&new[same..]).copied().collect();
        // A breakpoint is kept if it is within an unchanged unit, or if all units within it are unchanged.
        let is_kept = |document: &Document, target: Target| {
            let within = |own: Target, of: &dyn Fn(Target) -> bool| {
                std::iter::successors(Some(own), |own| document.parent(*own)).any(of)
            };
            within(target, &|own| kept.contains(&own))
                || !changed.iter().any(|piece| document.contains(*piece) && within(*piece, &|own| own == target))
                    && !within(target, &|own| changed.contains(&own))
        };
        let breakpoints_lost: Vec<Target> =
            dialect.breakpoints(&received).into_iter().filter(|place| !is_kept(&received, *place)).collect();
        let reread = if same == old.len() && new.len() >= old.len() {
            // Only units at the end changed, which have to be processed anyway.
            Tokens::ZERO
        } else {
            new[same..].iter().map(|piece| count_value(document, counter, tokenizer, *piece)).sum()
        };
        let sealed = dialect.messages(document).into_iter().filter(|item| item.kind == ItemKind::Sealed);
        let sealed_after = sealed.map(|item| item.target).filter(|target| !is_kept(document, *target)).collect();
        Some(EditImpact {
            first_changed,
            breakpoints_lost,
            reread,
            sealed_after,
            before: count_value(&received, counter, tokenizer, received.root()),
            after: count_value(document, counter, tokenizer, document.root()),
        })
    }
}

/// Returns the units in which a server reads a body, in its order: parts of messages and their other fields. The model
/// comes first, because another model has no cached prefix.
fn cache_units(document: &Document, order: &[&str]) -> Vec<Target> {
    ["model"].iter().chain(order).flat_map(|name| cache_units_of_member(document, name)).collect()
}

/// Returns the cache units of one member of a body.
pub(crate) fn cache_units_of_member(document: &Document, name: &str) -> Vec<Target> {
    let mut units = Vec::new();
    let Some(part) = document.member(document.root(), name) else { return units };
    let list = document.kind(part) == JsonKind::Array;
    for element in document.children(part).filter(|_| list).chain((!list).then_some(part)) {
        let whole = document.kind(element).is_leaf();
        for field in document.children(element).filter(|_| !whole).chain(whole.then_some(element)) {
            let parts = document.kind(field) == JsonKind::Array;
            units.extend(document.children(field).filter(|_| parts).chain((!parts).then_some(field)));
        }
    }
    units
}

/// Counts the tokens of a value with its names and numbers.
pub(crate) fn count_value(
    document: &Document,
    counter: &mut TokenCounter,
    tokenizer: Tokenizer,
    target: Target,
) -> Tokens {
    // An unmodified message is cached by its bytes and not visited.
    count_unmodified(document, &document.modified_values(), counter, tokenizer, target)
}

fn count_unmodified(
    document: &Document,
    touched: &BTreeSet<Target>,
    counter: &mut TokenCounter,
    tokenizer: Tokenizer,
    target: Target,
) -> Tokens {
    let raw = document.raw(target);
    if document.kind(target).is_leaf() {
        return match document.kind(target) {
            JsonKind::String => counter.count_encoded(tokenizer, raw, || document.text(target).unwrap_or_default()),
            _ => counter.count_bytes(tokenizer, raw),
        };
    }
    let sum = |counter: &mut TokenCounter| {
        let children = document.children(target);
        children
            .map(|child| {
                let key = document.raw_key(child).map_or(Tokens::ZERO, |key| counter.count_bytes(tokenizer, key));
                key + count_unmodified(document, touched, counter, tokenizer, child)
            })
            .sum()
    };
    // Counting a short value is faster than a cache lookup, and a very long value changes with every message.
    let remembered = !touched.contains(&target) && (64..256 << 10).contains(&raw.len());
    if remembered { counter.count_whole(tokenizer, raw, sum) } else { sum(counter) }
}

fn first_difference(old: &[u8], new: &[u8]) -> Option<usize> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    (same < old.len() || same < new.len()).then_some(same)
}
