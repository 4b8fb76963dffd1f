//! Request modes and saved edits.

use sayso_review::{RequestId, RequestMode};
use sayso_wire::{NodeType, Scope, SectionKind};

/// Mode of a session, or the default mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeState {
    pub mode: RequestMode,
    /// Display name of the mode.
    pub label: String,
    /// `true` if the next turn is paused, once.
    pub pause_next: bool,
    /// `true` if the next turn is paused and its edits are saved when it is resumed.
    pub capture_next: bool,
    pub auto_apply: AutoApply,
    /// Time of the latest saved edit, in milliseconds since 1970. `None` if there is none.
    pub latest_saved: Option<i64>,
    /// Number of saved edits that apply.
    pub saved: u64,
}

/// State of auto-apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoApply {
    Off,
    /// The next turn is paused, and its edits are saved when it is resumed.
    Capturing,
    /// Saved edits are applied without pausing.
    Applying,
}

/// The default mode and the mode of each session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestModes {
    /// Mode of sessions without a mode of their own.
    pub default_state: ModeState,
    /// Latest activity first.
    pub sessions: Vec<SessionMode>,
    /// Every mode.
    pub choices: Vec<ModeLabel>,
    /// Scope in which captured edits are saved.
    pub capture_scope: Scope,
    /// Number of leading sections shown and saved when edits are captured. `None` for all.
    pub preview_limit: Option<u64>,
}

/// A session with requests, or with a mode of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMode {
    pub session: String,
    /// Display name: agent, model and the end of the session id.
    pub conversation: String,
    pub agent: Option<String>,
    /// Model of the latest request.
    pub model: Option<String>,
    /// Time of the latest request, in milliseconds since 1970. 0: none since the engine started.
    pub last: i64,
    /// Number of requests since the engine started.
    pub requests: u64,
    /// Number of held requests.
    pub held: u64,
    pub state: ModeState,
    /// `true` if the session does not use the default mode.
    pub has_own_mode: bool,
}

/// A mode and its display name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeLabel {
    pub mode: RequestMode,
    pub label: String,
}

/// Fate of held requests when the mode becomes [`RequestMode::Off`]. Other modes leave them held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldFate {
    /// Forward them with their edits.
    Resume,
    /// Cancel them with an error to the agent.
    Cancel,
}

/// The effects of a change of mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeResult {
    /// Number of cancelled requests.
    pub canceled: u64,
    /// Number of resumed requests.
    pub resumed: u64,
    pub still_held: Vec<StillHeld>,
    /// The state afterwards.
    pub state: ModeState,
}

/// A request that could not be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillHeld {
    pub request: RequestId,
    /// Cause why the upstream would reject its edits.
    pub reason: String,
}

/// An edit that is applied to new requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEdit {
    pub scope: Scope,
    /// Session of an edit with [`Scope::Session`].
    pub session: Option<String>,
    /// Path at the time of saving.
    pub path: String,
    pub kind: SectionKind,
    pub node: NodeType,
    /// New content of the section. `None` if the section is deleted.
    pub content: Option<String>,
    /// Time of saving, in milliseconds since 1970.
    pub updated: i64,
}
