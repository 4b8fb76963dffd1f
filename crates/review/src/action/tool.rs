//! The preview of a tool call: its arguments with their schema.

use std::fmt::{self, Display, Formatter};

use sayso_base::ContentHash;
use sayso_shell::escape_unprintable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::argument_paths;
use super::delegation::DelegationPreview;
use super::infer_changes::{self, FileAccess, GuessedFrom, infer_changes};
use crate::intent::Proposal;

/// A tool call with everything inferred from its name and arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPreview {
    pub name: String,
    /// Arguments: first the arguments in the schema, in its order, then all others.
    pub arguments: Vec<ShownArgument>,
    /// Deviations from the schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ToolProblem>,
    /// File change described by the arguments, for display as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Proposal>,
    /// Arguments from which the change was inferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed_from: Option<GuessedFrom>,
    /// Work delegated to a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationPreview>,
    /// All paths in the arguments, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Kind of access to these paths, inferred from the tool's name.
    pub access: FileAccess,
    /// Command that the tool passes to a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// An argument with its description in the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownArgument {
    pub name: String,
    pub value: Value,
    /// Type in the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Description in the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `true` if the schema requires it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// A deviation of the arguments from the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum ToolProblem {
    NotAnObject,
    /// A required argument is missing.
    Missing {
        name: String,
    },
    /// An argument is not in the schema.
    Unknown {
        name: String,
    },
    /// An argument has the wrong type.
    WrongType {
        name: String,
        /// Type in the schema.
        expected: String,
        found: String,
    },
    /// An argument is not one of the values listed in the schema.
    NotListed {
        name: String,
    },
}

impl Display for ToolProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("the arguments are not an object"),
            Self::Missing { name } => write!(f, "`{}` is missing", escape_unprintable(name)),
            Self::Unknown { name } => write!(f, "`{}` is not an argument of this tool", escape_unprintable(name)),
            Self::WrongType { name, expected, found } => {
                write!(f, "`{}` is {found} and should be {expected}", escape_unprintable(name))
            }
            Self::NotListed { name } => {
                write!(f, "`{}` is none of the values that the tool takes", escape_unprintable(name))
            }
        }
    }
}

impl ToolPreview {
    /// Analyzes a tool call.
    pub fn of(name: &str, arguments: &Value, schema: Option<&Value>) -> Self {
        let schema = schema.and_then(parameters);
        let empty = Map::new();
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object()).unwrap_or(&empty);
        let required: Vec<&str> = schema
            .and_then(|schema| schema.get("required")?.as_array())
            .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
        let given = arguments.as_object().unwrap_or(&empty);
        let mut problems = Vec::new();
        let mut shown = Vec::new();
        if !arguments.is_object() {
            if schema.is_some() {
                problems.push(ToolProblem::NotAnObject);
            }
            shown.push(show("", arguments, None, &required));
        }
        for (name, about) in properties {
            if let Some(value) = given.get(name) {
                problems.extend(mismatch(name, value, about));
                shown.push(show(name, value, Some(about), &required));
            }
        }
        let missing = required.iter().filter(|name| !given.contains_key(**name));
        problems.extend(missing.map(|name| ToolProblem::Missing { name: (*name).to_owned() }));
        let takes_others = schema.and_then(|schema| schema.get("additionalProperties"));
        let is_open = takes_others.is_some_and(|others| *others != Value::Bool(false));
        for (name, value) in given.iter().filter(|(name, _)| !properties.contains_key(*name)) {
            shown.push(show(name, value, None, &required));
            if schema.is_some() && !is_open {
                problems.push(ToolProblem::Unknown { name: name.clone() });
            }
        }
        let delegation = DelegationPreview::of(name, arguments);
        let guessed = if delegation.is_some() { None } else { infer_changes(name, arguments) };
        let (changes, guessed_from) = guessed.unzip();
        let (paths, access, command) = (
            argument_paths::paths(arguments),
            infer_changes::file_access(name),
            argument_paths::command(name, arguments),
        );
        Self {
            name: name.to_owned(),
            arguments: shown,
            problems,
            changes,
            guessed_from,
            delegation,
            paths,
            access,
            command,
        }
    }

    /// Returns the hash that a verdict must carry. It covers the tool and its arguments.
    pub fn hash(&self) -> ContentHash {
        let arguments: Vec<(&str, String)> =
            self.arguments.iter().map(|argument| (argument.name.as_str(), argument.value.to_string())).collect();
        ContentHash::of(format!("tool {:?} {arguments:?}", self.name).as_bytes())
    }
}

/// Returns the schema of the arguments, which tools wrap in different ways.
fn parameters(schema: &Value) -> Option<&Value> {
    if schema.get("properties").is_some()
        || schema.get("type").is_some_and(Value::is_string) && schema.get("function").is_none()
    {
        return Some(schema);
    }
    ["input_schema", "inputSchema", "parameters", "parametersJsonSchema"]
        .iter()
        .find_map(|key| schema.get(key))
        .or_else(|| schema.get("function")?.get("parameters"))
}

fn show(name: &str, value: &Value, about: Option<&Value>, required: &[&str]) -> ShownArgument {
    let description = about.and_then(|about| about.get("description")?.as_str()).map(str::to_owned);
    ShownArgument {
        name: name.to_owned(),
        value: value.clone(),
        kind: about.map(kinds).filter(|kinds| !kinds.is_empty()).map(|kinds| kinds.join(" or ")),
        description,
        required: required.contains(&name),
    }
}

/// Returns the types that a schema allows; empty if it does not restrict them.
fn kinds(about: &Value) -> Vec<String> {
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| about.get(key)?.as_array());
    match (about.get("type"), alternatives) {
        (Some(Value::String(kind)), _) => vec![kind.to_lowercase()],
        (Some(Value::Array(kinds)), _) => kinds.iter().filter_map(Value::as_str).map(str::to_lowercase).collect(),
        (_, Some(alternatives)) => {
            let each: Vec<&str> =
                alternatives.iter().filter_map(|about| about.get("type").and_then(Value::as_str)).collect();
            if each.len() == alternatives.len() {
                each.into_iter().map(str::to_lowercase).collect()
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn mismatch(name: &str, value: &Value, about: &Value) -> Option<ToolProblem> {
    let expected = kinds(about);
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = |kind: &String| kind == kind_of(value) || (kind == "integer" && is_whole);
    let is_nullable = value.is_null() && about.get("nullable") == Some(&Value::Bool(true));
    if !expected.is_empty() && !expected.iter().any(fits) && !is_nullable {
        let expected = expected.join(" or ");
        return Some(ToolProblem::WrongType { name: name.to_owned(), expected, found: kind_of(value).to_owned() });
    }
    let listed = about.get("enum")?.as_array()?;
    (!listed.contains(value)).then(|| ToolProblem::NotListed { name: name.to_owned() })
}
