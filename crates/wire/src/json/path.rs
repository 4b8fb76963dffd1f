//! Where a value is now, for people: `messages[3].content[1].text`. And as a JSON Pointer, for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use thiserror::Error;

use super::document::{Document, Presence, Target};
use super::tape::Kind;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'p> {
    /// To a member of an object.
    Member(Cow<'p, str>),
    /// To a member that another of the same name, further on, hides from those who read the object.
    Hidden(Cow<'p, str>, usize),
    /// To an element of a list.
    Element(usize),
}

/// Nothing is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoSuchPath {
    /// It is not written as a path.
    #[error("`{path}` is not a path: {what} at character {at}")]
    Malformed {
        /// The path.
        path: String,
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// It leads nowhere.
    #[error("nothing is at `{path}`: `{reached}` has no {missing}")]
    Nothing {
        /// The path.
        path: String,
        /// How far it leads.
        reached: String,
        /// What is not there.
        missing: String,
    },
}

impl NoSuchPath {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "write it as messages[3].content[1].text",
            Self::Nothing { .. } => "paths count from 0, without what was deleted; list the sections to see them",
        }
    }
}

fn is_plain(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == '$');
    begins && characters.all(|character| character.is_ascii_alphanumeric() || "_-$".contains(character))
}

/// Reads a path.
pub(super) fn parse(path: &str) -> Result<Vec<Step<'_>>, NoSuchPath> {
    let wrong = |rest: &str, what| NoSuchPath::Malformed {
        path: path.to_owned(),
        what,
        at: path[..path.len() - rest.len()].chars().count() + 1,
    };
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            if inner.starts_with('"') {
                // A name in quotes, as JSON writes it.
                let mut values = serde_json::Deserializer::from_str(inner).into_iter::<String>();
                let Some(Ok(name)) = values.next() else { return Err(wrong(rest, "no name in quotes")) };
                let after = &inner[values.byte_offset()..];
                let (number, after) = after.split_once(']').ok_or_else(|| wrong(after, "no `]`"))?;
                steps.push(match number.strip_prefix('#') {
                    Some(number) => Step::Hidden(name.into(), number.parse().map_err(|_| wrong(inner, "no number"))?),
                    None if number.is_empty() => Step::Member(Cow::Owned(name)),
                    None => return Err(wrong(inner, "something after a name")),
                });
                rest = after;
            } else {
                let (digits, after) = inner.split_once(']').ok_or_else(|| wrong(rest, "no `]`"))?;
                steps.push(Step::Element(digits.parse().map_err(|_| wrong(inner, "no number"))?));
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
        steps.push(Step::Member(Cow::Borrowed(&rest[..end])));
        rest = &rest[end..];
    }
    Ok(steps)
}

impl Document {
    /// The way to a value, from the whole on. What was taken out has none but where it would be.
    pub fn steps(&self, target: Target) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut target = target;
        while let Some(parent) = self.parent(target) {
            let key = self.key(target).filter(|_| self.kind(parent) == Kind::Object);
            steps.push(
                key.map_or_else(|| self.element_step(parent, target), |key| self.member_step(parent, target, key)),
            );
            target = parent;
        }
        steps.reverse();
        steps
    }

    fn element_step(&self, list: Target, target: Target) -> Step<'_> {
        let before = self.all_children(list).take_while(|child| child.value != target);
        Step::Element(before.filter(|child| child.presence == Presence::Here).count())
    }

    fn member_step<'d>(&'d self, object: Target, target: Target, key: Cow<'d, str>) -> Step<'d> {
        let twins = || self.children(object).filter(|child| self.key(*child).as_ref() == Some(&key));
        match twins().position(|child| child == target) {
            Some(number) if twins().nth(number + 1).is_some() => Step::Hidden(key, number),
            _ => Step::Member(key),
        }
    }

    /// Where a value is now, for people.
    pub fn path(&self, target: Target) -> String {
        written(&self.steps(target))
    }

    /// The same as a JSON Pointer.
    pub fn pointer(&self, target: Target) -> String {
        let mut pointer = String::new();
        for step in self.steps(target) {
            match step {
                Step::Member(name) | Step::Hidden(name, _) => {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                Step::Element(index) => {
                    let _ = write!(pointer, "/{index}");
                }
            }
        }
        pointer
    }

    /// The value at a path.
    pub fn at(&self, path: &str) -> Result<Target, NoSuchPath> {
        self.follow(path, &parse(path)?)
    }

    /// The value that steps lead to.
    pub(crate) fn follow(&self, path: &str, steps: &[Step<'_>]) -> Result<Target, NoSuchPath> {
        let mut target = self.root();
        for step in steps {
            let found = match step {
                Step::Member(name) => self.member(target, name),
                Step::Hidden(name, number) => {
                    self.children(target).filter(|child| self.key(*child).as_ref() == Some(name)).nth(*number)
                }
                Step::Element(index) if self.kind(target) == Kind::Array => self.children(target).nth(*index),
                Step::Element(_) => None,
            };
            target = found.ok_or_else(|| NoSuchPath::Nothing {
                path: path.to_owned(),
                reached: if target == self.root() { "the request".to_owned() } else { self.path(target) },
                missing: match step {
                    Step::Member(name) | Step::Hidden(name, _) => format!("`{name}`"),
                    Step::Element(index) => format!("element {index}"),
                },
            })?;
        }
        Ok(target)
    }

    /// The steps of a JSON Pointer, the last of which may lead to something that is not there yet.
    pub(crate) fn pointer_steps(&self, pointer: &str) -> Option<Vec<Step<'static>>> {
        if pointer.is_empty() {
            return Some(Vec::new());
        }
        let mut steps = Vec::new();
        let mut target = Some(self.root());
        for word in pointer.strip_prefix('/')?.split('/') {
            let name = word.replace("~1", "/").replace("~0", "~");
            let array = target.is_some_and(|target| self.kind(target) == Kind::Array);
            let step = if array {
                let index =
                    if name == "-" { target.map(|array| self.children(array).count()) } else { name.parse().ok() };
                Step::Element(index?)
            } else {
                Step::Member(Cow::Owned(name))
            };
            target = target.and_then(|target| match &step {
                Step::Member(name) | Step::Hidden(name, _) => self.member(target, name),
                Step::Element(index) => self.children(target).nth(*index),
            });
            steps.push(step);
        }
        Some(steps)
    }
}

/// Steps as people write them.
pub(super) fn written(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Member(name) if is_plain(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Member(name) => {
                // A string always has a JSON form.
                let quoted = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(path, "[{quoted}]");
            }
            Step::Hidden(name, number) => {
                let quoted = serde_json::to_string(name).unwrap_or_default();
                let _ = write!(path, "[{quoted}#{number}]");
            }
            Step::Element(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}
