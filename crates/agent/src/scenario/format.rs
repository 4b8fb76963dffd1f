//! The YAML format of a scenario, and its checks.

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::{EXTERNAL, Scenario, ScenarioError};
use crate::settings::Limits;

/// Maximum length of a prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// Maximum of each limit.
const MAX_LIMIT: f64 = 100_000.0;
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
    turns: Option<Spanned<f64>>,
    cost_usd: Option<Spanned<f64>>,
    minutes: Option<Spanned<f64>>,
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

/// Reads limits. A number that is absent or 0 is no limit.
#[expect(clippy::cast_sign_loss, reason = "the numbers were checked to be positive")]
fn read_limits(
    form: &LimitsForm,
    error: &impl Fn(Location, String, &str) -> ScenarioError,
) -> Result<Limits, ScenarioError> {
    let number = |name: &str, value: &Option<Spanned<f64>>, kind: NumberKind| {
        let Some(Spanned { value, referenced, .. }) = value else { return Ok(0.0) };
        let fits = (0.0..=MAX_LIMIT).contains(value) && (kind == NumberKind::Any || value.fract() == 0.0);
        if fits {
            return Ok(*value);
        }
        let whole = if kind == NumberKind::Whole { "whole number" } else { "number" };
        let hint = format!("use a {whole} from 0 to {MAX_LIMIT}; 0 is no limit");
        Err(error(*referenced, format!("`{name}: {value}` is out of range"), &hint))
    };
    Ok(Limits {
        turns: number("turns", &form.turns, NumberKind::Whole)? as u32,
        cost_micro_usd: (number("cost_usd", &form.cost_usd, NumberKind::Any)? * 1e6).round() as u64,
        time_ms: (number("minutes", &form.minutes, NumberKind::Any)? * 60_000.0).round() as u64,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Whole,
    Any,
}
