//! Paths of values: `messages[3].content[1].text` for people, JSON Pointers for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use thiserror::Error;

use super::document::{Document, Presence, Target};
use super::tape::JsonKind;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep<'p> {
    /// A member of an object.
    Member(Cow<'p, str>),
    /// A member hidden by a later member of the same name, with its index among the duplicates.
    Shadowed(Cow<'p, str>, usize),
    Element(usize),
}

/// The reason why a path cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The syntax of the path is invalid.
    #[error("`{path}` is not a path: {what} at character {at}")]
    Malformed {
        path: String,
        /// Error in the syntax.
        what: &'static str,
        /// Offset of the error.
        at: usize,
    },
    /// The path leads to no value.
    #[error("nothing is at `{path}`: `{reached}` has no {missing}")]
    NotFound {
        path: String,
        /// Longest prefix that exists.
        reached: String,
        missing: String,
    },
}

impl PathError {
    /// Returns a hint on how to write the path.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "write it as messages[3].content[1].text",
            Self::NotFound { .. } => "paths count from 0, without what was deleted; list the sections to see them",
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == '$');
    begins && characters.all(|character| character.is_ascii_alphanumeric() || "_-$".contains(character))
}

/// Parses a path.
pub(super) fn parse(path: &str) -> Result<Vec<PathStep<'_>>, PathError> {
    let wrong = |rest: &str, what| PathError::Malformed {
        path: path.to_owned(),
        what,
        at: path[..path.len() - rest.len()].chars().count() + 1,
    };
    let mut steps: Vec<PathStep<'_>> = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            if inner.starts_with('"') {
                // A quoted name in JSON notation.
                let mut values = serde_json::Deserializer::from_str(inner).into_iter::<String>();
                let Some(Ok(name)) = values.next() else { return Err(wrong(rest, "no name in quotes")) };
                let after = &inner[values.byte_offset()..];
                let (number, after) = after.split_once(']').ok_or_else(|| wrong(after, "no `]`"))?;
                steps.push(match number.strip_prefix('#') {
                    Some(number) => {
                        PathStep::Shadowed(name.into(), number.parse().map_err(|_| wrong(inner, "no number"))?)
                    }
                    None if number.is_empty() => PathStep::Member(Cow::Owned(name)),
                    None => return Err(wrong(inner, "something after a name")),
                });
                rest = after;
            } else {
                let (digits, after) = inner.split_once(']').ok_or_else(|| wrong(rest, "no `]`"))?;
                steps.push(PathStep::Element(digits.parse().map_err(|_| wrong(inner, "no number"))?));
                rest = after;
            }
            continue;
        }
        if !steps.is_empty() {
            rest = rest.strip_prefix('.').ok_or_else(|| wrong(rest, "neither `.` nor `[`"))?;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 {
            return Err(wrong(rest, "no name"));
        }
        steps.push(PathStep::Member(Cow::Borrowed(&rest[..end])));
        rest = &rest[end..];
    }
    Ok(steps)
}

impl Document {
    /// Returns the steps from the root to a value. A deleted value has the path at which a restore would put it.
    pub fn steps(&self, target: Target) -> Vec<PathStep<'_>> {
        let mut steps = Vec::new();
        let mut target = target;
        while let Some(parent) = self.parent(target) {
            let key = self.key(target).filter(|_| self.kind(parent) == JsonKind::Object);
            steps.push(
                key.map_or_else(|| self.element_step(parent, target), |key| self.member_step(parent, target, key)),
            );
            target = parent;
        }
        steps.reverse();
        steps
    }

    fn element_step(&self, list: Target, target: Target) -> PathStep<'_> {
        let before = self.all_children(list).take_while(|child| child.value != target);
        PathStep::Element(before.filter(|child| child.presence == Presence::Present).count())
    }

    fn member_step<'d>(&'d self, object: Target, target: Target, key: Cow<'d, str>) -> PathStep<'d> {
        let twins = || self.children(object).filter(|child| self.key(*child).as_ref() == Some(&key));
        match twins().position(|child| child == target) {
            Some(number) if twins().nth(number + 1).is_some() => PathStep::Shadowed(key, number),
            _ => PathStep::Member(key),
        }
    }

    /// Returns the current path of a value.
    pub fn path(&self, target: Target) -> String {
        format_steps(&self.steps(target))
    }

    /// Returns the current JSON Pointer of a value.
    pub fn pointer(&self, target: Target) -> String {
        let mut pointer = String::new();
        for step in self.steps(target) {
            match step {
                PathStep::Member(name) | PathStep::Shadowed(name, _) => {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                PathStep::Element(index) => {
                    let _ = write!(pointer, "/{index}");
                }
            }
        }
        pointer
    }

    /// Returns the value at a path.
    pub fn resolve(&self, path: &str) -> Result<Target, PathError> {
        self.resolve_steps(path, &parse(path)?)
    }

    /// Returns the value at the end of the steps.
    pub(crate) fn resolve_steps(&self, path: &str, steps: &[PathStep<'_>]) -> Result<Target, PathError> {
        let mut target = self.root();
        for step in steps {
            let found = match step {
                PathStep::Member(name) => self.member(target, name),
                PathStep::Shadowed(name, number) => {
                    self.children(target).filter(|child| self.key(*child).as_ref() == Some(name)).nth(*number)
                }
                PathStep::Element(index) if self.kind(target) == JsonKind::Array => self.children(target).nth(*index),
                PathStep::Element(_) => None,
            };
            target = found.ok_or_else(|| PathError::NotFound {
                path: path.to_owned(),
                reached: if target == self.root() { "the request".to_owned() } else { self.path(target) },
                missing: match step {
                    PathStep::Member(name) | PathStep::Shadowed(name, _) => format!("`{name}`"),
                    PathStep::Element(index) => format!("element {index}"),
                },
            })?;
        }
        Ok(target)
    }

    /// Parses a JSON Pointer, whose last step may denote a value that does not exist yet.
    pub(crate) fn pointer_steps(&self, pointer: &str) -> Option<Vec<PathStep<'static>>> {
        if pointer.is_empty() {
            return Some(Vec::new());
        }
        let mut steps = Vec::new();
        let mut target = Some(self.root());
        for word in pointer.strip_prefix('/')?.split('/') {
            let name = word.replace("~1", "/").replace("~0", "~");
            let array = target.is_some_and(|target| self.kind(target) == JsonKind::Array);
            let step = if array {
                let index =
                    if name == "-" { target.map(|array| self.children(array).count()) } else { name.parse().ok() };
                PathStep::Element(index?)
            } else {
                PathStep::Member(Cow::Owned(name))
            };
            target = target.and_then(|target| match &step {
                PathStep::Member(name) | PathStep::Shadowed(name, _) => self.member(target, name),
                PathStep::Element(index) => self.children(target).nth(*index),
            });
            steps.push(step);
        }
        Some(steps)
    }
}

/// Formats steps as a path.
pub(super) fn format_steps(steps: &[PathStep<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            PathStep::Member(name) if is_identifier(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            PathStep::Member(name) => {
                // Serializing a string cannot fail.
                let quoted = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(path, "[{quoted}]");
            }
            PathStep::Shadowed(name, number) => {
                let quoted = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(path, "[{quoted}#{number}]");
            }
            PathStep::Element(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}
