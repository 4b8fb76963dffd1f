//! The YAML format of a script, and its translation into answers.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use regex_automata::meta::Regex;
use sayso_wire::stream::{Api, FinishReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::{MAX_TURNS, Script, ScriptError, ScriptRule};
use crate::answer::{Content, Expectation, Pace};
use crate::condition::Condition;
use crate::{Answer, Latch, Turn};

/// Longest pause between two events of an answer, in milliseconds.
const MAX_PAUSE_MS: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default)]
    turns: Vec<Spanned<AnswerForm>>,
    #[serde(default)]
    rules: Vec<RuleForm>,
    otherwise: Option<Spanned<AnswerForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    when: ConditionForm,
    times: Option<Spanned<usize>>,
    answer: Spanned<AnswerForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionForm {
    result: Option<Spanned<String>>,
    user: Option<Spanned<String>>,
    system: Option<Spanned<String>>,
    body: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    path: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    tool: Option<String>,
    tools: Option<bool>,
    api: Option<ApiName>,
    request: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ApiName {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerForm {
    expect: Option<ConditionForm>,
    repeat: Option<usize>,
    thinking: Option<String>,
    signature: Option<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<CallForm>,
    usage: Option<UsageForm>,
    finish: Option<FinishForm>,
    /// Error in place of a content.
    error: Option<FailureForm>,
    /// Error at the end of the content.
    fails: Option<FailureForm>,
    raw: Option<RawForm>,
    #[serde(default)]
    hang_up: bool,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    keep_alives: Option<usize>,
    chunk_bytes: Option<usize>,
    cut_after_bytes: Option<usize>,
    cut_after_events: Option<usize>,
    #[serde(default)]
    hold: bool,
    #[serde(default)]
    step: bool,
    every_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallForm {
    tool: String,
    #[serde(default)]
    input: Value,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageForm {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    reasoning: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FinishForm {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    Refusal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureForm {
    status: u16,
    #[serde(default)]
    message: String,
    retry_after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawForm {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default = "json")]
    content_type: String,
    body: String,
}

fn ok() -> u16 {
    200
}

fn json() -> String {
    "application/json".to_owned()
}

/// Reads a script.
pub(super) fn read(text: &str, file: &str) -> Result<Script, ScriptError> {
    let parsed: ScriptFile = serde_saphyr::from_str(text).map_err(|error| ScriptError::of_yaml(file, &error))?;
    let reader = Reader { file, steps: Latch::closed() };
    let mut turns = Vec::new();
    for Spanned { value, referenced, .. } in parsed.turns {
        let repeat = value.repeat.unwrap_or(1);
        if repeat == 0 || turns.len().saturating_add(repeat) > MAX_TURNS {
            let message = format!("`repeat: {repeat}` gives no turn, or more than {MAX_TURNS} in all");
            return Err(reader.error(referenced, message, "use a number from 1"));
        }
        let answer = reader.answer(value, referenced)?;
        turns.extend(std::iter::repeat_n(answer, repeat));
    }
    let mut rules = Vec::new();
    for RuleForm { when, times, answer } in parsed.rules {
        if let Some(times) = times.as_ref().filter(|times| times.value == 0) {
            let message = "`times: 0` makes a rule that never answers".to_owned();
            return Err(reader.error(times.referenced, message, "use a number from 1, or leave `times` out"));
        }
        let (value, place) = (answer.value, answer.referenced);
        if value.expect.is_some() || value.repeat.is_some() {
            let message = "`expect` and `repeat` belong to turns".to_owned();
            return Err(reader.error(place, message, "use `when` and `times` of the rule"));
        }
        let (when, answer) = (reader.condition(when)?, reader.answer(value, place)?);
        rules.push(ScriptRule { when, answer, times: times.map(|times| times.value) });
    }
    let otherwise = parsed.otherwise.map(|answer| reader.answer(answer.value, answer.referenced)).transpose()?;
    if turns.is_empty() && rules.is_empty() && otherwise.is_none() {
        let message = "the script has no answer".to_owned();
        return Err(ScriptError::new(file, None, message, "add `turns:` with at least one `- text: …`"));
    }
    Ok(Script { turns, rules, otherwise, steps: reader.steps })
}

/// Translation of one file.
struct Reader<'f> {
    file: &'f str,
    steps: Latch,
}

impl Reader<'_> {
    fn error(&self, location: Location, message: String, hint: &str) -> ScriptError {
        ScriptError::new(self.file, Some(location), message, hint)
    }

    fn regex(&self, pattern: Option<Spanned<String>>) -> Result<Option<Regex>, ScriptError> {
        let Some(Spanned { value, referenced, .. }) = pattern else { return Ok(None) };
        Regex::new(&value).map(Some).map_err(|error| {
            let cause = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            let cause = cause.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let message = format!("`{value}` is not a regular expression: {cause}");
            self.error(referenced, message, "escape special characters with a backslash, within single quotes")
        })
    }

    fn condition(&self, form: ConditionForm) -> Result<Condition, ScriptError> {
        let ConditionForm { result, user, system, body, model, path, headers, tool, tools, api, request } = form;
        let mut patterns = Vec::new();
        for (name, pattern) in headers {
            if let Some(regex) = self.regex(Some(pattern))? {
                patterns.push((name.to_lowercase(), regex));
            }
        }
        Ok(Condition {
            result: self.regex(result)?,
            user: self.regex(user)?,
            system: self.regex(system)?,
            body: self.regex(body)?,
            model: self.regex(model)?,
            path: self.regex(path)?,
            headers: patterns,
            tool,
            has_tools: tools,
            api: api.map(|api| match api {
                ApiName::Anthropic => Api::AnthropicMessages,
                ApiName::Chat => Api::OpenAiChat,
                ApiName::Responses => Api::OpenAiResponses,
                ApiName::Gemini => Api::Gemini,
            }),
            request,
        })
    }

    fn answer(&self, mut form: AnswerForm, place: Location) -> Result<Answer, ScriptError> {
        let expectation = match form.expect.take() {
            Some(expected) => Some(Expectation {
                condition: self.condition(expected)?,
                place: format!("{}:{}", self.file, place.line()),
            }),
            None => None,
        };
        let retry_after = [&form.error, &form.fails].into_iter().flatten().find_map(|failure| failure.retry_after);
        let mut answer = self.content(&mut form, place)?;
        for (name, Spanned { value, referenced, .. }) in std::mem::take(&mut form.headers) {
            if HeaderName::try_from(&name).is_err() || HeaderValue::try_from(&value).is_err() {
                let message = format!("`{name}: {value}` is not a header");
                return Err(self.error(referenced, message, "use letters, digits and hyphens in the name"));
            }
            answer = answer.header(&name, &value);
        }
        if let Some(seconds) = retry_after {
            answer = answer.header("retry-after", &seconds.to_string());
        }
        answer.expectation = expectation;
        answer.keep_alives = form.keep_alives.unwrap_or(0).min(MAX_TURNS);
        answer.chunk_bytes = form.chunk_bytes;
        answer.cut_after_bytes = form.cut_after_bytes;
        answer.cut_after_chunks = form.cut_after_events;
        answer.before = form.hold.then(|| self.steps.clone());
        answer.pace = match (form.step, form.every_ms) {
            (false, None) => None,
            (true, None) => Some(Pace::Latch(self.steps.clone())),
            (false, Some(pause)) if pause <= MAX_PAUSE_MS => Some(Pace::Every(Duration::from_millis(pause))),
            (false, Some(pause)) => {
                let message = format!("`every_ms: {pause}` is longer than {MAX_PAUSE_MS}");
                return Err(self.error(place, message, "use `step: true`, and release each event when you want it"));
            }
            (true, Some(_)) => {
                let message = "an answer has `step` and `every_ms`".to_owned();
                return Err(self.error(place, message, "keep one of them"));
            }
        };
        Ok(answer)
    }

    /// Translates the content of an answer: a turn, an error, raw bytes or a closed connection.
    fn content(&self, form: &mut AnswerForm, place: Location) -> Result<Answer, ScriptError> {
        let has_turn = form.text.is_some() || form.thinking.is_some() || !form.calls.is_empty() || form.fails.is_some();
        let kinds = [has_turn, form.error.is_some(), form.raw.is_some(), form.hang_up];
        match kinds.iter().filter(|kind| **kind).count() {
            1 => {}
            0 => {
                let message = "an answer has no content".to_owned();
                let hint = "add `text`, `calls`, `thinking`, `error`, `raw` or `hang_up`";
                return Err(self.error(place, message, hint));
            }
            _ => {
                let message = "an answer has several kinds of content".to_owned();
                let hint =
                    "keep one of: a turn (`text`, `thinking`, `calls`), `error`, `raw`, `hang_up`; `fails` ends a turn";
                return Err(self.error(place, message, hint));
            }
        }
        for failure in [&form.error, &form.fails].into_iter().flatten() {
            if !(400..=599).contains(&failure.status) {
                let message = format!("`status: {}` is not the status of an error", failure.status);
                return Err(self.error(place, message, "use a number from 400 to 599, such as 429 or 529"));
            }
        }
        if let Some(FailureForm { status, message, .. }) = &form.error {
            return Ok(Answer::error(*status, message));
        }
        if let Some(RawForm { status, content_type, body }) = form.raw.take() {
            if !(200..=599).contains(&status) || HeaderValue::try_from(&content_type).is_err() {
                let message = format!("`raw` has the status {status} and the content type `{content_type}`");
                return Err(self.error(place, message, "use a status from 200 to 599 and a type such as text/plain"));
            }
            return Ok(Answer::new(Content::Exactly { status, content_type, body: vec![body.into_bytes().into()] }));
        }
        if form.hang_up {
            return Ok(Answer::hang_up());
        }
        let mut answer = Answer::from(self.turn(form, place)?);
        answer.has_placeholders = true;
        Ok(answer)
    }

    fn turn(&self, form: &mut AnswerForm, place: Location) -> Result<Turn, ScriptError> {
        let mut turn = Turn::default();
        if let Some(text) = &form.text {
            turn = turn.and_says(text);
        }
        if let Some(thinking) = &form.thinking {
            turn = turn.after_thinking(thinking, form.signature.as_deref());
        } else if form.signature.is_some() {
            let message = "`signature` needs `thinking`".to_owned();
            return Err(self.error(place, message, "add the text that is signed, or remove `signature`"));
        }
        for CallForm { tool, input } in form.calls.drain(..) {
            let input = if input.is_null() { serde_json::json!({}) } else { input };
            if tool.is_empty() || !(input.is_object() || input.is_string()) {
                let message = format!("the call of `{tool}` has no name, or an input that is neither keys nor text");
                return Err(self.error(place, message, "write `- tool: NAME` and `input: {key: value}`"));
            }
            turn = turn.and_calls(&tool, input);
        }
        if let Some(UsageForm { input, output, cache_read, cache_written, reasoning }) = form.usage {
            turn = turn.with_usage(Usage { input, output, cache_read, cache_written, reasoning });
        }
        if let Some(finish) = form.finish {
            turn = turn.finished_by(match finish {
                FinishForm::EndTurn => FinishReason::EndTurn,
                FinishForm::ToolUse => FinishReason::ToolUse,
                FinishForm::MaxTokens => FinishReason::MaxTokens,
                FinishForm::StopSequence => FinishReason::StopSequence,
                FinishForm::Refusal => FinishReason::Refusal,
            });
        }
        if let Some(FailureForm { status, message, .. }) = &form.fails {
            turn = turn.and_fails(*status, message);
        }
        Ok(turn)
    }
}
