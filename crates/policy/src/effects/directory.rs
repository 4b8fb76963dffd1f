//! Where the words of a command lead, following `cd` through the script.

use std::collections::BTreeMap;

use sayso_base::WsPath;
use sayso_shell::{Certainty, Course, Script, SimpleCommand, Word};

use super::effect::Place;

/// Where a shell is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Directory {
    /// An absolute path.
    At(String),
    /// Nobody can tell.
    Unknown,
}

/// The directories of all shells of a script, while its commands are gone through in order.
pub(super) struct Directories<'s> {
    root: String,
    shells: &'s [usize],
    at: BTreeMap<usize, Directory>,
}

impl<'s> Directories<'s> {
    pub(super) fn new(script: &'s Script, root: &str, start: &WsPath) -> Self {
        let root = normal(root);
        let start = if start.is_root() { root.clone() } else { normal(&format!("{root}/{}", start.as_str())) };
        Self { root, shells: &script.shells, at: BTreeMap::from([(0, Directory::At(start))]) }
    }

    /// Where a shell is; at first where the one is that started it.
    fn of(&mut self, shell: usize) -> Directory {
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

    /// Where a word of a command leads.
    pub(super) fn place(&mut self, command: &SimpleCommand, word: &Word) -> Place {
        let directory = self.of(command.shell);
        self.resolve(&directory, word)
    }

    /// The directory of a command.
    pub(super) fn here(&mut self, command: &SimpleCommand) -> Place {
        self.place(command, &Word::literal("."))
    }

    fn resolve(&self, directory: &Directory, word: &Word) -> Place {
        let text = word.text.as_str();
        let known = match word.certainty {
            Certainty::Literal => text,
            // As far as the first character that stands for others.
            Certainty::Pattern if text.starts_with('~') => return Place::Outside(text.to_owned()),
            Certainty::Pattern => &text[..text.find(['*', '?', '[', '{']).unwrap_or(text.len())],
            Certainty::Unknown => return Place::Unknown(text.to_owned()),
        };
        let path = match directory {
            _ if known.starts_with('/') => normal(known),
            Directory::At(directory) => normal(&format!("{directory}/{known}")),
            Directory::Unknown => return Place::Unknown(text.to_owned()),
        };
        let beneath = if self.root == "/" { path.strip_prefix('/') } else { path.strip_prefix(&self.root) };
        let inside = match beneath {
            Some("") => Some(WsPath::root()),
            Some(rest) if self.root == "/" || rest.starts_with('/') => WsPath::parse(rest.trim_start_matches('/')).ok(),
            _ => None,
        };
        match (inside, word.certainty) {
            (Some(inside), Certainty::Literal) => Place::Inside(inside),
            (Some(_), _) => Place::Unknown(text.to_owned()),
            (None, Certainty::Literal) => Place::Outside(path),
            (None, _) => Place::Outside(text.to_owned()),
        }
    }

    /// Follows a `cd`; gives where it leads.
    pub(super) fn follow(&mut self, command: &SimpleCommand) -> Option<Place> {
        let program = command.program()?;
        if !matches!(program, "cd" | "pushd" | "popd" | "chdir") {
            return None;
        }
        let operand = command.words[1..].iter().find(|word| !word.text.starts_with('-'));
        let home = Word { text: "~".to_owned(), certainty: Certainty::Pattern };
        let is_back = command.words[1..].iter().any(|word| word.text == "-");
        let target = if program == "popd" || is_back { None } else { Some(operand.unwrap_or(&home)) };
        let directory = self.of(command.shell);
        let place = target.map_or_else(|| Place::Unknown("-".to_owned()), |word| self.resolve(&directory, word));
        let next = match &place {
            _ if command.course == Course::Branch => Directory::Unknown,
            Place::Inside(path) if path.is_root() => Directory::At(self.root.clone()),
            Place::Inside(path) => Directory::At(normal(&format!("{}/{}", self.root, path.as_str()))),
            Place::Outside(path) if path.starts_with('/') => Directory::At(path.clone()),
            _ => Directory::Unknown,
        };
        self.at.insert(command.shell, next);
        Some(place)
    }
}

/// An absolute path without `.`, `..` and doubled slashes.
pub(crate) fn normal(path: &str) -> String {
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
