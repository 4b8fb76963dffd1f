//! Parsing of arguments, and their JSON schemas.

use sayso_review::ErrorKind;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;

/// Parses arguments. The error names the invalid field.
pub(crate) fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    if !arguments.is_object() {
        return Err(invalid(format!("the arguments are {}, not a JSON object", kind_of(arguments))));
    }
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let (field, reason) = (error.path().to_string(), error.inner().to_string());
        // The path `.` means the object itself: a field is missing or unknown, and the reason names it.
        if field == "." { invalid(reason) } else { invalid(format!("`{field}`: {reason}")) }
    })
}

pub(crate) fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::InvalidArgs, message)
}

/// Returns the JSON schema of a type of arguments, in one piece: not every model API follows references.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type tells a model nothing.
    schema.remove("title");
    schema.to_value()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
