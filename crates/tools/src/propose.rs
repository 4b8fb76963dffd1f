//! `ProposeChanges`: previews a set of changes without writing.

use sayso_review::{FileIntent, NewContent, Proposal, ProposedChanges};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::proposal_check;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{FileStep, Step};

pub(crate) struct ProposeChanges;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// All changes of the set. They are applied together or not at all.
    changes: Vec<ProposedFile>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProposedFile {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The change of the file.
    operation: FileOperation,
    /// The whole new content, for create and update.
    new_content: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FileOperation {
    Create,
    Update,
    Delete,
}

impl Tool for ProposeChanges {
    fn name(&self) -> &'static str {
        "ProposeChanges"
    }

    fn description(&self) -> &'static str {
        "Proposes a complete set of changes to files without writing them. Returns a diff of each change, and whether it conflicts \
         with the current files."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let proposal = proposal(arguments)?;
        let proposed = preview(&proposal, context)?;
        Ok(Step::ChangeFiles(FileStep { proposal, notes: Vec::new(), proposed: Some(Box::new(proposed)) }))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        Ok(json!(preview(&proposal(arguments)?, context)?))
    }
}

fn proposal(arguments: &Value) -> Result<Proposal, ToolError> {
    let Arguments { changes } = arguments::parse(arguments)?;
    if changes.is_empty() {
        return Err(invalid("`changes` is empty: name at least one file"));
    }
    let intents = changes.into_iter().enumerate().map(|(index, change)| intent(index, change));
    Ok(Proposal { changes: intents.collect::<Result<_, _>>()? })
}

/// Previews the changes. A file that changed since the model read it is a conflict, as seed `003…` asks.
fn preview(proposal: &Proposal, context: &Context<'_>) -> Result<ProposedChanges, ToolError> {
    let (preview, observation) = proposal_check::preview(proposal, context)?;
    let mut object = preview.object();
    for path in proposal_check::stale_files(&observation, context) {
        let Some(change) = object.changes.iter_mut().find(|change| change.path == *path) else { continue };
        let warning = "it changed since it was read";
        change.conflict = true;
        change.warning = Some(warning.to_owned());
        object.has_conflicts = true;
        object.warnings.push(format!("{path}: {warning}"));
    }
    Ok(object)
}

/// Converts the change at `index`. Fails if a create or update has no content.
fn intent(index: usize, change: ProposedFile) -> Result<FileIntent, ToolError> {
    let ProposedFile { path, operation, new_content } = change;
    let content = |new_content| NewContent {
        path: path.clone(),
        new_content,
        exact: false,
        executable: None,
        base_content: None,
    };
    match (operation, new_content) {
        (FileOperation::Delete, _) => Ok(FileIntent::Delete { path }),
        (FileOperation::Create, Some(text)) => Ok(FileIntent::Create(content(text))),
        (FileOperation::Update, Some(text)) => Ok(FileIntent::Update(content(text))),
        (FileOperation::Create | FileOperation::Update, None) => Err(invalid(format!(
            "`changes[{index}].new_content` is missing: create and update need the whole new content"
        ))),
    }
}
