//! Changes as text: one-line summaries, whole changes, events and outcomes.

mod details;
mod event;
mod outcome;
mod summary;

pub use details::{content_gone_text, render_agent_message, render_change_heading, review_heading};
pub use event::{describe_event, render_event, surface_text};
pub use outcome::{
    applied_text, decided_elsewhere_text, policy_decision_text, run_summary, uncaptured_notes, undo_title,
};
pub(crate) use summary::{applied_file_summary, list_files};
pub use summary::{change_summary, file_summary, origin_label, short_session_id, status_style, status_text};
