//! `Glob`: finds files by a pattern.

use globset::GlobBuilder;
use sayso_workspace::{WalkLimit, WsPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern, such as `**/*.rs`; `*` stays within a name, `**` crosses directories.
    pattern: String,
    /// The directory that the pattern starts from; by default the workspace.
    path: Option<String>,
}

/// Maximum number of returned paths, more than a model can use.
const MAX_RESULTS: usize = 10_000;
const MAX_WALKED_FILES: WalkLimit = WalkLimit(1_000_000);

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

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<crate::step::Step, ToolError> {
        self.run(arguments, context)
            .map(|value| crate::step::Step::Done(crate::output::ToolOutput::text(value.to_string())))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { pattern, path } = arguments::parse(arguments)?;
        let start = context.locate(path.as_deref().unwrap_or("."))?;
        let glob = GlobBuilder::new(pattern.trim_start_matches("./"))
            .literal_separator(true)
            .build()
            .map_err(|error| invalid(format!("cannot parse the pattern `{pattern}`: {}", error.kind())))?
            .compile_matcher();
        let walk = context.walk(&start, MAX_WALKED_FILES)?;
        let below = |path: &WsPath| {
            let rest = path.as_str().strip_prefix(walk.root.as_str()).unwrap_or_default();
            rest.trim_start_matches('/').to_owned()
        };
        let mut matching = walk.files.iter().filter(|file| glob.is_match(below(file)));
        let paths: Vec<_> = matching.by_ref().take(MAX_RESULTS).collect();
        let truncated = walk.truncated || matching.next().is_some();
        Ok(json!({ "paths": paths, "truncated": truncated }))
    }
}
