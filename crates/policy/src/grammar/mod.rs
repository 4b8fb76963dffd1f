//! Grammars: the options and operands of well-known programs, and the effect of each.
//!
//! The tables come from `grammars/*.toml`, which `docs/grammars.md` describes. [`ParsedArguments::parse`] reads a command by the grammar of
//! its program. An option or word that the grammar lacks is a [`FindingKind::Unclear`], never silence.

mod code;
mod expression;
mod finding;
mod options;
mod reading;
mod values;
#[allow(dead_code, reason = "the build script uses the rest")]
pub(crate) mod vocabulary;

pub(crate) use finding::{Finding, FindingKind, NestedCommand};
pub(crate) use reading::ParsedArguments;
use tables::GRAMMARS;
use vocabulary::{Kind, Spec, Style};

/// The tables that the build script makes of `grammars/*.toml`.
#[allow(clippy::unreadable_literal, reason = "generated")]
mod tables {
    use super::vocabulary::{Kind, Spec, Style};
    use super::{Grammar, Verb};

    include!(concat!(env!("OUT_DIR"), "/grammars.rs"));
}

/// The options and operands of one program.
#[derive(Debug)]
pub(crate) struct Grammar {
    style: Style,
    /// The program itself.
    program: Verb,
    /// Its subcommands, sorted by name; a name may have two words.
    verbs: &'static [Verb],
}

/// A program or a subcommand.
#[derive(Debug)]
struct Verb {
    name: &'static str,
    /// Options by name, each table sorted.
    tables: &'static [&'static [(&'static str, Spec)]],
    operands: &'static [Spec],
    /// Operands behind `--`, where they differ.
    after: &'static [Spec],
    /// Effects that occur with all options.
    traits: u32,
    /// Effects where no operand is given: an interpreter then reads its input.
    bare: u32,
    /// `-5` is an option.
    numbers: bool,
    /// No option does more than read.
    harmless: bool,
}

impl Grammar {
    /// The grammar of a program, by its name without a directory.
    pub(crate) fn for_program(program: &str) -> Option<&'static Self> {
        let at = GRAMMARS.binary_search_by(|(name, _)| (*name).cmp(program)).ok()?;
        Some(GRAMMARS[at].1)
    }

    fn verb(&self, name: &str) -> Option<&'static Verb>
    where
        Self: 'static,
    {
        let verbs = self.verbs;
        let at = verbs.binary_search_by(|verb| verb.name.cmp(name)).ok()?;
        verbs.get(at)
    }
}

impl Verb {
    /// The option of exactly this name.
    fn exact(&self, name: &str) -> Option<Spec> {
        self.tables.iter().find_map(|table| {
            let at = table.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
            Some(table[at].1)
        })
    }

    /// The option that an abbreviation stands for, if all candidates mean the same.
    fn abbreviated(&self, prefix: &str) -> Option<Spec> {
        let mut found = None;
        for table in self.tables {
            let from = table.partition_point(|(name, _)| *name < prefix);
            for (_, spec) in table[from..].iter().take_while(|(name, _)| name.starts_with(prefix)) {
                match found {
                    None => found = Some(*spec),
                    Some(other) if other == *spec => {}
                    Some(_) => return None,
                }
            }
        }
        found
    }

    fn has_kind(&self, kind: Kind) -> bool {
        self.operands.iter().any(|spec| spec.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_named_once() {
        assert!(GRAMMARS.len() > 150, "{} programs", GRAMMARS.len());
        assert!(GRAMMARS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, grammar) in GRAMMARS {
            assert!(grammar.verbs.windows(2).all(|pair| pair[0].name < pair[1].name), "{name}");
            for table in grammar.program.tables.iter().chain(grammar.verbs.iter().flat_map(|verb| verb.tables)) {
                assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0), "{name}");
            }
        }
    }

    #[test]
    fn one_operand_kind_repeats_at_most() {
        for (name, grammar) in GRAMMARS {
            for verb in grammar.verbs.iter().chain([&grammar.program]) {
                for slots in [verb.operands, verb.after] {
                    let repeated = slots.iter().filter(|spec| spec.repeated).count();
                    assert!(repeated <= 1, "{name} {}: which operand is which?", verb.name);
                }
            }
        }
    }
}
