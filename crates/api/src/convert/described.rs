//! What is sent with its kind, its sentence and its data: notes, problems, effects, doubts.

use sayso_review::{Doubt, Effect, Note, Problem, Severity, ToolProblem};
use serde::Serialize;
use serde_json::Value;

use super::BadMessage;
use super::field::{json, not_said};
use crate::proto;

/// A value as data, and the word in it that says which of its kinds it is.
struct Data {
    kind: String,
    json: String,
}

impl Data {
    fn of(value: &impl Serialize, tag: &str) -> Self {
        // Of data that always serialises; were it not to, it could not be read on the other side, which is safe.
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

/// The notes that this version knows. A note informs and never decides, so that those of a newer peer are left out.
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

impl From<&Doubt> for proto::command_preview::Doubt {
    fn from(doubt: &Doubt) -> Self {
        let data = Data::of(doubt, "doubt");
        Self { kind: data.kind, text: doubt.to_string(), details_json: data.json, ..Default::default() }
    }
}

impl TryFrom<proto::command_preview::Doubt> for Doubt {
    type Error = BadMessage;

    fn try_from(doubt: proto::command_preview::Doubt) -> Result<Self, BadMessage> {
        json(&doubt.details_json, "details_json")
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
            proto::Severity::Unspecified => Err(not_said()),
            proto::Severity::Info => Ok(Self::Info),
            proto::Severity::Warning => Ok(Self::Warning),
            proto::Severity::Critical => Ok(Self::Critical),
        }
    }
}
