//! The YAML format of a scenario, and its checks.

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::{EXTERNAL, Scenario, ScenarioError};
use crate::settings::Limits;

/// Maximum length of a prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 40;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    name: Spanned<String>,
    description: Spanned<String>,
    prompt: Spanned<String>,
    tools: Vec<Spanned<String>>,
    model: Option<Spanned<String>>,
    limits: Option<LimitsForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsForm {
    turns: Option<u32>,
    cost_usd: Option<Spanned<f64>>,
    minutes: Option<u32>,
}

pub(super) fn read(text: &str, file: &str, known_tools: &[String]) -> Result<Scenario, ScenarioError> {
    let form: ScenarioFile = serde_saphyr::from_str(text).map_err(|error| ScenarioError::of_yaml(file, &error))?;
    let error =
        |place: Location, message: String, hint: &str| ScenarioError::new(file, Some(place), message, hint.to_owned());
    let is_name = |name: &str| {
        let allowed =
            |character: char| character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_';
        !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(allowed)
    };
    if !is_name(&form.name.value) {
        let message = format!("`{}` is not a name", form.name.value);
        return Err(error(form.name.referenced, message, "use at most 40 capital letters, digits and underscores"));
    }
    if form.description.value.trim().is_empty() || form.description.value.trim().contains('\n') {
        let message = "the description is not one line".to_owned();
        return Err(error(form.description.referenced, message, "describe the role in one line"));
    }
    let prompt = form.prompt.value.trim_end();
    if prompt.trim().is_empty() {
        return Err(error(form.prompt.referenced, "the prompt is empty".to_owned(), "write the instructions"));
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        let message = format!("the prompt has {} bytes, more than {MAX_PROMPT_BYTES}", prompt.len());
        return Err(error(form.prompt.referenced, message, "shorten it"));
    }
    if let Some(at) = prompt.find("{{") {
        let shown: String = prompt[at..].chars().take(20).collect();
        let message = format!("the prompt has the placeholder `{shown}`, and placeholders are not filled");
        return Err(error(form.prompt.referenced, message, "write the text itself"));
    }
    let mut tools: Vec<String> = Vec::new();
    for Spanned { value, referenced, .. } in form.tools {
        if !value.starts_with(EXTERNAL) && !known_tools.contains(&value) {
            let hint = format!("use names of {}, or mcp__SERVER__TOOL", known_tools.join(", "));
            return Err(error(referenced, format!("there is no tool `{value}`"), &hint));
        }
        if tools.contains(&value) {
            return Err(error(referenced, format!("the tool `{value}` is listed twice"), "remove one of them"));
        }
        tools.push(value);
    }
    if let Some(model) = form.model.as_ref().filter(|model| model.value.trim().is_empty()) {
        return Err(error(model.referenced, "the model is empty".to_owned(), "name a model, or remove the key"));
    }
    let limits = form.limits.map(|limits| read_limits(&limits, &error)).transpose()?;
    Ok(Scenario {
        name: form.name.value,
        description: form.description.value.trim().to_owned(),
        prompt: prompt.to_owned(),
        tools,
        model: form.model.map(|model| model.value),
        limits,
        file: Some(file.to_owned()),
    })
}

#[expect(clippy::cast_sign_loss, reason = "the value was checked to be positive")]
fn read_limits(
    form: &LimitsForm,
    error: &impl Fn(Location, String, &str) -> ScenarioError,
) -> Result<Limits, ScenarioError> {
    let mut limits = Limits { turns: form.turns.unwrap_or(0), ..Limits::default() };
    limits.time_ms = u64::from(form.minutes.unwrap_or(0)) * 60_000;
    if let Some(Spanned { value, referenced, .. }) = &form.cost_usd {
        if !(0.0..=100_000.0).contains(value) {
            let message = format!("`cost_usd: {value}` is out of range");
            return Err(error(*referenced, message, "use a number from 0 to 100000"));
        }
        limits.cost_micro_usd = (value * 1e6).round() as u64;
    }
    Ok(limits)
}
