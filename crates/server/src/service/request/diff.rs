//! How a request differs from what came.

use std::fmt::Write as _;

use sayso_api::proto;
use sayso_api::proto::diff_request_response::{SectionDiff, section_diff};
use sayso_diff::{Diff, Rendering, UnifiedOptions};
use sayso_proxy::desk::Looked;
use sayso_wire::{Became, ModelRequest, NodeType};

use super::body;
use super::veil::Veil;
use crate::failure::Failure;
use crate::host::Host;

/// Lines around what differs, where nobody says how many.
const CONTEXT: u32 = 3;

pub(super) fn diff(host: &Host, asked: &proto::DiffRequestRequest) -> Result<proto::DiffRequestResponse, Failure> {
    let desk = &host.proxy.desk;
    let record = desk.record(asked.request)?;
    let context = asked.context.unwrap_or(CONTEXT) as usize;
    let saved = super::show::saved(host, asked.request)?;
    let known = desk.look(asked.request, |Looked { request, waiting, .. }| {
        if waiting.is_none() && !request.is_dirty() {
            return None;
        }
        let veil = Veil::of(request);
        let hide = |text: &str| veil.hide(text).into_owned();
        let message = |one: &sayso_wire::SectionDiff| SectionDiff {
            section: one.id.to_string(),
            path: one.path.clone(),
            label: one.label.clone(),
            became: became(one.became).into(),
            old: veil.hide_at(&one.path, &one.old).into_owned(),
            new: veil.hide_at(&one.path, &one.new).into_owned(),
            unified: hide(&one.unified(context)),
            saved: request.section(one.id).and_then(|section| saved.of(request, section)).into(),
            ..Default::default()
        };
        Some((request.diff().iter().map(message).collect(), hide(&request.unified_diff(context))))
    })?;
    let (sections, unified) = match known {
        Some(found) => found,
        None if !record.is_edited() => Default::default(),
        // Its edits are not known by themselves: it was recorded before they were.
        None => {
            let came = readable(&body::as_it_came(host, &record)?);
            let sent = desk.look(asked.request, |looked| readable(looked.request))?;
            let label = if record.sent.is_some() { "as it was sent" } else { "as it was edited; it was not sent" };
            (Vec::new(), unified(&came, &sent, label, context))
        }
    };
    desk.compared(asked.request, record.edits);
    Ok(proto::DiffRequestResponse { sections, unified, ..Default::default() })
}

fn became(became: Became) -> section_diff::Became {
    match became {
        Became::Edited => section_diff::Became::Edited,
        Became::Deleted => section_diff::Became::Deleted,
        Became::Added => section_diff::Became::Added,
    }
}

/// A request as text: each section that says something, after its name.
fn readable(request: &ModelRequest) -> String {
    let mut text = String::new();
    let says = |section: &&sayso_wire::Section| section.leaf.is_some() && section.node != NodeType::Tag;
    for section in request.sections().filter(says) {
        let _ = writeln!(text, "── {}\n{}", section.label, request.content(section));
    }
    text
}

fn unified(old: &str, new: &str, new_label: &str, context: usize) -> String {
    let options =
        UnifiedOptions { context, old_label: "as it came", new_label, rendering: Rendering::Readable, limit: None };
    let text = Diff::new(old.as_bytes(), new.as_bytes()).unified(&options).into_text();
    String::from_utf8_lossy(&text).into_owned()
}
