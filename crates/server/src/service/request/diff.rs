//! Differences between a request and the received one.

use std::fmt::Write as _;

use sayso_api::proto;
use sayso_api::proto::diff_request_response::{SectionDiff, section_diff};
use sayso_diff::{Diff, Rendering, UnifiedOptions};
use sayso_proxy::interceptor::RequestView;
use sayso_review::{RequestId, RequestRecord};
use sayso_wire::{ModelRequest, NodeType, SectionChange};

use super::body;
use super::mask::CredentialMask;
use crate::failure::Failure;
use crate::host::Host;

const DEFAULT_CONTEXT_LINES: u32 = 3;

pub(super) fn diff(host: &Host, asked: &proto::DiffRequestRequest) -> Result<proto::DiffRequestResponse, Failure> {
    let interceptor = &host.proxy.interceptor;
    let record = interceptor.record(asked.request)?;
    let context = asked.context.unwrap_or(DEFAULT_CONTEXT_LINES) as usize;
    let overrides = super::show::overrides(host, asked.request)?;
    let known = interceptor.view(asked.request, |RequestView { request, hold, .. }| {
        if hold.is_none() && !request.is_dirty() {
            return None;
        }
        let mask = CredentialMask::of(request);
        let masked = |text: &str| mask.mask(text).into_owned();
        let message = |diff: &sayso_wire::SectionDiff| SectionDiff {
            section: diff.id.to_string(),
            path: diff.path.clone(),
            label: diff.label.clone(),
            change: section_diff::SectionChange::from(diff.change).into(),
            old: mask.mask_at(&diff.path, &diff.old).into_owned(),
            new: mask.mask_at(&diff.path, &diff.new).into_owned(),
            unified: masked(&diff.unified(context)),
            applied_override: request.section(diff.id).and_then(|section| overrides.of(request, section)).into(),
            ..Default::default()
        };
        Some((request.diff().iter().map(message).collect(), masked(&request.unified_diff(context))))
    })?;
    let (sections, unified) = match known {
        Some(found) => found,
        None if !record.is_edited() => Default::default(),
        None => {
            let (received, sent) = recorded_texts(host, &record)?;
            let label = if record.sent.is_some() { "sent" } else { "edited, not sent" };
            (Vec::new(), unified(&received, &sent, label, context))
        }
    };
    interceptor.record_diff_viewed(asked.request, record.edits);
    Ok(proto::DiffRequestResponse { sections, unified, ..Default::default() })
}

/// The received and the present text of an edited value, with masked credentials. Both end with a line break, or neither does.
pub(in crate::service) struct EditedText {
    /// Path of the value, or `body` for a whole request.
    pub(in crate::service) path: String,
    /// Display name of the section.
    pub(in crate::service) label: String,
    /// `None` for an added value.
    pub(in crate::service) old: Option<String>,
    /// `None` for a deleted value.
    pub(in crate::service) new: Option<String>,
}

/// Returns the edits of a request, and records that they were viewed.
pub(in crate::service) fn edited_texts(host: &Host, request: RequestId) -> Result<Vec<EditedText>, Failure> {
    let interceptor = &host.proxy.interceptor;
    let record = interceptor.record(request)?;
    let known = interceptor.view(request, |RequestView { request, hold, .. }| {
        if hold.is_none() && !request.is_dirty() {
            return None;
        }
        let mask = CredentialMask::of(request);
        let text = |diff: &sayso_wire::SectionDiff| {
            let [old, new] = closed(&mask.mask_at(&diff.path, &diff.old), &mask.mask_at(&diff.path, &diff.new));
            EditedText {
                path: diff.path.clone(),
                label: diff.label.clone(),
                old: (diff.change != SectionChange::Added).then_some(old),
                new: (diff.change != SectionChange::Deleted).then_some(new),
            }
        };
        Some(request.diff().iter().map(text).collect())
    })?;
    let texts = match known {
        Some(texts) => texts,
        None if !record.is_edited() => Vec::new(),
        None => {
            let (old, new) = recorded_texts(host, &record)?;
            vec![EditedText { path: "body".to_owned(), label: "request".to_owned(), old: Some(old), new: Some(new) }]
        }
    };
    interceptor.record_diff_viewed(request, record.edits);
    Ok(texts)
}

/// Adds a line break to both texts if both lack it. Values seldom end with one, so its absence is no news.
fn closed(old: &str, new: &str) -> [String; 2] {
    let is_open = |text: &str| !text.ends_with('\n');
    let end = if is_open(old) && is_open(new) { "\n" } else { "" };
    [old, new].map(|text| if text.is_empty() { String::new() } else { format!("{text}{end}") })
}

/// Returns the received and the present request as text. Records of old versions contain the edited body without its edits.
fn recorded_texts(host: &Host, record: &RequestRecord) -> Result<(String, String), Failure> {
    let received = readable(&body::as_received(host, record)?);
    Ok((received, host.proxy.interceptor.view(record.request, |view| readable(view.request))?))
}

/// Renders a request as text: the label and content of each section.
fn readable(request: &ModelRequest) -> String {
    let mut text = String::new();
    let has_content = |section: &&sayso_wire::Section| section.leaf.is_some() && section.node != NodeType::Tag;
    for section in request.sections().filter(has_content) {
        let _ = writeln!(text, "── {}\n{}", section.label, request.content(section));
    }
    text
}

fn unified(old: &str, new: &str, new_label: &str, context: usize) -> String {
    let options =
        UnifiedOptions { context, old_label: "received", new_label, rendering: Rendering::Readable, limit: None };
    let text = Diff::new(old.as_bytes(), new.as_bytes()).unified(&options).into_text();
    String::from_utf8_lossy(&text).into_owned()
}
