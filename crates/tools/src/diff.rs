//! `Diff`: compares two files or two texts (seed `001…`).

use std::borrow::Cow;

use sayso_diff::{Rendering, Unified, UnifiedOptions, one_line};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

pub(crate) struct Diff;

/// Maximum value of `context_lines`.
pub const MAX_CONTEXT_LINES: usize = 20;
/// Maximum size of the diff text in bytes, without the truncation marker.
pub const MAX_DIFF_BYTES: usize = 2 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The first file. Give both paths or both texts.
    path_a: Option<String>,
    /// The second file.
    path_b: Option<String>,
    /// The first text.
    text_a: Option<String>,
    /// The second text.
    text_b: Option<String>,
    /// Name of the first side in the diff's header; by default its path or `a`.
    label_a: Option<String>,
    /// Name of the second side in the diff's header; by default its path or `b`.
    label_b: Option<String>,
    /// Unchanged lines around each change.
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 20))]
    context_lines: i64,
}

fn three() -> i64 {
    3
}

/// The two sides of the comparison.
enum Sides {
    Paths(String, String),
    Texts(String, String),
}

impl Arguments {
    fn sides(&mut self) -> Result<Sides, ToolError> {
        let Self { path_a, path_b, text_a, text_b, .. } = self;
        match (path_a.take(), path_b.take(), text_a.take(), text_b.take()) {
            (Some(a), Some(b), None, None) => Ok(Sides::Paths(a, b)),
            (None, None, Some(a), Some(b)) => Ok(Sides::Texts(a, b)),
            (None, None, None, None) => {
                Err(invalid("nothing to compare: give path_a and path_b, or text_a and text_b"))
            }
            (a, _, None, None) => Err(missing("path", if a.is_none() { "a" } else { "b" })),
            (None, None, a, _) => Err(missing("text", if a.is_none() { "a" } else { "b" })),
            _ => Err(invalid("paths and texts are mixed: give path_a and path_b, or text_a and text_b, not both")),
        }
    }
}

fn missing(mode: &str, missing: &str) -> ToolError {
    invalid(format!("`{mode}_{missing}` is missing: {mode}_a and {mode}_b go together"))
}

impl Tool for Diff {
    fn name(&self) -> &'static str {
        "Diff"
    }

    fn description(&self) -> &'static str {
        "Compares two files of at most 4 MB each, or two texts, and returns a unified diff."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let object = self.run(arguments, context)?;
        let mut text = object["diff"].as_str().unwrap_or_default().to_owned();
        if text.is_empty() {
            text.push_str("(no difference)\n");
        }
        for note in object["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            text.push_str(&format!("[{note}]\n"));
        }
        Ok(Step::Done(ToolOutput::text(text)))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let mut arguments: Arguments = arguments::parse(arguments)?;
        let wanted = usize::try_from(arguments.context_lines).ok().filter(|wanted| *wanted <= MAX_CONTEXT_LINES);
        let context_lines = wanted.ok_or_else(|| {
            invalid(format!("`context_lines` is {}; it can be 0 to {MAX_CONTEXT_LINES}", arguments.context_lines))
        })?;
        let (a, b, names) = match arguments.sides()? {
            Sides::Texts(a, b) => (a.into_bytes(), b.into_bytes(), ("a".to_owned(), "b".to_owned())),
            Sides::Paths(a, b) => {
                // Check both grants before reading either file.
                let (path_a, path_b) = (context.readable(&a)?, context.readable(&b)?);
                context.open(&path_b)?;
                (context.read(&path_a)?.bytes, context.read(&path_b)?.bytes, (a, b))
            }
        };
        let label_a = arguments.label_a.unwrap_or(names.0);
        let label_b = arguments.label_b.unwrap_or(names.1);
        let diff = sayso_diff::Diff::new(&a[..], &b[..]);
        Ok(diff_object(&diff, &label_a, &label_b, context_lines, BinaryContent::Named))
    }
}

/// Treatment of binary content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryContent {
    /// Reports only that the sides differ.
    Named,
    /// Shows a diff of its lines.
    AsText,
}

/// Returns the result object of the tool for a comparison.
pub fn diff_object(
    diff: &sayso_diff::Diff<'_>,
    label_a: &str,
    label_b: &str,
    context: usize,
    binary_content: BinaryContent,
) -> Value {
    let (lines_a, lines_b) = diff.line_counts();
    let options = UnifiedOptions {
        context,
        old_label: label_a,
        new_label: label_b,
        rendering: Rendering::Readable,
        limit: Some(MAX_DIFF_BYTES),
    };
    let binary = diff.is_binary();
    let named = binary && binary_content == BinaryContent::Named;
    let (text, truncated) = if named && !diff.is_unchanged() {
        (format!("Binary files {} and {} differ\n", one_line(label_a), one_line(label_b)), false)
    } else {
        match diff.unified(&options) {
            Unified::NoChanges => (String::new(), false),
            Unified::Changes { text, truncated } => {
                let mut text = match String::from_utf8_lossy(&text) {
                    Cow::Borrowed(text) => text.to_owned(),
                    Cow::Owned(text) => text,
                };
                if truncated {
                    text.push_str(&format!("[diff truncated at {MAX_DIFF_BYTES} bytes]\n"));
                }
                (text, truncated)
            }
        }
    };
    let mut result = json!({
        "diff": text,
        "label_a": label_a,
        "label_b": label_b,
        "lines_a": lines_a,
        "lines_b": lines_b,
        "identical": diff.is_unchanged(),
        "diff_lines": text.lines().count(),
    });
    // Optional fields: the usual result has exactly the fields of the seed's object.
    if truncated {
        result["truncated"] = json!(true);
    }
    if binary {
        result["binary"] = json!(true);
    }
    let notes: Vec<String> = diff.notes().iter().map(ToString::to_string).collect();
    if !notes.is_empty() {
        result["notes"] = json!(notes);
    }
    result
}
