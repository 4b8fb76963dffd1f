//! Tools of a request.

use sayso_tools::Definition;
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::settings::Settings;

/// Name of `ApplyPatch` as a custom tool, under which GPT models were trained to call it.
pub const APPLY_PATCH_NAME: &str = "apply_patch";

/// `true` if the vendor of the model is OpenAI, whose models edit with patches.
pub fn is_openai_model(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or(model);
    ["gpt-", "o1", "o3", "o4", "codex"].iter().any(|start| bare.starts_with(start))
}

/// Selects the tools of a session: tools of the scenario that a delegation allows, with the edit tool that the model was trained on.
/// The order is that of `offered`.
pub fn select_tools(
    offered: &[Definition],
    scenario: &Scenario,
    allowed: Option<&[String]>,
    settings: &Settings,
) -> Vec<Definition> {
    let patches = is_openai_model(&settings.model) && scenario.has_tool("ApplyPatch");
    let is_offered = |name: &str| offered.iter().any(|tool| tool.name == name);
    let fits = |name: &str| match name {
        "ApplyPatch" => patches || !is_offered("Edit") || !scenario.has_tool("Edit"),
        "Edit" | "Write" => !patches || !is_offered("ApplyPatch"),
        _ => true,
    };
    let is_allowed = |name: &str| match allowed {
        None => true,
        Some(names) => names.iter().any(|allowed| {
            allowed == name
                // A list that names one edit tool means all of them.
                || (name == "ApplyPatch" && (allowed == "Edit" || allowed == "Write"))
        }),
    };
    offered
        .iter()
        .filter(|tool| scenario.has_tool(&tool.name) && fits(&tool.name) && is_allowed(&tool.name))
        .cloned()
        .collect()
}

/// `true` if the model takes patches as the text input of a custom tool.
fn takes_custom_patch(settings: &Settings) -> bool {
    let bare = settings.model.rsplit('/').next().unwrap_or(&settings.model);
    settings.dialect == Api::OpenAiResponses && bare.starts_with("gpt-5")
}

/// Returns the definition of a tool in the form of a dialect.
pub(super) fn definition(tool: &Definition, settings: &Settings) -> Value {
    let Definition { name, description, schema } = tool;
    match settings.dialect {
        Api::AnthropicMessages => json!({"name": name, "description": description, "input_schema": schema}),
        Api::OpenAiChat => {
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
        }
        Api::OpenAiResponses if name == "ApplyPatch" && takes_custom_patch(settings) => {
            json!({"type": "custom", "name": APPLY_PATCH_NAME, "description": description, "format": {"type": "text"}})
        }
        Api::OpenAiResponses => json!({
            "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
        }),
        Api::Gemini => json!({"name": name, "description": description, "parametersJsonSchema": schema}),
    }
}

/// Returns the definitions of all tools in the form of a dialect; `None` without tools.
pub(super) fn definitions(tools: &[Definition], settings: &Settings) -> Option<Vec<Value>> {
    (!tools.is_empty()).then(|| tools.iter().map(|tool| definition(tool, settings)).collect())
}
