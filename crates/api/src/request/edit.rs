//! Edits of held requests and their results.

use sayso_review::RequestMode;
use sayso_wire::tokens::Tokens;
use sayso_wire::{Repair, Scope};

/// Options of an edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditOptions {
    /// Saves the edit for new requests. `None` edits this request only.
    pub save_scope: Option<Scope>,
    /// Expected revision. The call fails with STALE if it differs.
    pub revision: Option<u64>,
}

/// The state of a request after an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditEffects {
    /// Number of edits so far, undone edits included.
    pub revision: u64,
    /// Path of the edit.
    pub path: String,
    /// Tokens saved by all edits; negative if they add tokens.
    pub tokens_saved: i64,
    /// Tokens saved by this edit; negative if it adds tokens.
    pub tokens_saved_here: i64,
    /// `None` if the body equals the received one.
    pub impact: Option<ImpactReport>,
    /// Remaining defects.
    pub problems: Vec<RequestDefect>,
    /// Number of edits saved for new requests.
    pub saved: u64,
    /// Number of saved edits removed, because the value is as received again.
    pub removed: u64,
    /// `None` if the mode is unchanged.
    pub switched: Option<SwitchedMode>,
    /// `true` if the path did not exist before.
    pub added: bool,
    /// Top-level members that the edit added and that the API does not document.
    pub unknown_members: Vec<String>,
}

/// A mode that was switched to so that saved edits apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedMode {
    pub mode: RequestMode,
    /// [`Scope::Session`] for the request's session, any other for the default mode.
    pub scope: Scope,
}

/// The effects of resuming a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeResult {
    /// Number of edits saved, if its edits were captured.
    pub saved: u64,
    /// Number of saved edits removed, if its edits were captured.
    pub removed: u64,
    /// `None` if the mode is unchanged.
    pub switched: Option<SwitchedMode>,
    /// Number of edits that apply to the following requests of the turn.
    pub turn_edits: u64,
}

/// The effects of saving the edits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveResult {
    /// Number of saved edits.
    pub saved: u64,
    /// The scope used.
    pub scope: Scope,
    /// Mode of that scope that was switched to. `None` if unchanged.
    pub new_mode: Option<RequestMode>,
}

/// A defect that would make the upstream reject a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDefect {
    /// Such as `orphanCall` or `roleOrder`. Kinds may be added.
    pub kind: String,
    pub path: String,
    /// For a person.
    pub message: String,
    /// `true` if an edit caused it, which prevents resuming.
    pub blocking: bool,
    /// Edits that would fix it. Resetting the request always does.
    pub repairs: Vec<DefectRepair>,
}

/// An edit that fixes a defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefectRepair {
    /// Display name.
    pub name: String,
    /// Path of the edit, for display.
    pub path: String,
    pub repair: Repair,
}

/// Side effects of a request's edits at the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpactReport {
    /// Tokens before the edits.
    pub before: Tokens,
    /// Tokens after the edits.
    pub after: Tokens,
    /// Tokens that no longer come from the upstream's prompt cache.
    pub reread: Tokens,
    /// Paths of cache breakpoints that no longer match.
    pub breakpoints_lost: Vec<String>,
    /// Paths of signed or encrypted content after an edit, which the upstream may reject.
    pub sealed_after: Vec<String>,
    /// An edit with the same meaning and less impact, for a person.
    pub alternative: Option<String>,
}

/// An edit in the history of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditEntry {
    /// Revision that the edit produced. Ascending.
    pub revision: u64,
    /// Such as `contentText` or `deletion`. Kinds may be added.
    pub target_kind: String,
    /// Path at the time of the edit.
    pub target_path: String,
    /// `None` unless requested and the edit is of one value.
    pub old_json: Option<String>,
    /// `None` unless requested and the edit is of one value.
    pub new_json: Option<String>,
}
