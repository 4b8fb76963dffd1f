//! Indexes that find the matching rules without testing each rule.

use std::collections::HashMap;

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sayso_base::{OutsidePath, WsPath};

use crate::builtin_rules::fold_case;
use crate::command_pattern::{CommandPattern, base_name};

/// Index of a rule in [`Policy::rules`](crate::Policy).
pub(super) type RuleNumber = u32;

/// Treatment of case in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseMatching {
    Exact,
    /// Ignores case, so that a denial holds on a case-insensitive file system.
    Folded,
}

/// Rules by patterns over paths or names.
#[derive(Clone, Debug, Default)]
struct Globs {
    set: GlobSet,
    /// Rule of each pattern of `set`.
    owners: Vec<RuleNumber>,
    /// Patterns without wildcards, which match a path and everything below it.
    trees: HashMap<String, Vec<RuleNumber>>,
}

impl Globs {
    fn find(&self, text: &str, found: &mut Vec<RuleNumber>) {
        if !self.owners.is_empty() {
            let mut matched = Vec::new();
            self.set.matches_candidate_into(&Candidate::new(text), &mut matched);
            found.extend(matched.into_iter().map(|at| self.owners[at]));
        }
        if self.trees.is_empty() {
            return;
        }
        let mut directory = Some(text);
        while let Some(path) = directory {
            found.extend(self.trees.get(path).into_iter().flatten());
            directory = match path.rsplit_once('/') {
                Some((parent, _)) => Some(parent),
                None if !path.is_empty() => Some(""),
                None => None,
            };
        }
    }
}

#[derive(Default)]
struct GlobsBuilder {
    globs: Vec<Glob>,
    owners: Vec<RuleNumber>,
    trees: HashMap<String, Vec<RuleNumber>>,
}

impl GlobsBuilder {
    fn glob(&mut self, glob: Glob, rule: RuleNumber) {
        self.globs.push(glob);
        self.owners.push(rule);
    }

    fn build(self) -> Result<Globs, String> {
        let mut set = GlobSetBuilder::new();
        for glob in self.globs {
            set.add(glob);
        }
        let set = set.build().map_err(|error| error.to_string())?;
        Ok(Globs { set, owners: self.owners, trees: self.trees })
    }
}

/// Rules about paths or names.
#[derive(Clone, Debug, Default)]
pub(super) struct TextIndex {
    exact: Globs,
    folded: Globs,
    /// Literal prefixes of deny patterns, case-folded and sorted. They find denied paths below a directory that an action affects
    /// as a whole.
    below: Vec<(String, RuleNumber)>,
}

/// Collects patterns for [`TextIndex`].
#[derive(Default)]
pub(super) struct TextIndexBuilder {
    exact: GlobsBuilder,
    folded: GlobsBuilder,
    below: Vec<(String, RuleNumber)>,
}

impl TextIndexBuilder {
    /// Adds a pattern over paths, as [`PathGlobs`](sayso_base::PathGlobs) reads them.
    pub(super) fn path(&mut self, pattern: &str, rule: RuleNumber, case: CaseMatching) -> Result<(), String> {
        // Parsing as a path rejects `..`, which could never match.
        let path = WsPath::parse(pattern).map_err(|error| error.to_string())?;
        self.add_path(path.as_str(), rule, case)
    }

    /// Adds a pattern over absolute paths.
    pub(super) fn outside(&mut self, pattern: &str, rule: RuleNumber, case: CaseMatching) -> Result<(), String> {
        let path = OutsidePath::parse(pattern).map_err(|error| error.to_string())?;
        self.add_path(path.below_root(), rule, case)
    }

    fn add_path(&mut self, path: &str, rule: RuleNumber, case: CaseMatching) -> Result<(), String> {
        let wild = |text: &str| text.contains(['*', '?', '[', '{']);
        let glob = |text: &str| {
            GlobBuilder::new(text).literal_separator(true).build().map_err(|error| error.kind().to_string())
        };
        let add = |builder: &mut GlobsBuilder, text: &str| -> Result<(), String> {
            if !wild(text) {
                builder.trees.entry(text.to_owned()).or_default().push(rule);
                return Ok(());
            }
            builder.glob(glob(text)?, rule);
            // A denial of everything in a directory also denies removing the directory.
            if let (CaseMatching::Folded, Some(directory)) = (case, text.strip_suffix("/**")) {
                builder.glob(glob(directory)?, rule);
            }
            Ok(())
        };
        add(&mut self.exact, path)?;
        if case == CaseMatching::Folded {
            let folded = fold_case(path);
            add(&mut self.folded, &folded)?;
            let names: Vec<&str> = folded.split('/').take_while(|name| !wild(name)).collect();
            self.below.push((names.join("/"), rule));
        }
        Ok(())
    }

