//! `ApplyPatch`: applies a patch to several files at once.

use sayso_review::{Bytes, FileIntent, Proposal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::proposal_check;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{FileStep, Step};

pub(crate) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The patch, from `*** Begin Patch` to `*** End Patch`, with sections `*** Add File: PATH`, `*** Update File: PATH` (optionally
    /// `*** Move to: PATH`) and `*** Delete File: PATH`. A unified diff is accepted too.
    #[serde(alias = "patch")]
    input: String,
}

impl Tool for ApplyPatch {
    fn name(&self) -> &'static str {
        "ApplyPatch"
    }

    fn description(&self) -> &'static str {
        "Applies a patch to one or more files, all or none. A person or a rule decides about the diff before it is written."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        // Free-form tools of the Responses API get the patch itself instead of an object.
        let Arguments { input } = match arguments {
            Value::String(patch) => arguments::parse(&json!({ "input": patch }))?,
            object => arguments::parse(object)?,
        };
        let patch = Bytes::new(input.into_bytes());
        let proposal = Proposal { changes: vec![FileIntent::Patch { patch }] };
        let preview = proposal_check::check(&proposal, context)?;
        let notes = proposal_check::match_notes(&preview);
        Ok(Step::ChangeFiles(FileStep { proposal, notes, proposed: None }))
    }
}
