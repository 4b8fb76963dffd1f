//! Messages with a kind, a sentence and JSON data: notes, problems, effects, uncertainties, schema mismatches.
//!
//! Readers use the JSON alone; kind and sentence are for clients without these types.

use sayso_review::{Effect, Note, Problem, Severity, ToolProblem, Uncertainty};
use serde::Serialize;
use serde_json::Value;

use super::BadMessage;
use super::field::{json, unspecified};
use crate::proto;

/// A serialised value and the value of its tag field.
struct Data {
    kind: String,
    json: String,
}

impl Data {
    fn of(value: &impl Serialize, tag: &str) -> Self {
        // The value always serialises. If it did not, the receiver would reject the message.
        let value = serde_json::to_value(value).unwrap_or_default();
        let kind = value.get(tag).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { kind, json: value.to_string() }
    }
}

impl From<&Note> for proto::Note {
    fn from(note: &Note) -> Self {
        let data = Data::of(note, "note");
        Self {
            kind: data.kind,
            severity: proto::Severity::from(note.severity()).into(),
            text: note.to_string(),
            details_json: data.json,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Note> for Note {
    type Error = BadMessage;

    fn try_from(note: proto::Note) -> Result<Self, BadMessage> {
        json(&note.details_json, "details_json")
    }
}

/// Reads notes and drops unknown kinds of a newer version. Safe, because notes never decide.
pub(super) fn known_notes(notes: Vec<proto::Note>) -> Vec<Note> {
    notes.into_iter().filter_map(|note| note.try_into().ok()).collect()
}

impl From<&Problem> for proto::Problem {
    fn from(problem: &Problem) -> Self {
        let data = Data::of(problem, "problem");
        Self {
            kind: data.kind,
            error_kind: proto::ErrorKind::from(problem.kind()).into(),
            text: problem.to_string(),
            details_json: data.json,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Problem> for Problem {
    type Error = BadMessage;

    fn try_from(problem: proto::Problem) -> Result<Self, BadMessage> {
        json(&problem.details_json, "details_json")
    }
}

impl From<&Effect> for proto::command_preview::Effect {
    fn from(effect: &Effect) -> Self {
        let data = Data::of(effect, "effect");
        Self {
            kind: data.kind,
            severity: proto::Severity::from(effect.severity()).into(),
            text: effect.to_string(),
            details_json: data.json,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::command_preview::Effect> for Effect {
    type Error = BadMessage;

    fn try_from(effect: proto::command_preview::Effect) -> Result<Self, BadMessage> {
        json(&effect.details_json, "details_json")
    }
}

impl From<&Uncertainty> for proto::command_preview::Uncertainty {
    fn from(uncertainty: &Uncertainty) -> Self {
        let data = Data::of(uncertainty, "uncertainty");
        Self { kind: data.kind, text: uncertainty.to_string(), details_json: data.json, ..Default::default() }
    }
}

impl TryFrom<proto::command_preview::Uncertainty> for Uncertainty {
    type Error = BadMessage;

    fn try_from(uncertainty: proto::command_preview::Uncertainty) -> Result<Self, BadMessage> {
        json(&uncertainty.details_json, "details_json")
    }
}

impl From<&ToolProblem> for proto::tool_preview::Mismatch {
    fn from(problem: &ToolProblem) -> Self {
        let data = Data::of(problem, "problem");
        Self { kind: data.kind, text: problem.to_string(), details_json: data.json, ..Default::default() }
    }
}

impl TryFrom<proto::tool_preview::Mismatch> for ToolProblem {
    type Error = BadMessage;

    fn try_from(problem: proto::tool_preview::Mismatch) -> Result<Self, BadMessage> {
        json(&problem.details_json, "details_json")
    }
}

impl From<Severity> for proto::Severity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}

impl TryFrom<proto::Severity> for Severity {
    type Error = BadMessage;

    fn try_from(severity: proto::Severity) -> Result<Self, BadMessage> {
        match severity {
            proto::Severity::Unspecified => Err(unspecified()),
            proto::Severity::Info => Ok(Self::Info),
            proto::Severity::Warning => Ok(Self::Warning),
            proto::Severity::Critical => Ok(Self::Critical),
        }
    }
}