    /// Adds a pattern over names; `*` matches any text.
    pub(super) fn name(&mut self, pattern: &str, rule: RuleNumber, case: CaseMatching) -> Result<(), String> {
        if pattern.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        let glob = |text: &str| {
            let escaped: Vec<String> = text.split('*').map(globset::escape).collect();
            Glob::new(&escaped.join("*")).map_err(|error| error.kind().to_string())
        };
        self.exact.glob(glob(pattern)?, rule);
        if case == CaseMatching::Folded {
            self.folded.glob(glob(&fold_case(pattern))?, rule);
        }
        Ok(())
    }

    pub(super) fn build(mut self) -> Result<TextIndex, String> {
        self.below.sort_unstable();
        Ok(TextIndex { exact: self.exact.build()?, folded: self.folded.build()?, below: self.below })
    }
}

impl TextIndex {
    /// Returns the matching rules in order.
    pub(super) fn find(&self, text: &str) -> Vec<RuleNumber> {
        let mut found = Vec::new();
        self.exact.find(text, &mut found);
        if !self.folded.owners.is_empty() || !self.folded.trees.is_empty() {
            self.folded.find(&fold_case(text), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the rules that deny a path below `directory`.
    pub(super) fn below(&self, directory: &str) -> impl Iterator<Item = RuleNumber> {
        let start = format!("{}/", fold_case(directory));
        let from = self.below.partition_point(|(path, _)| path.as_str() < start.as_str());
        self.below[from..].iter().take_while(move |(path, _)| path.starts_with(&start)).map(|(_, rule)| *rule)
    }
}

/// Rules about commands, indexed by their first word.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandIndex {
    patterns: Vec<(CommandPattern, RuleNumber)>,
    /// Allow and later rules, by the program as written.
    allowing: HashMap<String, Vec<usize>>,
    /// Ask and deny rules, by the lower-case base name of the program.
    restricting: HashMap<String, Vec<usize>>,
    /// Rules that begin with `*`.
    any_allowing: Vec<usize>,
    any_restricting: Vec<usize>,
}

impl CommandIndex {
    pub(super) fn add_allowing(&mut self, words: CommandPattern, rule: RuleNumber) {
        let at = self.patterns.len();
        match words.program() {
            Some(program) => self.allowing.entry(program.to_owned()).or_default().push(at),
            None => self.any_allowing.push(at),
        }
        self.patterns.push((words, rule));
    }

    pub(super) fn add_restricting(&mut self, words: CommandPattern, rule: RuleNumber) {
        let at = self.patterns.len();
        match words.program() {
            Some(program) => self.restricting.entry(base_name(program).to_ascii_lowercase()).or_default().push(at),
            None => self.any_restricting.push(at),
        }
        self.patterns.push((words, rule));
    }

    /// Returns the allow patterns that may match one of these programs.
    pub(super) fn allowing_for<'a>(
        &'a self,
        programs: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a (CommandPattern, RuleNumber)> {
        let known = programs.filter_map(|program| self.allowing.get(program)).flatten();
        known.chain(&self.any_allowing).map(|&at| &self.patterns[at])
    }

    /// Returns the ask and deny patterns that may match one of these programs.
    pub(super) fn restricting_for<'a>(
        &'a self,
        programs: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a (CommandPattern, RuleNumber)> {
        let known =
            programs.filter_map(|program| self.restricting.get(&base_name(program).to_ascii_lowercase())).flatten();
        known.chain(&self.any_restricting).map(|&at| &self.patterns[at])
    }

    /// Returns the ask and deny patterns that name this program.
    pub(super) fn restricting_named(&self, program: &str) -> impl Iterator<Item = &(CommandPattern, RuleNumber)> {
        let known = self.restricting.get(&base_name(program).to_ascii_lowercase()).into_iter().flatten();
        known.map(|&at| &self.patterns[at])
    }

    pub(super) fn has_no_restricting(&self) -> bool {
        self.restricting.is_empty()
    }

    /// Returns all allow patterns.
    pub(super) fn all_allowing(&self) -> impl Iterator<Item = &(CommandPattern, RuleNumber)> {
        self.allowing.values().flatten().chain(&self.any_allowing).map(|&at| &self.patterns[at])
    }
}
