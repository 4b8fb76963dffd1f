//! `Read`: reads a text file.

use std::borrow::Cow;

use sayso_diff::{Encoding, Kind, LineEnding, TextFormat};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::{ContentSource, Context};
use crate::error::ToolError;
use crate::output::{ToolOutput, cut};
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

pub(crate) struct Read;

/// Limits of one result for a model. The rest is read with `offset`.
const MAX_SHOWN_LINES: usize = 2_000;
const MAX_SHOWN_BYTES: usize = 128 * 1024;
const MAX_LINE_CHARS: usize = 2_000;

const BOM: char = '\u{FEFF}';

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
        "Reads a text file of at most 4 MB, or some lines of it, with line numbers. Shows unsaved text of the user's editor."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        Ok(Step::Done(ToolOutput::text(read(arguments, context)?.for_model())))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        Ok(read(arguments, context)?.data())
    }
}

/// Lines of a file.
struct FileLines {
    path: String,
    bytes: Vec<u8>,
    source: ContentSource,
    format: TextFormat,
    offset: Option<usize>,
    limit: Option<usize>,
}

fn read(arguments: &Value, context: &Context<'_>) -> Result<FileLines, ToolError> {
    let Arguments { path, offset, limit } = arguments::parse(arguments)?;
    if offset == Some(0) || limit == Some(0) {
        return Err(invalid("`offset` and `limit` must be at least 1"));
    }
    let file = context.read(&context.readable(&path)?)?;
    context.record_read(&file.location, &file.bytes);
    let format = TextFormat::of(&file.bytes);
    Ok(FileLines { path, bytes: file.bytes, source: file.source, format, offset, limit })
}

impl FileLines {
    fn is_binary(&self) -> bool {
        self.format.kind == Kind::Binary
    }

    /// Returns the decoded text without byte order mark.
    fn text(&self) -> Cow<'_, str> {
        match self.format.encoding.decode(&self.bytes) {
            Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix(BOM).unwrap_or(text)),
            Cow::Owned(text) => Cow::Owned(text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text)),
        }
    }

    /// Returns the range of lines that the call names.
    fn range(&self, count: usize) -> std::ops::Range<usize> {
        let first = self.offset.map_or(0, |offset| offset - 1).min(count);
        first..self.limit.map_or(count, |limit| first.saturating_add(limit).min(count))
    }

    fn data(&self) -> Value {
        if self.is_binary() {
            return json!({ "path": self.path, "binary": true, "content": "", "bytes": self.bytes.len() });
        }
        let text = self.text();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let range = self.range(lines.len());
        json!({
            "path": self.path,
            "binary": false,
            "content": lines[range.clone()].concat(),
            "lines": lines.len(),
            "truncated": range.len() < lines.len(),
            "encoding": self.format.encoding,
            "bom": self.format.bom,
            "line_ending": self.format.line_ending,
            "final_newline": self.format.final_newline,
        })
    }

    /// Returns the lines with their numbers, within the limits for one result.
    fn for_model(&self) -> String {
        if self.is_binary() {
            return format!("`{}` is binary, {} bytes. Its content is not shown.\n", self.path, self.bytes.len());
        }
        let text = self.text();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let range = self.range(lines.len());
        if lines.is_empty() {
            return format!("{}`{}` is empty.\n", self.remarks(), self.path);
        }
        if range.is_empty() {
            return format!("`{}` has only {} lines.\n", self.path, lines.len());
        }
        let mut shown = self.remarks();
        let mut end = range.start;
        for line in lines[range.clone()].iter().take(MAX_SHOWN_LINES) {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            let line = cut(line, MAX_LINE_CHARS);
            if shown.len() + line.len() > MAX_SHOWN_BYTES {
                break;
            }
            end += 1;
            shown.push_str(&format!("{end:>6}\t{line}\n"));
        }
        if end < lines.len() {
            let next = end + 1;
            shown.push_str(&format!("[lines {next} to {} are not shown; go on with offset {next}]\n", lines.len()));
        } else if !self.format.final_newline {
            shown.push_str("[no newline at the end of the file]\n");
        }
        shown
    }

    /// Returns what the lines do not show: unusual formats, and unsaved text. Edits keep the format.
    fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        if self.source == ContentSource::Editor {
            remarks.push("unsaved text of the user's editor".to_owned());
        }
        if self.format.encoding != Encoding::Utf8 || self.format.bom {
            let mark = if self.format.bom { " with byte order mark" } else { "" };
            remarks.push(format!("{}{mark}", self.format.encoding));
        }
        if matches!(self.format.line_ending, LineEnding::Crlf | LineEnding::Mixed) {
            remarks.push(format!("line endings: {}", self.format.line_ending));
        }
        if remarks.is_empty() { String::new() } else { format!("[{}]\n", remarks.join("; ")) }
    }
}
