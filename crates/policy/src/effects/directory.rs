//! Resolves the paths in a command's words, following `cd` through the script.

use std::collections::BTreeMap;

use sayso_base::WsPath;
use sayso_shell::{Certainty, Flow, Script, SimpleCommand, Word};

use super::effect::PathTarget;

/// Working directory of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Directory {
    /// An absolute path.
    At(String),
    Unknown,
}

/// Working directories of all shells of a script. Commands are visited in order.
pub(super) struct Directories<'s> {
    root: String,
    shells: &'s [usize],
    at: BTreeMap<usize, Directory>,
}

impl<'s> Directories<'s> {
    pub(super) fn new(script: &'s Script, root: &str, start: &WsPath) -> Self {
        let root = normalize(root);
        let start = if start.is_root() { root.clone() } else { normalize(&format!("{root}/{}", start.as_str())) };
        Self { root, shells: &script.shells, at: BTreeMap::from([(0, Directory::At(start))]) }
    }

    /// Returns the directory of a shell, which starts in its parent's directory.
    fn directory_of(&mut self, shell: usize) -> Directory {
        let mut above = Vec::new();
        let mut current = shell;
        let found = loop {
            if let Some(found) = self.at.get(&current) {
                break found.clone();
            }
            above.push(current);
            match self.shells.get(current) {
                Some(parent) if *parent != current && above.len() <= self.shells.len() => current = *parent,
                _ => break Directory::Unknown,
            }
        };
        for shell in above {
            self.at.insert(shell, found.clone());
        }
        found
    }

    /// Resolves a word of a command as a path.
    pub(super) fn target(&mut self, command: &SimpleCommand, word: &Word) -> PathTarget {
        let directory = self.directory_of(command.shell);
        self.resolve(&directory, word)
    }

    /// Returns the working directory of a command.
    pub(super) fn current_directory(&mut self, command: &SimpleCommand) -> PathTarget {
        self.target(command, &Word::literal("."))
    }

    fn resolve(&self, directory: &Directory, word: &Word) -> PathTarget {
        let text = word.text.as_str();
        let known = match word.certainty {
            Certainty::Literal => text,
            // The part before the first wildcard is known.
            Certainty::Pattern if text.starts_with('~') => return PathTarget::Outside(text.to_owned()),
            Certainty::Pattern => &text[..text.find(['*', '?', '[', '{']).unwrap_or(text.len())],
            Certainty::Unknown => return PathTarget::Unknown(text.to_owned()),
        };
        let path = match directory {
            _ if known.starts_with('/') => normalize(known),
            Directory::At(directory) => normalize(&format!("{directory}/{known}")),
            Directory::Unknown => return PathTarget::Unknown(text.to_owned()),
        };
        let beneath = if self.root == "/" { path.strip_prefix('/') } else { path.strip_prefix(&self.root) };
        let inside = match beneath {
            Some("") => Some(WsPath::root()),
            Some(rest) if self.root == "/" || rest.starts_with('/') => WsPath::parse(rest.trim_start_matches('/')).ok(),
            _ => None,
        };
        match (inside, word.certainty) {
            (Some(inside), Certainty::Literal) => PathTarget::Inside(inside),
            (Some(_), _) => PathTarget::Unknown(text.to_owned()),
            (None, Certainty::Literal) => PathTarget::Outside(path),
            (None, _) => PathTarget::Outside(text.to_owned()),
        }
    }

    /// Applies a `cd` to its shell and returns the new directory; `None` for other commands.
    pub(super) fn follow(&mut self, command: &SimpleCommand) -> Option<PathTarget> {
        let program = command.program()?;
        if !matches!(program, "cd" | "pushd" | "popd" | "chdir") {
            return None;
        }
        let operand = command.words[1..].iter().find(|word| !word.text.starts_with('-'));
        let home = Word { text: "~".to_owned(), certainty: Certainty::Pattern };
        let is_back = command.words[1..].iter().any(|word| word.text == "-");
        let target = if program == "popd" || is_back { None } else { Some(operand.unwrap_or(&home)) };
        let directory = self.directory_of(command.shell);
        let resolved =
            target.map_or_else(|| PathTarget::Unknown("-".to_owned()), |word| self.resolve(&directory, word));
        let next = match &resolved {
            _ if command.flow == Flow::Conditional => Directory::Unknown,
            PathTarget::Inside(path) if path.is_root() => Directory::At(self.root.clone()),
            PathTarget::Inside(path) => Directory::At(normalize(&format!("{}/{}", self.root, path.as_str()))),
            PathTarget::Outside(path) if path.starts_with('/') => Directory::At(path.clone()),
            _ => Directory::Unknown,
        };
        self.at.insert(command.shell, next);
        Some(resolved)
    }
}

/// Removes `.`, `..` and double slashes from an absolute path.
pub(crate) fn normalize(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}
