//! What an edit costs: what the server has to read anew, and what may no longer be valid.

use std::collections::BTreeSet;

use crate::dialect::Saying;
use crate::json::{Document, Kind, Target};
use crate::request::{Body, ModelRequest};
use crate::tokens::{TokenCounter, Tokenizer, Tokens};

/// What the edits of a request mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The first byte that differs from what came.
    pub first_changed: Option<usize>,
    /// The places up to which the server kept the request, and that it has to read again.
    pub breakpoints_lost: Vec<Target>,
    /// How many tokens it has to read again.
    pub reread: Tokens,
    /// What is signed or encrypted and comes after a change: the server may refuse it.
    pub sealed_after: Vec<Target>,
    /// Tokens before the edits.
    pub before: Tokens,
    /// Tokens after them.
    pub after: Tokens,
}

impl Consequences {
    /// The way to say the same without these consequences, where there are any.
    pub fn alternative(&self) -> Option<&'static str> {
        let costs = !self.breakpoints_lost.is_empty() || !self.sealed_after.is_empty();
        costs.then_some("append a message: what came before it stays valid and kept")
    }
}

impl ModelRequest {
    /// The tokens of a value as it is written in the request.
    pub fn tokens(&self, counter: &mut TokenCounter, target: Target) -> Tokens {
        let Some(document) = self.document() else {
            return counter.count_bytes(Tokenizer::ESTIMATE, &self.to_bytes());
        };
        if !document.knows(target) {
            return Tokens::ZERO;
        }
        tokens(document, counter, self.tokenizer(), target)
    }

    /// How its tokens are counted.
    pub fn tokenizer(&self) -> Tokenizer {
        self.marks().model.map_or(Tokenizer::ESTIMATE, |model| Tokenizer::of_model(&model))
    }

    /// The tokens of all that is sent.
    pub fn total_tokens(&self, counter: &mut TokenCounter) -> Tokens {
        match self.document() {
            Some(document) => tokens(document, counter, self.tokenizer(), document.root()),
            None => counter.count_bytes(Tokenizer::ESTIMATE, &self.to_bytes()),
        }
    }

    /// What its edits mean. `None` if there are none, or its structure is not known.
    pub fn consequences(&self, counter: &mut TokenCounter) -> Option<Consequences> {
        let Body::Known { dialect, document, .. } = &self.body else { return None };
        if document.is_original() {
            return None;
        }
        let came = document.as_came();
        let tokenizer = self.tokenizer();
        let sent = document.to_bytes();
        let first_changed = first_difference(document.original(), &sent);
        // What the server reads, in its order, as pieces of which each is the same or not.
        let (old, new) = (pieces(&came, dialect.reading_order()), pieces(document, dialect.reading_order()));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new && !self.is_edited(**new)).count();
        let kept: BTreeSet<Target> = old[..same].iter().copied().collect();
        let changed: BTreeSet<Target> = old[same..].iter().chain(&new[same..]).copied().collect();
        // Kept, if it is in something that is the same, or if nothing in it is not.
        let is_kept = |document: &Document, target: Target| {
            let within = |own: Target, of: &dyn Fn(Target) -> bool| {
                std::iter::successors(Some(own), |own| document.parent(*own)).any(of)
            };
            within(target, &|own| kept.contains(&own))
                || !changed.iter().any(|piece| document.knows(*piece) && within(*piece, &|own| own == target))
                    && !within(target, &|own| changed.contains(&own))
        };
        let breakpoints_lost: Vec<Target> =
            dialect.breakpoints(&came).into_iter().filter(|place| !is_kept(&came, *place)).collect();
        let reread = if same == old.len() && new.len() >= old.len() {
            // Only something at the end, which had to be read anyway.
            Tokens::ZERO
        } else {
            new[same..].iter().map(|piece| tokens(document, counter, tokenizer, *piece)).sum()
        };
        let sealed = dialect.messages(document).into_iter().filter(|item| item.saying == Saying::Sealed);
        let sealed_after = sealed.map(|item| item.target).filter(|target| !is_kept(document, *target)).collect();
        Some(Consequences {
            first_changed,
            breakpoints_lost,
            reread,
            sealed_after,
            before: tokens(&came, counter, tokenizer, came.root()),
            after: tokens(document, counter, tokenizer, document.root()),
        })
    }
}

/// What a server reads, in its order, in the smallest pieces between which it can tell: parts of messages, and their other fields.
fn pieces(document: &Document, order: &[&str]) -> Vec<Target> {
    let mut pieces = Vec::new();
    // Another model has kept nothing of it.
    for name in ["model"].iter().chain(order) {
        let Some(part) = document.member(document.root(), name) else { continue };
        let list = document.kind(part) == Kind::Array;
        for element in document.children(part).filter(|_| list).chain((!list).then_some(part)) {
            let whole = document.kind(element).is_leaf();
            for field in document.children(element).filter(|_| !whole).chain(whole.then_some(element)) {
                let parts = document.kind(field) == Kind::Array;
                pieces.extend(document.children(field).filter(|_| parts).chain((!parts).then_some(field)));
            }
        }
    }
    pieces
}

/// The tokens of the texts in a value, and of the names and numbers between them.
fn tokens(document: &Document, counter: &mut TokenCounter, tokenizer: Tokenizer, target: Target) -> Tokens {
    // What is not edited is remembered by the bytes of a whole message, and not looked into again.
    count(document, &document.touched(), counter, tokenizer, target)
}

fn count(
    document: &Document,
    touched: &BTreeSet<Target>,
    counter: &mut TokenCounter,
    tokenizer: Tokenizer,
    target: Target,
) -> Tokens {
    let raw = document.raw(target);
    if document.kind(target).is_leaf() {
        return match document.kind(target) {
            Kind::String => counter.count_encoded(tokenizer, raw, || document.text(target).unwrap_or_default()),
            _ => counter.count_bytes(tokenizer, raw),
        };
    }
    let sum = |counter: &mut TokenCounter| {
        let children = document.children(target);
        children
            .map(|child| {
                let key = document.raw_key(child).map_or(Tokens::ZERO, |key| counter.count_bytes(tokenizer, key));
                key + count(document, touched, counter, tokenizer, child)
            })
            .sum()
    };
    // What is short is counted sooner than remembered; what is long changes with every message.
    let remembered = !touched.contains(&target) && (64..256 << 10).contains(&raw.len());
    if remembered { counter.count_whole(tokenizer, raw, sum) } else { sum(counter) }
}

fn first_difference(old: &[u8], new: &[u8]) -> Option<usize> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    (same < old.len() || same < new.len()).then_some(same)
}
