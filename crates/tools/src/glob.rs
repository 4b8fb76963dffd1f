//! `Glob`: finds files by a pattern.

use globset::{GlobBuilder, GlobMatcher};
use sayso_workspace::{WalkLimit, WsPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern, such as `**/*.rs`; `*` stays within a name, `**` crosses directories.
    pattern: String,
    /// The directory that the pattern starts from; by default the workspace.
    path: Option<String>,
}

/// Maximum number of returned paths.
const MAX_RESULTS: usize = 10_000;
/// Maximum number of paths in a result for a model.
const MAX_SHOWN_RESULTS: usize = 1_000;
pub(crate) const MAX_WALKED_FILES: WalkLimit = WalkLimit(1_000_000);

impl Tool for Glob {
    fn name(&self) -> &'static str {
        "Glob"
    }

    fn description(&self) -> &'static str {
        "Finds files by a pattern. Omits ignored files and files without a grant for reading. Does not follow symbolic links."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let (mut paths, mut is_truncated) = find(arguments, context)?;
        is_truncated |= paths.len() > MAX_SHOWN_RESULTS;
        paths.truncate(MAX_SHOWN_RESULTS);
        let mut text: String = paths.iter().map(|path| sayso_diff::one_line(path.as_str()) + "\n").collect();
        if paths.is_empty() {
            text.push_str("(no file matches)\n");
        }
        if is_truncated {
            text.push_str("[there are more files; narrow the pattern or the directory]\n");
        }
        Ok(Step::Done(ToolOutput::text(text)))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let (paths, truncated) = find(arguments, context)?;
        Ok(json!({ "paths": paths, "truncated": truncated }))
    }
}

/// Returns the matching files, and `true` if there are more.
fn find(arguments: &Value, context: &Context<'_>) -> Result<(Vec<WsPath>, bool), ToolError> {
    let Arguments { pattern, path } = arguments::parse(arguments)?;
    let start = context.locate(path.as_deref().unwrap_or("."))?;
    let glob = matcher(&pattern)?;
    let walk = context.walk(&start, MAX_WALKED_FILES)?;
    let mut matching = walk.files.iter().filter(|file| glob.is_match(below(file, &walk.root)));
    let paths: Vec<_> = matching.by_ref().take(MAX_RESULTS).cloned().collect();
    let truncated = walk.truncated || matching.next().is_some();
    Ok((paths, truncated))
}

/// Compiles a pattern in which `*` stays within a name.
pub(crate) fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
    let glob = glob.map_err(|error| invalid(format!("cannot parse the pattern `{pattern}`: {}", error.kind())))?;
    Ok(glob.compile_matcher())
}

/// Returns a path relative to a directory above it.
pub(crate) fn below<'p>(path: &'p WsPath, directory: &WsPath) -> &'p str {
    path.as_str().strip_prefix(directory.as_str()).unwrap_or_default().trim_start_matches('/')
}
