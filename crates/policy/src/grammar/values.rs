//! Effects of operands and of the values of options, by their kind.

use sayso_shell::{Certainty, Word};

use super::code;
use super::finding::{FindingKind, NestedCommand, Unclear};
use super::reading::{Reader, is_option};
use super::vocabulary::{Kind, Spec, Style, Trait};

impl Reader<'_> {
    /// Notes what an operand or the value of an option does.
    pub(super) fn value(&mut self, at: usize, label: &str, spec: Spec, word: &Word) {
        self.effects(at, label, spec.traits);
        match spec.kind {
            Kind::Flag | Kind::Text => {}
            Kind::Variable => self.variable(at, label, word),
            Kind::Read | Kind::Write | Kind::Delete | Kind::Permissions | Kind::Source | Kind::Target => {
                self.path(at, label, spec.kind, word);
            }
            Kind::Project | Kind::Argument => self.project(at, label, spec.kind, word),
            Kind::Program => self.find(at, label, FindingKind::Runs(NestedCommand::Program(word.clone()))),
            Kind::Script => self.find(at, label, FindingKind::Runs(NestedCommand::Script(word.clone()))),
            Kind::Command | Kind::Remote | Kind::Module => self.hand_over(spec.kind, at, word),
            Kind::Code => self.find(at, label, FindingKind::Effect(Trait::Code)),
            Kind::Sed | Kind::Awk => self.code(at, label, spec.kind, word),
            Kind::Commit | Kind::Refspec => self.revision(at, label, spec.kind, word),
            Kind::Placeholder => {
                if word.text != "{}" {
                    self.unclear(at, label, Unclear::Operand);
                }
            }
            Kind::MakeOperand => {
                if word.text.contains('=') {
                    self.unclear(at, label, Unclear::Variable);
                }
            }
            Kind::Passed => self.passed(at, word),
            Kind::DdOperand => self.dd(at, word),
        }
    }

    fn path(&mut self, at: usize, label: &str, kind: Kind, word: &Word) {
        // An option's value is never edited in place; the archive of tar is settled at the end.
        let is_operand = label == word.text && self.grammar.style != Style::Tar;
        let in_place = is_operand && self.given & Trait::InPlace.bit() != 0;
        let recursive = self.given & Trait::Recursive.bit() != 0;
        let word = word.clone();
        let what = match kind {
            Kind::Source | Kind::Target if is_remote(&word) => FindingKind::Effect(Trait::Network),
            Kind::Write | Kind::Target => FindingKind::Writes(word),
            Kind::Delete => FindingKind::Deletes { word, recursive },
            Kind::Permissions => FindingKind::Permissions(word),
            _ if in_place => FindingKind::Writes(word),
            _ => FindingKind::Reads(word),
        };
        self.find(at, label, what);
    }

    /// A path or an argument of code that is run.
    fn project(&mut self, at: usize, label: &str, kind: Kind, word: &Word) {
        if kind == Kind::Argument && is_option(&word.text) {
            self.unclear(at, label, Unclear::Option);
        } else if leads_out(word) {
            self.unclear(at, label, Unclear::Module);
        } else {
            self.find(at, label, FindingKind::Reads(word.clone()));
        }
    }

    fn code(&mut self, at: usize, label: &str, kind: Kind, word: &Word) {
        match kind {
            Kind::Sed if code::sed_is_harmless(word) => {}
            Kind::Awk if code::awk_is_harmless(word) => {}
            Kind::Awk if code::awk_runs(word) => self.find(at, label, FindingKind::Effect(Trait::Code)),
            _ => self.unclear(at, label, Unclear::Script),
        }
    }

    fn revision(&mut self, at: usize, label: &str, kind: Kind, word: &Word) {
        let is_tree = kind == Kind::Commit && matches!(word.text.as_str(), "." | "./" | ":/");
        if is_tree {
            self.find(at, label, FindingKind::Writes(word.clone()));
        }
        if is_tree || (kind == Kind::Refspec && word.text.starts_with(['+', ':'])) {
            self.find(at, label, FindingKind::Effect(Trait::History));
        }
    }

    /// An option of the same verb that stands behind `--`, or a word between such options.
    fn passed(&mut self, at: usize, word: &Word) {
        let name = word.text.split('=').next().unwrap_or_default();
        let letter = word.text.get(..2).unwrap_or_default();
        match self.verb.exact(name).or_else(|| self.verb.exact(letter)) {
            _ if word.certainty != Certainty::Literal => self.unclear(at, &word.text, Unclear::MayBeOption),
            _ if !is_option(&word.text) => {}
            Some(option) => self.effects(at, name, option.traits),
            None => self.unclear(at, &word.text, Unclear::Option),
        }
    }

    fn variable(&mut self, at: usize, label: &str, word: &Word) {
        let name = word.text.split('=').next().unwrap_or_default();
        if !crate::environment::is_harmless(name) {
            self.unclear(at, label, Unclear::Variable);
        }
    }

    fn dd(&mut self, at: usize, word: &Word) {
        const SETTINGS: &[&str] =
            &["bs", "ibs", "obs", "cbs", "count", "skip", "seek", "conv", "status", "iflag", "oflag"];
        let path = |text: &str| Word { text: text.to_owned(), certainty: word.certainty };
        match word.text.split_once('=') {
            Some(("of", target)) => self.find(at, "of", FindingKind::Writes(path(target))),
            Some(("if", source)) => self.find(at, "if", FindingKind::Reads(path(source))),
            Some((name, _)) if SETTINGS.contains(&name) => {}
            _ => self.unclear(at, &word.text, Unclear::Operand),
        }
    }
}

/// `true` for a path that may lead out of the workspace, and for a file of arguments.
fn leads_out(word: &Word) -> bool {
    let text = word.text.as_str();
    word.certainty == Certainty::Unknown
        || text.starts_with(['/', '~', '@'])
        || text.split('/').any(|name| name == "..")
}

/// `true` for `host:path` and for addresses.
fn is_remote(word: &Word) -> bool {
    word.text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}
