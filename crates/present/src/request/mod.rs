//! Requests to models as text: status, reasons, sections, edits, modes.
//!
//! Texts are of the typed values of the client, because the engine has computed all of them. Edits are named by the grammar of
//! [`Assignment`] and [`edit_target`].

mod assignment;
mod cost;
mod edit;
mod event;
mod heading;
mod impact;
mod list;
mod mode;
mod sections;
mod status;

pub use assignment::{Assignment, edit_target};
pub use cost::{cache_miss_text, cost_text, cost_tokens_text, render_costs};
pub use edit::{
    EditKindText, MadeEdit, deleted_section, new_mode_text, nth_repair, render_edits, saved_edits_text, turn_edits_text,
};
pub use event::{describe_mode_set, describe_overrides_set, describe_step, describe_view};
pub use heading::render_request_heading;
pub use impact::{impact_text, problems_text};
pub use list::{request_details, run_heading};
pub use mode::{mode_text, override_line, render_modes, saved_edits_are, saved_edits_count, starts_capture};
pub use sections::{SectionExtent, pinned_heading, render_sections};
pub use status::{
    deadline_text, pause_reason_text, redacted_text, retry_text, scope_name, skipped_edit_text, status_word,
};
