//! The preview of a call of a tool: its arguments beside what its schema says about them.

use std::fmt::{self, Display, Formatter};

use sayso_base::ContentHash;
use sayso_shell::visible;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::delegation::DelegationPreview;
use super::guess::{self, GuessedFrom, Touch, guess};
use super::named;
use crate::intent::Proposal;

/// What a call of a tool says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPreview {
    /// The tool.
    pub name: String,
    /// Its arguments, those first that the schema knows, in its order.
    pub arguments: Vec<ShownArgument>,
    /// Where the arguments are not what the schema asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ToolProblem>,
    /// The change to files that the arguments look like, so that it can be shown as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Proposal>,
    /// What that change was guessed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed_from: Option<GuessedFrom>,
    /// The work that is handed to another agent, if that is what the tool does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationPreview>,
    /// Every path that the arguments name, as they name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What the tool does with them, as its name says.
    pub touch: Touch,
    /// The command that it hands to a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// An argument and what the schema says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownArgument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Its type in the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its description in the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the schema asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// Where arguments are not what the schema asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum ToolProblem {
    /// The arguments are not an object.
    NotAnObject,
    /// An argument is not there.
    Missing {
        /// Which.
        name: String,
    },
    /// The schema does not know an argument.
    Unknown {
        /// Which.
        name: String,
    },
    /// An argument has another type.
    WrongType {
        /// Which.
        name: String,
        /// What the schema asks for.
        expected: String,
        /// What it is.
        found: String,
    },
    /// An argument is none of the values that the schema lists.
    NotListed {
        /// Which.
        name: String,
    },
}

impl Display for ToolProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("the arguments are not an object"),
            Self::Missing { name } => write!(f, "`{}` is missing", visible(name)),
            Self::Unknown { name } => write!(f, "`{}` is not an argument of this tool", visible(name)),
            Self::WrongType { name, expected, found } => {
                write!(f, "`{}` is {found} and should be {expected}", visible(name))
            }
            Self::NotListed { name } => {
                write!(f, "`{}` is none of the values that the tool takes", visible(name))
            }
        }
    }
}

impl ToolPreview {
    /// Looks at a call of a tool.
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
        let guessed = if delegation.is_some() { None } else { guess(name, arguments) };
        let (changes, guessed_from) = guessed.unzip();
        let (paths, touch, command) = (named::paths(arguments), guess::touch(name), named::command(name, arguments));
        Self {
            name: name.to_owned(),
            arguments: shown,
            problems,
            changes,
            guessed_from,
            delegation,
            paths,
            touch,
            command,
        }
    }

    /// The name of what would be called, to which a verdict is bound: the tool and its arguments.
    pub fn hash(&self) -> ContentHash {
        let arguments: Vec<(&str, String)> =
            self.arguments.iter().map(|argument| (argument.name.as_str(), argument.value.to_string())).collect();
        ContentHash::of(format!("tool {:?} {arguments:?}", self.name).as_bytes())
    }
}

/// The schema of the arguments, which tools wrap in different ways.
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

/// The types that a schema allows; none if it does not say.
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
