//! `Read`: reads a text file.

use sayso_diff::{Kind, TextFormat};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::{Context, FILE_LIMIT};
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

pub(crate) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The first line to return, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// The maximum number of lines to return.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

impl Tool for Read {
    fn name(&self) -> &'static str {
        "Read"
    }

    fn description(&self) -> &'static str {
        "Reads a text file of at most 4 MB, or some lines of it, decoded to UTF-8, with its encoding and line ending."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<crate::step::Step, ToolError> {
        self.run(arguments, context)
            .map(|value| crate::step::Step::Done(crate::output::ToolOutput::text(value.to_string())))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path, offset, limit } = arguments::parse(arguments)?;
        if offset == Some(0) || limit == Some(0) {
            return Err(invalid("`offset` and `limit` must be at least 1"));
        }
        let bytes = context.open(&context.readable(&path)?)?.read(FILE_LIMIT)?;
        let form = TextFormat::of(&bytes);
        if form.kind == Kind::Binary {
            return Ok(json!({ "path": path, "binary": true, "content": "", "bytes": bytes.len() }));
        }
        let text = form.encoding.decode(&bytes);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let first = offset.map_or(0, |offset| offset - 1).min(lines.len());
        let last = limit.map_or(lines.len(), |limit| first.saturating_add(limit).min(lines.len()));
        Ok(json!({
            "path": path,
            "binary": false,
            "content": lines[first..last].concat(),
            "lines": lines.len(),
            "truncated": first > 0 || last < lines.len(),
            "encoding": form.encoding,
            "bom": form.bom,
            "line_ending": form.line_ending,
            "final_newline": form.final_newline,
        }))
    }
}
