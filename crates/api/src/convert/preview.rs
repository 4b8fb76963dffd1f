//! Previews of file changes.

use buffa::MessageField;
use sayso_review::{CONTEXT, FilePreview, FileState, Fingerprint, Placement, Preview};

use super::described::known_notes;
use super::field::{enumeration, list, optional, path, required, unspecified};
use super::file_state::{operation, renamed_from};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::PreviewView;

/// The message of a preview, with contents and diffs as the view requests.
pub fn preview(preview: &Preview, view: PreviewView) -> proto::Preview {
    proto::Preview {
        files: preview
            .files()
            .iter()
            .map(|shown| proto::FilePreview { settled: preview.is_settled(&shown.path), ..file(shown, view) })
            .collect(),
        placement: proto::preview::Placement::from(preview.placement()).into(),
        ..Default::default()
    }
}

fn file(file: &FilePreview, view: PreviewView) -> proto::FilePreview {
    let with_contents = matches!(view, PreviewView::Content | PreviewView::Full);
    let with_diff = matches!(view, PreviewView::Diff | PreviewView::Full);
    let diff = file.diff();
    let counts = diff.counts();
    let content = |state: &FileState| {
        if with_contents { MessageField::some(state.into()) } else { MessageField::none() }
    };
    // Must number and count hunks like `Preview::object`: verdicts name hunks by these numbers.
    let hunks = diff.hunks(CONTEXT).map(|hunk| proto::Hunk {
        number: u32::try_from(hunk.number).unwrap_or(u32::MAX),
        parts: u32::try_from(hunk.changes().len()).unwrap_or(u32::MAX),
        old_start: hunk.old.start.line as u64 + 1,
        old_lines: hunk.old.lines() as u64,
        new_start: hunk.new.start.line as u64 + 1,
        new_lines: hunk.new.lines() as u64,
        ..Default::default()
    });
    proto::FilePreview {
        path: file.path.to_string(),
        location: file.location.to_string(),
        operation: proto::Operation::from(&file.operation).into(),
        renamed_from: renamed_from(&file.operation),
        before: MessageField::some((&file.before.fingerprint()).into()),
        after: MessageField::some((&file.after.fingerprint()).into()),
        before_content: content(&file.before),
        after_content: content(&file.after),
        notes: messages(&file.notes),
        problem: file.problem.as_ref().map(proto::Problem::from).into(),
        settled: false,
        added: counts.added as u64,
        removed: counts.removed as u64,
        binary: diff.is_binary(),
        hunks: if with_diff { hunks.collect() } else { Vec::new() },
        unified_diff: if with_diff { file.unified() } else { String::new() },
        ..Default::default()
    }
}

/// Requires contents, and checks them against the fingerprints. Drops notes of unknown kinds, which the preview hash does not cover.
impl TryFrom<proto::Preview> for Preview {
    type Error = BadMessage;

    fn try_from(preview: proto::Preview) -> Result<Self, BadMessage> {
        let settled: Vec<bool> = preview.files.iter().map(|file| file.settled).collect();
        let files: Vec<FilePreview> = list(preview.files, "files")?;
        let placement = enumeration(preview.placement, "placement")?;
        Ok(Self::recorded(files.into_iter().zip(settled).collect(), placement))
    }
}

impl TryFrom<proto::FilePreview> for FilePreview {
    type Error = BadMessage;

    fn try_from(file: proto::FilePreview) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&file.path, "path")?,
            location: path(&file.location, "location")?,
            operation: operation(file.operation, file.renamed_from.as_ref())?,
            before: contents(file.before_content, &required(file.before, "before")?, "before_content")?,
            after: contents(file.after_content, &required(file.after, "after")?, "after_content")?,
            notes: known_notes(file.notes),
            problem: optional(file.problem, "problem")?,
        })
    }
}

/// Reads a content and compares it with its fingerprint.
fn contents(
    field: MessageField<proto::FileState, buffa::Inline<proto::FileState>>,
    named: &Fingerprint,
    name: &str,
) -> Result<FileState, BadMessage> {
    let state: Option<FileState> = optional(field, name)?;
    let state = state.ok_or_else(|| BadMessage::new(name, "it is missing; request the view CONTENT or FULL"))?;
    if state.fingerprint() == *named {
        return Ok(state);
    }
    Err(BadMessage::new(name, "it does not match its hash"))
}

impl From<Placement> for proto::preview::Placement {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Proposed => Self::Proposed,
            Placement::InPlace => Self::InPlace,
        }
    }
}

impl TryFrom<proto::preview::Placement> for Placement {
    type Error = BadMessage;

    fn try_from(placement: proto::preview::Placement) -> Result<Self, BadMessage> {
        match placement {
            proto::preview::Placement::Unspecified => Err(unspecified()),
            proto::preview::Placement::Proposed => Ok(Self::Proposed),
            proto::preview::Placement::InPlace => Ok(Self::InPlace),
        }
    }
}
