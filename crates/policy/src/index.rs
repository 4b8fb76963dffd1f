//! Finding the rules that are about something, without asking each.

use std::collections::HashMap;

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sayso_base::{OutsidePath, WsPath};

use crate::always::fold;
use crate::words::{Words, base_name};

/// A rule, by its place in the list of all rules.
pub(super) type Number = u32;

/// Which spelling a pattern is compared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As it is written.
    Exact,
    /// In whatever case as well: what is denied stays denied where the file system ignores case.
    Any,
}

/// Rules by patterns over texts.
#[derive(Clone, Debug, Default)]
struct Globs {
    set: GlobSet,
    /// The rule of each pattern.
    owners: Vec<Number>,
    /// Whole paths and what is below them.
    trees: HashMap<String, Vec<Number>>,
}

impl Globs {
    fn find(&self, text: &str, found: &mut Vec<Number>) {
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
    owners: Vec<Number>,
    trees: HashMap<String, Vec<Number>>,
}

impl GlobsBuilder {
    fn glob(&mut self, glob: Glob, rule: Number) {
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
pub(super) struct Texts {
    exact: Globs,
    folded: Globs,
    /// What patterns that deny begin with, folded and sorted: what lies below a directory that is touched as a whole.
    below: Vec<(String, Number)>,
}

/// Collects patterns for [`Texts`].
#[derive(Default)]
pub(super) struct TextsBuilder {
    exact: GlobsBuilder,
    folded: GlobsBuilder,
    below: Vec<(String, Number)>,
}

impl TextsBuilder {
    /// Adds a pattern over paths, as [`PathGlobs`](sayso_base::PathGlobs) reads them.
    pub(super) fn path(&mut self, pattern: &str, rule: Number, spelling: Spelling) -> Result<(), String> {
        // Checked as a path too: `..` in a pattern could only ever be a mistake.
        let path = WsPath::parse(pattern).map_err(|error| error.to_string())?;
        self.add_path(path.as_str(), rule, spelling)
    }

    /// Adds a pattern over absolute paths.
    pub(super) fn outside(&mut self, pattern: &str, rule: Number, spelling: Spelling) -> Result<(), String> {
        let path = OutsidePath::parse(pattern).map_err(|error| error.to_string())?;
        self.add_path(path.below_root(), rule, spelling)
    }

    fn add_path(&mut self, path: &str, rule: Number, spelling: Spelling) -> Result<(), String> {
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
            // Whoever denies what is in a directory denies doing away with the directory.
            if let (Spelling::Any, Some(directory)) = (spelling, text.strip_suffix("/**")) {
                builder.glob(glob(directory)?, rule);
            }
            Ok(())
        };
        add(&mut self.exact, path)?;
        if spelling == Spelling::Any {
            let folded = fold(path);
            add(&mut self.folded, &folded)?;
            let names: Vec<&str> = folded.split('/').take_while(|name| !wild(name)).collect();
            self.below.push((names.join("/"), rule));
        }
        Ok(())
    }

    /// Adds a pattern over names, in which `*` is any text.
    pub(super) fn name(&mut self, pattern: &str, rule: Number, spelling: Spelling) -> Result<(), String> {
        if pattern.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        let glob = |text: &str| {
            let escaped: Vec<String> = text.split('*').map(globset::escape).collect();
            Glob::new(&escaped.join("*")).map_err(|error| error.kind().to_string())
        };
        self.exact.glob(glob(pattern)?, rule);
        if spelling == Spelling::Any {
            self.folded.glob(glob(&fold(pattern))?, rule);
        }
        Ok(())
    }

    pub(super) fn build(mut self) -> Result<Texts, String> {
        self.below.sort_unstable();
        Ok(Texts { exact: self.exact.build()?, folded: self.folded.build()?, below: self.below })
    }
}

impl Texts {
    /// The rules that match, in order.
    pub(super) fn find(&self, text: &str) -> Vec<Number> {
        let mut found = Vec::new();
        self.exact.find(text, &mut found);
        if !self.folded.owners.is_empty() || !self.folded.trees.is_empty() {
            self.folded.find(&fold(text), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The rules that deny something below a directory, if it is one.
    pub(super) fn below(&self, directory: &str) -> impl Iterator<Item = Number> {
        let start = format!("{}/", fold(directory));
        let from = self.below.partition_point(|(path, _)| path.as_str() < start.as_str());
        self.below[from..].iter().take_while(move |(path, _)| path.starts_with(&start)).map(|(_, rule)| *rule)
    }
}

/// Rules about commands, by their first word.
#[derive(Clone, Debug, Default)]
pub(super) struct Commands {
    patterns: Vec<(Words, Number)>,
    /// Those that make milder, by the program as it is written.
    milder: HashMap<String, Vec<usize>>,
    /// Those that make stricter, by the last name of the program in lower case.
    stricter: HashMap<String, Vec<usize>>,
    /// Those about any program.
    any_milder: Vec<usize>,
    any_stricter: Vec<usize>,
}

impl Commands {
    pub(super) fn milder(&mut self, words: Words, rule: Number) {
        let at = self.patterns.len();
        match words.program() {
            Some(program) => self.milder.entry(program.to_owned()).or_default().push(at),
            None => self.any_milder.push(at),
        }
        self.patterns.push((words, rule));
    }

    pub(super) fn stricter(&mut self, words: Words, rule: Number) {
        let at = self.patterns.len();
        match words.program() {
            Some(program) => self.stricter.entry(base_name(program).to_ascii_lowercase()).or_default().push(at),
            None => self.any_stricter.push(at),
        }
        self.patterns.push((words, rule));
    }

    /// The patterns of milder rules that may be about one of these programs.
    pub(super) fn milder_about<'a>(
        &'a self,
        programs: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a (Words, Number)> {
        let known = programs.filter_map(|program| self.milder.get(program)).flatten();
        known.chain(&self.any_milder).map(|&at| &self.patterns[at])
    }

    /// The patterns of stricter rules that may be about one of these programs.
    pub(super) fn stricter_about<'a>(
        &'a self,
        programs: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a (Words, Number)> {
        let known =
            programs.filter_map(|program| self.stricter.get(&base_name(program).to_ascii_lowercase())).flatten();
        known.chain(&self.any_stricter).map(|&at| &self.patterns[at])
    }

    /// The patterns of stricter rules that name this program.
    pub(super) fn stricter_named(&self, program: &str) -> impl Iterator<Item = &(Words, Number)> {
        let known = self.stricter.get(&base_name(program).to_ascii_lowercase()).into_iter().flatten();
        known.map(|&at| &self.patterns[at])
    }

    pub(super) fn has_no_stricter(&self) -> bool {
        self.stricter.is_empty()
    }

    /// All patterns of milder rules.
    pub(super) fn all_milder(&self) -> impl Iterator<Item = &(Words, Number)> {
        self.milder.values().flatten().chain(&self.any_milder).map(|&at| &self.patterns[at])
    }
}
